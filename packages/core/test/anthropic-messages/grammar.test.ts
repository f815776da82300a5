import { expect, test } from 'vitest';
import type { CanonicalStreamEvent } from '../../src/canonical/events.ts';
import type { JsonObject } from '../../src/json/json.ts';
import { frames, run } from './run.ts';
import { args, close, delta, finish, open, ping, say, says, sign, start, stop, text, think, thinking, tool } from './wire.ts';

const begun: CanonicalStreamEvent = { type: 'message_start', message: { id: 'msg_1', model: 'claude' } };
const ended = (stop_reason: string, wire = stop_reason, rest: object = {}, fields: JsonObject = {}): unknown[] => [
  {
    type: 'message_delta',
    delta: { stop_reason, ...rest },
    extensions: { 'anthropic-messages': { ...fields, finish_reason: wire } },
  },
  { type: 'message_stop' },
];
const opened = (index: number, content_block: object) => ({ type: 'content_block_start', index, content_block });
const piece = (index: number, value: object) => ({ type: 'content_block_delta', index, delta: value });
const closed = (index: number, content_block?: object) => ({
  type: 'content_block_stop',
  index,
  ...(content_block && { content_block }),
});
const signature = (value: string, form = 'signature') => ({ origin: 'anthropic-messages', form, value, model: 'claude' });
const own = (fields: JsonObject) => ({ extensions: { 'anthropic-messages': fields } });

const result = { type: 'web_search_tool_result', tool_use_id: 's1', content: [{ type: 'web_search_result', url: 'u' }] };
const failure = {
  type: 'web_fetch_tool_result',
  tool_use_id: 's9',
  content: { type: 'web_fetch_tool_result_error', error_code: 'x' },
};
const told = { type: 'mcp_tool_result', tool_use_id: 'm1', is_error: true, content: [{ type: 'text', text: 'no' }] };
const cite = { type: 'web_search_result_location', url: 'u', title: 't', cited_text: 'c', encrypted_index: 'e' };

interface Row {
  name: string;
  wire: JsonObject[];
  events: unknown[];
}

