import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { streamText } from 'ai';

// A reader such as `head` may close the pipe.
process.stdout.on('error', () => process.exit());

const { SLUICE_URL = 'http://127.0.0.1:4141', SLUICE_KEY = 'any', SLUICE_MODEL = 'demo/hello' } = process.env;
const sluice = createOpenAICompatible({ name: 'sluice', baseURL: `${SLUICE_URL}/v1`, apiKey: SLUICE_KEY, includeUsage: true });

const { textStream } = streamText({ model: sluice(SLUICE_MODEL), prompt: 'Hello' });
for await (const text of textStream) process.stdout.write(text);
console.log();
