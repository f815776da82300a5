/**
 * Requests as clients send them: a greeting, a page of text, and conversations of an agent, in every protocol. They are built for Chat and converted,
 * so that a request says the same in every protocol.
 */
import { convertRequest } from '@sluice/core';
import { CODECS } from '@sluice/core/engine';

/** In every list and table, in this order. */
export const PROTOCOL_IDS = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'];

const repeat = (text, bytes) => text.repeat(Math.ceil(bytes / text.length)).slice(0, bytes);

/** The user asks, the model calls a tool, and the tool returns: `bytes` of JSON in all. */
function buildTurn(i, bytes, tools) {
  const path = `/src/file${i}.ts`;
  const text = (share) => repeat('please look at the file, "explain" it.\n', Math.max(20, Math.floor((bytes - 260) * share)));
  const call = {
    id: `call_${i}`,
    type: 'function',
    function: { name: `tool_${i % tools}`, arguments: JSON.stringify({ path, text: text(0.15) }) },
  };
  return [
    { role: 'user', content: `Turn ${i}: ${text(0.45)}` },
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: `call_${i}`, content: text(0.3) },
  ];
}

const buildTool = (i) => ({
  type: 'function',
  function: {
    name: `tool_${i}`,
    description: repeat('Reads a file and returns it. ', 110),
    parameters: {
      type: 'object',
      properties: Object.fromEntries(
        Array.from({ length: 6 }, (_, k) => [`p${k}`, { type: 'string', description: 'a parameter of this tool' }]),
      ),
      required: ['p0'],
      additionalProperties: false,
    },
  },
});

function buildConversation(turns, tools, turnBytes) {
  return {
    messages: [
      { role: 'system', content: 'You are helpful.' },
      ...Array.from({ length: turns }, (_, i) => buildTurn(i, turnBytes, tools)).flat(),
      { role: 'user', content: 'Go on.' },
    ],
    tools: Array.from({ length: tools }, (_, i) => buildTool(i)),
  };
}

/** What is sent, by the size of the Chat request. `name` is part of the ids of rows. */
export const REQUESTS = [
  { name: '0.1k', title: '0.1 KB', build: () => ({ messages: [{ role: 'user', content: 'Hi' }] }) },
  {
    name: '1k',
    title: '1 KB',
    build: () => ({ messages: [{ role: 'user', content: repeat('Lorem ipsum dolor sit amet, "consectetur" elit.\n', 880) }] }),
  },
  { name: '100k', title: '100 KB, 60 turns, 20 tools', build: () => buildConversation(60, 20, 1455) },
  { name: '1m', title: '1 MB, 1,000 turns, 200 tools', build: () => buildConversation(1000, 200, 915) },
];

const findRequest = (name) => REQUESTS.find((request) => request.name === name);

/** The body of a request as an object, in a protocol. Gemini has model and stream in the path, not in the body. */
export function buildRequest(name, protocol, { model, stream = false }) {
  const chat = { model, stream, max_tokens: 1000, ...findRequest(name).build() };
  if (protocol === 'openai-chat') return chat;
  return convertRequest(chat, { from: CODECS['openai-chat'], to: CODECS[protocol] }).body;
}