const rows: Row[] = [
  {
    name: 'text',
    wire: [start(), open(0, text()), ping, say(0, 'Hel'), say(0, 'lo'), close(0), finish('end_turn'), stop],
    events: [
      begun,
      { type: 'ping' },
      opened(0, { type: 'text', text: '' }),
      piece(0, { type: 'text_delta', text: 'Hel' }),
      piece(0, { type: 'text_delta', text: 'lo' }),
      closed(0),
      ...ended('end_turn'),
    ],
  },
  {
    name: 'thinking opens at once, its signature comes before its stop',
    wire: [start(), open(0, thinking()), think(0, 'hm'), sign(0, 'SIG'), close(0), ...says(1, 'a'), finish('end_turn'), stop],
    events: [
      begun,
      opened(0, { type: 'thinking', thinking: '' }),
      piece(0, { type: 'thinking_delta', thinking: 'hm' }),
      piece(0, { type: 'signature_delta', signature: signature('SIG') }),
      closed(0),
      opened(1, { type: 'text', text: '' }),
      piece(1, { type: 'text_delta', text: 'a' }),
      closed(1),
      ...ended('end_turn'),
    ],
  },
  {
    name: 'omitted and redacted thinking keep what proves them',
    wire: [
      start(),
      open(0, thinking()),
      sign(0, 'S'),
      close(0),
      open(1, { type: 'redacted_thinking', data: 'D' }),
      close(1),
      finish('end_turn'),
      stop,
    ],
    events: [
      begun,
      opened(0, { type: 'thinking', thinking: '' }),
      piece(0, { type: 'signature_delta', signature: signature('S') }),
      closed(0),
      opened(1, { type: 'thinking', thinking: '', variant: 'redacted', signature: signature('D', 'redacted') }),
      closed(1),
      ...ended('end_turn'),
    ],
  },
  {
    name: 'a call, with a field of its own',
    wire: [
      start(),
      open(0, { ...tool('t1', 'f'), caller: { type: 'direct' } }),
      args(0, ''),
      args(0, '{"a": '),
      args(0, '1}'),
      close(0),
      finish('tool_use'),
      stop,
    ],
    events: [
      begun,
      opened(0, { type: 'tool_use', id: 't1', name: 'f', input: {}, ...own({ caller: { type: 'direct' } }) }),
      piece(0, { type: 'input_json_delta', partial_json: '{"a": ' }),
      piece(0, { type: 'input_json_delta', partial_json: '1}' }),
      closed(0),
      ...ended('tool_use'),
    ],
  },
  {
    name: 'an input that stands in the start alone is one delta (programmatic calls)',
    wire: [start(), open(0, tool('t1', 'f', { city: 'Boston' })), close(0), finish('tool_use'), stop],
    events: [
      begun,
      opened(0, { type: 'tool_use', id: 't1', name: 'f', input: {} }),
      piece(0, { type: 'input_json_delta', partial_json: '{"city":"Boston"}' }),
      closed(0),
      ...ended('tool_use'),
    ],
  },
  {
    name: 'the provider runs tools itself: calls and results of kind server and mcp',
    wire: [
      start(),
      open(0, { type: 'server_tool_use', id: 's1', name: 'web_search', input: {} }),
      args(0, '{"query":"x"}'),
      close(0),
      open(1, result),
      close(1),
      open(2, { type: 'mcp_tool_use', id: 'm1', name: 'ask', server_name: 'wiki', input: {} }),
      close(2),
      open(3, told),
      close(3),
      open(4, failure),
      close(4),
      finish('end_turn'),
      stop,
    ],
    events: [
      begun,
      opened(0, { type: 'tool_use', id: 's1', name: 'web_search', input: {}, kind: 'server' }),
      piece(0, { type: 'input_json_delta', partial_json: '{"query":"x"}' }),
      closed(0),
      opened(1, {
        type: 'tool_result',
        tool_use_id: 's1',
        name: 'web_search',
        content: [{ type: 'opaque', origin: 'anthropic-messages', raw: result.content[0] }],
        kind: 'server',
        ...own(result),
      }),
      closed(1),
      opened(2, { type: 'tool_use', id: 'm1', name: 'ask', input: {}, kind: 'mcp', ...own({ server_name: 'wiki' }) }),
      closed(2),
      opened(3, {
        type: 'tool_result',
        tool_use_id: 'm1',
        name: 'ask',
        content: [text('no')],
        is_error: true,
        kind: 'mcp',
        ...own(told),
      }),
      closed(3),
      opened(4, {
        type: 'tool_result',
        tool_use_id: 's9',
        content: [{ type: 'opaque', origin: 'anthropic-messages', raw: failure.content }],
        is_error: true,
        kind: 'server',
        ...own(failure),
      }),
      closed(4),
      ...ended('end_turn'),
    ],
  },
  {
    name: 'citations',
    wire: [
      start(),
      open(0, { ...text(), citations: [] }),
      delta(0, { type: 'citations_delta', citation: cite }),
      say(0, 'so'),
      close(0),
      finish('end_turn'),
      stop,
    ],
    events: [
      begun,
      opened(0, { type: 'text', text: '' }),
      piece(0, {
        type: 'citations_delta',
        citation: { kind: 'url', url: 'u', title: 't', cited_text: 'c', raw: cite, origin: 'anthropic-messages' },
      }),
      piece(0, { type: 'text_delta', text: 'so' }),
      closed(0),
      ...ended('end_turn'),
    ],
  },
  {
    name: 'blocks that only this protocol knows, and stop reason compaction',
    wire: [
      start(),
      open(0, { type: 'compaction', content: null }),
      delta(0, { type: 'compaction_delta', content: 'Sum' }),
      delta(0, { type: 'compaction_delta', content: null }),
      close(0),
      finish('compaction'),
      stop,
    ],
    events: [
      begun,
      opened(0, { type: 'opaque', origin: 'anthropic-messages', raw: { type: 'compaction', content: null } }),
      piece(0, { type: 'opaque_delta', raw: { content: 'Sum' } }),
      closed(0),
      ...ended('pause_turn', 'compaction'),
    ],
  },
  {
    name: 'a refusal keeps its details; unknown fields of the message survive',
    wire: [
      start({ container: { id: 'c' } }),
      {
        ...finish('refusal', undefined, { stop_details: { type: 'refusal', category: 'cyber', explanation: null } }),
        context_management: { a: 1 },
      },
      { ...stop, 'amazon-bedrock-invocationMetrics': { inputTokenCount: 1 } },
    ],
    events: [
      begun,
      ...ended(
        'refusal',
        'refusal',
        { stop_details: { category: 'cyber', explanation: null } },
        {
          container: { id: 'c' },
          stop_details: { type: 'refusal', category: 'cyber', explanation: null },
          context_management: { a: 1 },
          'amazon-bedrock-invocationMetrics': { inputTokenCount: 1 },
        },
      ),
    ],
  },
  {
    name: 'a stop sequence is named; a character may be split over two deltas',
    wire: [
      start(),
      open(0, text()),
      say(0, 'a\ud83d'),
      say(0, '\ude00'),
      close(0),
      finish('stop_sequence', undefined, { stop_sequence: 'X' }),
      stop,
    ],
    events: [
      begun,
      opened(0, { type: 'text', text: '' }),
      piece(0, { type: 'text_delta', text: 'a' }),
      piece(0, { type: 'text_delta', text: '😀' }),
      closed(0),
      ...ended('stop_sequence', 'stop_sequence', { stop_sequence: 'X' }),
    ],
  },
  {
    name: 'max_tokens in the middle of a call: the call stays cut',
    wire: [start(), open(0, tool('t1', 'f')), args(0, '{"a":"x'), close(0), finish('max_tokens'), stop],
    events: [
      begun,
      opened(0, { type: 'tool_use', id: 't1', name: 'f', input: {} }),
      piece(0, { type: 'input_json_delta', partial_json: '{"a":"x' }),
      closed(0, { type: 'tool_use', id: 't1', name: 'f', input: {}, status: 'incomplete' }),
      ...ended('max_tokens'),
    ],
  },
];

