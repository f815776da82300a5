// Three turns with the OpenAI Agents SDK: each names the response before it, and sends its own input only.
import { readFile } from 'node:fs/promises';
import { Agent, run, setDefaultOpenAIClient, setTracingDisabled, tool } from '@openai/agents';
import OpenAI from 'openai';
import { z } from 'zod';

const { BASE_URL, MODEL, TURNS } = process.env;
let last = '';
setTracingDisabled(true);
setDefaultOpenAIClient(
  new OpenAI({
    apiKey: 'any',
    baseURL: `${BASE_URL}/v1`,
    maxRetries: 0,
    fetch: (url, init) => {
      last = String(init.body);
      return fetch(url, init);
    },
  }),
);
const read = tool({
  name: 'read_file',
  description: 'Read a text file',
  parameters: z.object({ path: z.string() }),
  execute: ({ path }) => readFile(path, 'utf8'),
});
const agent = new Agent({ name: 'A', instructions: 'Be brief.', model: MODEL, tools: [read] });
const turns = JSON.parse(TURNS);
let previousResponseId;
for (const [index, text] of turns.entries()) {
  // One turn without a stream.
  const result = await run(agent, text, { stream: index !== 1, ...(previousResponseId && { previousResponseId }) });
  if (index !== 1) {
    for await (const _ of result);
    await result.completed;
  }
  previousResponseId = result.lastResponseId;
  console.log(result.finalOutput);
}
const { previous_response_id: previous, input } = JSON.parse(last);
if (typeof previous !== 'string') throw new Error('the last request has no previous_response_id');
if (JSON.stringify(input).includes(turns[0])) throw new Error('the last request repeats the first turn');
