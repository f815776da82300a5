/** What the checks of the runtimes work on: the case table, and the same conversation in each protocol. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { convertStream, PROTOCOLS } from '@sluice/core';
import { ROOT } from '../build/packages.js';

const SCHEMA = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const MODEL = 'm-1';

const REQUESTS = {
  'openai-chat': {
    model: MODEL,
    stream: true,
    max_completion_tokens: 100,
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Weather in Paris?' },
    ],
    tools: [{ type: 'function', function: { name: 'get_weather', description: 'Weather', parameters: SCHEMA } }],
  },
  'anthropic-messages': {
    model: MODEL,
    stream: true,
    max_tokens: 100,
    system: 'Be brief.',
    messages: [{ role: 'user', content: 'Weather in Paris?' }],
    tools: [{ name: 'get_weather', description: 'Weather', input_schema: SCHEMA }],
  },
  'openai-responses': {
    model: MODEL,
    stream: true,
    max_output_tokens: 100,
    instructions: 'Be brief.',
    input: [{ role: 'user', content: 'Weather in Paris?' }],
    tools: [{ type: 'function', name: 'get_weather', description: 'Weather', parameters: SCHEMA, strict: false }],
  },
  gemini: {
    systemInstruction: { parts: [{ text: 'Be brief.' }] },
    contents: [{ role: 'user', parts: [{ text: 'Weather in Paris?' }] }],
    generationConfig: { maxOutputTokens: 100 },
    tools: [{ functionDeclarations: [{ name: 'get_weather', description: 'Weather', parameters: SCHEMA }] }],
  },
};

const chunk = (delta, finish_reason = null) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1_700_000_000,
  model: MODEL,
  choices: [{ index: 0, delta, finish_reason }],
});

const opening = (index, name) =>
  chunk({ tool_calls: [{ index, id: `call_${index}`, type: 'function', function: { name, arguments: '' } }] });

const piece = (index, text) => chunk({ tool_calls: [{ index, function: { arguments: text } }] });

const CHAT = [
  chunk({ role: 'assistant', content: '' }),
  chunk({ content: 'Let me ' }),
  chunk({ content: 'look.' }),
  opening(0, 'get_weather'),
  piece(0, '{"city":'),
  piece(0, '"Paris"}'),
  opening(1, 'get_time'),
  piece(1, '{"zone":"CET"}'),
  chunk({}, 'tool_calls'),
];

/** The data of `runChecks`. The streams of the other protocols are converted here, so that all runtimes read the same bytes. */
export async function createData() {
  const chat = `${CHAT.map((payload) => `data: ${JSON.stringify(payload)}\n\n`).join('')}data: [DONE]\n\n`;
  const streams = { 'openai-chat': chat };
  for (const to of Object.keys(PROTOCOLS)) {
    if (to === 'openai-chat') continue;
    const converted = new Response(chat).body.pipeThrough(convertStream({ from: 'openai-chat', to }));
    streams[to] = await new Response(converted).text();
  }
  return { cases: readCases(), requests: REQUESTS, streams };
}

function readCases() {
  return ['cases.jsonl', 'cases-own.jsonl'].flatMap((file) =>
    readFileSync(join(ROOT, 'fixtures', file), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  );
}
