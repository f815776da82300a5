import { expect, test } from 'vitest';
import { assemble, bytesOf, splitEvery } from '../../../../test/run.ts';
import { createStreamConverter } from '../../src/engine/stream.ts';
import { anthropicMessagesCodec } from '../../src/protocols/anthropic-messages/codec.ts';
import { anthropicMessages } from '../../src/protocols/anthropic-messages/index.ts';
import { openaiChatCodec } from '../../src/protocols/openai-chat/codec.ts';
import { openaiChat } from '../../src/protocols/openai-chat/index.ts';

type Json = Record<string, unknown>;

interface Row {
  name: string;
  start: Json;
  deltas: Json[];
  want: Json;
  hasZeros: boolean;
}

const ROWS: Row[] = [
  {
    name: 'zeros of message_delta beside real output',
    start: { input_tokens: 100, cache_read_input_tokens: 50, cache_creation_input_tokens: 20, output_tokens: 1 },
    deltas: [{ input_tokens: 0, cache_read_input_tokens: 0, cache_creation_input_tokens: 0, output_tokens: 25 }],
    want: { input_tokens: 170, output_tokens: 25, cache_read_tokens: 50, cache_creation_tokens: 20 },
    hasZeros: true,
  },
  {
    name: 'zeros of the cache beside the same input',
    start: { input_tokens: 100, cache_read_input_tokens: 50, output_tokens: 1 },
    deltas: [{ input_tokens: 100, cache_read_input_tokens: 0, output_tokens: 25 }],
    want: { input_tokens: 150, output_tokens: 25, cache_read_tokens: 50 },
    hasZeros: true,
  },
  {
    name: 'zeros in nested counts',
    start: {
      input_tokens: 100,
      output_tokens: 1,
      cache_creation_input_tokens: 9,
      cache_creation: { ephemeral_5m_input_tokens: 9 },
    },
    deltas: [{ output_tokens: 25, cache_creation: { ephemeral_5m_input_tokens: 0 } }],
    want: { input_tokens: 109, output_tokens: 25, cache_creation_tokens: 9, details: { cache_creation_5m: 9 } },
    hasZeros: true,
  },
  {
    name: 'zeros only, after the real counts',
    start: { input_tokens: 100, output_tokens: 1 },
    deltas: [{ output_tokens: 25 }, { input_tokens: 0, output_tokens: 0 }],
    want: { input_tokens: 100, output_tokens: 25 },
    hasZeros: true,
  },
  {
    name: 'a cache count that falls to zero with another input (recorded: compaction)',
    start: { input_tokens: 100, cache_read_input_tokens: 50, output_tokens: 1 },
    deltas: [{ input_tokens: 181, cache_read_input_tokens: 0, output_tokens: 8 }],
    want: { input_tokens: 181, output_tokens: 8, cache_read_tokens: 0 },
    hasZeros: false,
  },
  {
    name: 'zeros where nothing was counted',
    start: { input_tokens: 0, output_tokens: 0 },
    deltas: [{ input_tokens: 0, output_tokens: 5 }],
    want: { input_tokens: 0, output_tokens: 5 },
    hasZeros: false,
  },
];

function streamOf({ start, deltas }: Row): Uint8Array {
  const events: Json[] = [
    {
      type: 'message_start',
      message: { id: 'msg_1', type: 'message', role: 'assistant', model: 'c', content: [], usage: start },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } },
    { type: 'content_block_stop', index: 0 },
    ...deltas.map((usage, i) => ({ type: 'message_delta', delta: { stop_reason: i === 0 ? 'end_turn' : null }, usage })),
    { type: 'message_stop' },
  ];
  return bytesOf(events.map((event) => `event: ${event['type']}\ndata: ${JSON.stringify(event)}\n\n`).join(''));
}

test.each(ROWS)('$name', (row) => {
  const { usage, diagnostics } = assemble(anthropicMessages, [streamOf(row)]);
  expect(usage).toEqual(row.want);
  expect(diagnostics.some(({ rule }) => rule === 'anthropic/usage-of-zeros')).toBe(row.hasZeros);
  expect(assemble(anthropicMessages, splitEvery(streamOf(row), 1)).usage).toEqual(row.want);
});

test.each(ROWS)('$name: a chat client gets the same counts', (row) => {
  const converter = createStreamConverter({ from: anthropicMessagesCodec, to: openaiChatCodec });
  const { usage } = assemble(openaiChat, [...converter.push(streamOf(row)), ...converter.end()]);
  expect(usage).toMatchObject({ input_tokens: row.want['input_tokens'], output_tokens: row.want['output_tokens'] });
});
