// Three turns with the AI SDK and its default model of OpenAI. The SDK refers to earlier output by item_reference.
import { readFile } from 'node:fs/promises';
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';

const { BASE_URL, MODEL, TURNS } = process.env;
let last = '';
const openai = createOpenAI({
  baseURL: `${BASE_URL}/v1`,
  apiKey: 'any',
  fetch: (url, init) => {
    last = String(init.body);
    return fetch(url, init);
  },
});
const read = tool({
  description: 'Read a text file',
  inputSchema: z.object({ path: z.string() }),
  execute: ({ path }) => readFile(path, 'utf8'),
});
const messages = [];
for (const [index, content] of JSON.parse(TURNS).entries()) {
  messages.push({ role: 'user', content });
  const options = { model: openai(MODEL), messages, tools: { read_file: read }, stopWhen: stepCountIs(5), maxRetries: 0 };
  // One turn without a stream.
  const result = index === 1 ? await generateText(options) : streamText(options);
  if (index !== 1) for await (const _ of result.textStream);
  const { messages: answers } = await result.response;
  messages.push(...answers);
  console.log(await result.text);
}
const types = JSON.parse(last).input.map(({ type, role }) => type ?? role);
if (!types.includes('item_reference')) throw new Error(`the last request has no item_reference: ${types.join(', ')}`);