test.each(rows)('conforming: $name', ({ wire, events }) => {
  const { events: found, rules } = run(frames(wire));
  expect(found).toEqual(events);
  expect(rules).toEqual([]);
});

const usages = [
  {
    name: 'start alone',
    start: { input_tokens: 10, output_tokens: 1 },
    end: undefined,
    usage: { input_tokens: 10, output_tokens: 1 },
  },
  {
    name: 'input includes the cache',
    start: { input_tokens: 10, cache_read_input_tokens: 90, cache_creation_input_tokens: 20, output_tokens: 1 },
    end: { input_tokens: null, output_tokens: 30, output_tokens_details: { thinking_tokens: 7 } },
    usage: { input_tokens: 120, output_tokens: 30, cache_read_tokens: 90, cache_creation_tokens: 20, reasoning_tokens: 7 },
  },
  {
    name: 'counters may fall, and details are counted',
    start: { input_tokens: 50, output_tokens: 1, cache_creation: { ephemeral_5m_input_tokens: 3, ephemeral_1h_input_tokens: 4 } },
    end: { input_tokens: 40, output_tokens: 5, server_tool_use: { web_search_requests: 2, web_fetch_requests: 1 } },
    usage: {
      input_tokens: 40,
      output_tokens: 5,
      details: { cache_creation_5m: 3, cache_creation_1h: 4, web_search_requests: 2, web_fetch_requests: 1 },
    },
  },
  {
    name: 'a compaction stands outside the totals',
    start: { input_tokens: 0, output_tokens: 0 },
    end: {
      input_tokens: 6,
      output_tokens: 2,
      cache_read_input_tokens: 0,
      iterations: [
        { type: 'compaction', input_tokens: 100, cache_read_input_tokens: 7, output_tokens: 10 },
        { type: 'message', input_tokens: 6, output_tokens: 2 },
      ],
    },
    usage: { input_tokens: 113, output_tokens: 12, cache_read_tokens: 7 },
  },
  {
    name: 'zeros replace no count',
    start: { input_tokens: 9, output_tokens: 3 },
    end: { input_tokens: 0, output_tokens: 0 },
    usage: { input_tokens: 9, output_tokens: 3 },
  },
];

test.each(usages)('usage: $name', ({ start: first, end, usage }) => {
  const { message } = run(frames([start({ usage: first }), ...says(0, 'a'), finish('end_turn', end), stop]));
  const { extensions: _, ...counts } = message.usage ?? {};
  expect(counts).toEqual(usage);
});
