import { ChatOpenAI } from '@langchain/openai';

// A reader such as `head` may close the pipe.
process.stdout.on('error', () => process.exit());

const { SLUICE_URL = 'http://127.0.0.1:4141', SLUICE_KEY = 'any', SLUICE_MODEL = 'demo/hello' } = process.env;
const model = new ChatOpenAI({ model: SLUICE_MODEL, apiKey: SLUICE_KEY, configuration: { baseURL: `${SLUICE_URL}/v1` } });

for await (const { text } of await model.stream('Hello')) process.stdout.write(text);
console.log();
