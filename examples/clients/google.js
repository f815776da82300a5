import { GoogleGenAI } from '@google/genai';

// A reader such as `head` may close the pipe.
process.stdout.on('error', () => process.exit());

const { SLUICE_URL = 'http://127.0.0.1:4141', SLUICE_KEY = 'any', SLUICE_MODEL = 'demo/hello' } = process.env;
const client = new GoogleGenAI({ apiKey: SLUICE_KEY, httpOptions: { baseUrl: SLUICE_URL } });

const stream = await client.models.generateContentStream({ model: SLUICE_MODEL, contents: 'Hello' });
for await (const { text } of stream) process.stdout.write(text ?? '');
console.log();
