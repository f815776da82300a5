import Anthropic from '@anthropic-ai/sdk';

// A reader such as `head` may close the pipe.
process.stdout.on('error', () => process.exit());

const { SLUICE_URL = 'http://127.0.0.1:4141', SLUICE_KEY = 'any', SLUICE_MODEL = 'demo/hello' } = process.env;
const client = new Anthropic({ baseURL: SLUICE_URL, apiKey: SLUICE_KEY });

const stream = client.messages.stream({ model: SLUICE_MODEL, max_tokens: 500, messages: [{ role: 'user', content: 'Hello' }] });
stream.on('text', (text) => process.stdout.write(text));
await stream.finalMessage();
console.log();
