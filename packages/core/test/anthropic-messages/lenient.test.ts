import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/json/json.ts';
import { frames, run, summary } from './run.ts';
import { args, close, delta, finish, open, ping, say, says, sign, start, stop, text, think, thinking, tool } from './wire.ts';

interface Row {
  name: string;
  /** Payloads, or text for what is no payload. */
  wire: (JsonObject | string)[];
  text?: string;
  reasoning?: string;
  calls?: [id: string, name: string, args: string][];
  finish?: string | null;
  extras?: JsonObject;
  error?: JsonObject;
  code?: string;
  rules: string[];
}

const DERIVED = expect.stringMatching(/^toolu_[0-9a-f]{24}$/);
const done = [finish('end_turn'), stop];
const called = [finish('tool_use'), stop];
const nameless = (payload: JsonObject): string => `data: ${JSON.stringify(payload)}\n\n`;
const typeless = ({ type, ...payload }: JsonObject): string => `event: ${String(type)}\ndata: ${JSON.stringify(payload)}\n\n`;

const WHOLE: JsonObject[] = [
  { type: 'redacted_thinking', data: 'x' },
  { type: 'web_search_tool_result', tool_use_id: 's', content: [{ type: 'web_search_result', url: 'u' }] },
  { type: 'future_block', x: { y: [1] } },
];

const rows: Row[] = [
  // Which event it is
  { name: 'no event lines', wire: [start(), ...says(0, 'a'), ...done].map(nameless), text: 'a', rules: ['event-name-missing'] },
  {
    name: 'the type in the event line only',
    wire: [start(), ...says(0, 'a'), ...done].map(typeless),
    text: 'a',
    rules: ['type-missing'],
  },
  {
    name: 'the event line differs',
    wire: [start(), ...says(0, 'a'), ...done].map((payload) => `event: message\ndata: ${JSON.stringify(payload)}\n\n`),
    text: 'a',
    rules: ['event-name-differs'],
  },
  {
    name: 'pings without data, with {}, and before the start',
    wire: ['event: ping\n\n', 'event: ping\ndata: {}\n\n', ping, start(), ...says(0, 'a'), ...done],
    text: 'a',
    rules: ['type-missing'],
  },
  {
    name: 'unknown events and deltas',
    wire: [
      start(),
      { type: 'context_hint' },
      open(0, text()),
      say(0, 'a'),
      delta(0, { type: 'future_delta', x: 1 }),
      say(0, 'b'),
      close(0),
      ...done,
    ],
    text: 'ab',
    rules: ['unknown-event', 'unknown-delta'],
  },
  {
    name: '[DONE] before the end',
    wire: [start(), ...says(0, 'a'), finish('end_turn'), 'data: [DONE]\n\n'],
    text: 'a',
    rules: ['done-sentinel', 'message-stop-missing'],
  },
  {
    name: 'a delta without type',
    wire: [start(), open(0, text()), delta(0, { text: 'a' }), close(0), ...done],
    text: 'a',
    rules: [],
  },
  // The message
  {
    name: 'no message_start',
    wire: [...says(0, 'a'), ...done],
    text: 'a',
    rules: ['message-start-missing', 'message-id-missing'],
  },
  {
    name: 'message_start twice',
    wire: [start(), start(), ...says(0, 'a'), ...done],
    text: 'a',
    rules: ['message-start-repeated'],
  },
  {
    name: 'two messages spliced',
    wire: [start(), open(0, text()), say(0, 'a'), start({ id: 'msg_2' }), ...says(0, 'b'), ...done],
    text: 'a',
    finish: 'error',
    code: 'UPSTREAM_ERROR',
    rules: ['spliced-stream', 'sse/after-end'],
  },
  {
    name: 'another message after a whole one',
    wire: [start(), ...says(0, 'a'), finish('end_turn'), start({ id: 'msg_2' })],
    text: 'a',
    rules: ['spliced-stream'],
  },
  {
    name: 'the content in message_start',
    wire: [start({ content: [text('a'), tool('t', 'f', { b: 1 })] }), ...called],
    text: 'a',
    calls: [['t', 'f', '{"b":1}']],
    finish: 'tool_calls',
    rules: ['content-in-message-start'],
  },
  {
    name: 'the content in message_start and in blocks',
    wire: [start({ content: [text('a')] }), ...says(0, 'a'), ...done],
    text: 'a',
    rules: [],
  },
  { name: 'no message_stop', wire: [start(), ...says(0, 'a'), finish('end_turn')], text: 'a', rules: ['message-stop-missing'] },
  { name: 'no stop reason', wire: [start(), ...says(0, 'a'), stop], text: 'a', rules: ['stop-reason-missing'] },
  {
    name: 'no stop reason, but a call',
    wire: [start(), open(0, tool('t', 'f')), close(0), stop],
    calls: [['t', 'f', '{}']],
    finish: 'tool_calls',
    rules: ['stop-reason-missing'],
  },
  {
    name: 'a second message_delta takes nothing back',
    wire: [start(), ...says(0, 'a'), finish('max_tokens'), finish(null, { output_tokens: 3 }), stop],
    text: 'a',
    finish: 'length',
    rules: ['message-delta-repeated'],
  },
  {
    name: 'usage first, then the stop reason',
    wire: [start(), finish(null, { output_tokens: 1 }), ...says(0, 'a'), ...done],
    text: 'a',
    rules: ['message-delta-repeated'],
  },
  {
    name: 'content after message_delta',
    wire: [start(), ...says(0, 'a'), finish('end_turn'), ...says(1, 'b'), stop],
    text: 'ab',
    rules: ['content-after-message-delta'],
  },
  {
    name: 'a stop reason of chat',
    wire: [start(), ...says(0, 'a'), finish('length'), stop],
    text: 'a',
    finish: 'length',
    rules: ['stop-reason-unknown'],
  },
  {
    name: 'a stop reason of the future',
    wire: [start(), ...says(0, 'a'), finish('__proto__'), stop],
    text: 'a',
    rules: ['stop-reason-unknown'],
  },
  {
    name: 'end_turn with a call',
    wire: [start(), open(0, tool('t', 'f')), close(0), ...done],
    calls: [['t', 'f', '{}']],
    finish: 'tool_calls',
    rules: ['end-turn-with-calls'],
  },
  // Early ends and errors
  { name: 'nothing', wire: [], finish: 'error', code: 'UPSTREAM_ERROR', rules: [] },
  { name: 'pings only', wire: [ping], finish: 'error', code: 'UPSTREAM_ERROR', rules: [] },
  { name: 'message_stop only', wire: [stop], finish: 'error', code: 'UPSTREAM_ERROR', rules: [] },
  {
    name: 'cut in the text',
    wire: [start(), open(0, text()), say(0, 'a')],
    text: 'a',
    finish: null,
    extras: { incomplete: true },
    rules: ['ended-early'],
  },
  {
    name: 'cut before the arguments',
    wire: [start(), open(0, tool('t', 'f'))],
    calls: [['t', 'f', '']],
    finish: null,
    rules: ['ended-early'],
  },
  {
    name: 'cut with a null stop reason',
    wire: [start(), ...says(0, 'a'), finish(null)],
    text: 'a',
    finish: null,
    rules: ['ended-early'],
  },
  {
    name: 'an error in the middle',
    wire: [
      start(),
      open(0, text()),
      say(0, 'a'),
      { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' }, request_id: 'r' },
    ],
    text: 'a',
    finish: 'error',
    error: { type: 'overloaded_error', message: 'Overloaded' },
    code: 'OVERLOADED',
    rules: [],
  },
  {
    name: 'an error as text',
    wire: ['event: error\ndata: "busy"\n\n'],
    finish: 'error',
    error: { message: 'busy' },
    code: 'UPSTREAM_ERROR',
    rules: [],
  },
  {
    name: 'an error without its envelope',
    wire: ['event: error\ndata: {"type":"rate_limit_error","message":"slow"}\n\n'],
    finish: 'error',
    error: { type: 'rate_limit_error' },
    code: 'RATE_LIMIT',
    rules: [],
  },
  {
    name: 'an error of OpenAI',
    wire: ['data: {"error":{"message":"prompt is too long","code":"x"}}\n\n'],
    finish: 'error',
    error: { code: 'x' },
    code: 'CONTEXT_LENGTH',
    rules: [],
  },
  {
    name: 'a spend limit is no rate limit',
    wire: [
      {
        type: 'error',
        error: { type: 'rate_limit_error', message: 'm', details: { error_code: 'enforced_spend_limit_reached' } },
      },
    ],
    finish: 'error',
    code: 'BILLING',
    rules: [],
  },
  // Blocks
  {
    name: 'indexes with gaps, as text and missing',
    wire: [
      start(),
      ...says(3, 'a'),
      open('x', text()),
      say('x', 'b'),
      close('x'),
      open(undefined, text()),
      say(undefined, 'c'),
      close(undefined),
      ...done,
    ],
    text: 'abc',
    rules: ['index-gap'],
  },
  {
    name: 'an index used again',
    wire: [start(), ...says(0, 'a'), open(0, tool('t', 'f')), args(0, '{}'), close(0), ...called],
    text: 'a',
    calls: [['t', 'f', '{}']],
    finish: 'tool_calls',
    rules: ['index-reused'],
  },
  {
    name: 'an index used again, without a stop',
    wire: [start(), open(0, thinking()), think(0, 'h'), open(0, text()), say(0, 'a'), close(0), ...done],
    text: 'a',
    reasoning: 'h',
    rules: ['index-reused', 'blocks-overlap'],
  },
  {
    name: 'a start twice',
    wire: [
      start(),
      open(0, thinking()),
      open(0, thinking()),
      think(0, 'h'),
      close(0),
      open(1, tool('t', 'f')),
      open(1, tool('t', 'f', { a: 1 })),
      close(1),
      ...called,
    ],
    reasoning: 'h',
    calls: [['t', 'f', '{"a":1}']],
    finish: 'tool_calls',
    rules: ['block-start-repeated'],
  },
  {
    name: 'blocks that are whole in their start started twice',
    wire: [start(), ...WHOLE.flatMap((block, i) => [open(i, block), open(i, { ...block }), close(i)]), ...done],
    extras: { blocks: WHOLE },
    rules: ['block-start-repeated'],
  },
  {
    name: 'two blocks that say the same, at one index',
    wire: [start(), ...WHOLE.flatMap((block) => [open(0, block), close(0), open(0, block), close(0)]), ...done],
    extras: { blocks: WHOLE.flatMap((block) => [block, block]) },
    rules: ['index-reused'],
  },
  {
    name: 'an unknown block, another start after its first delta',
    wire: [start(), open(0, { type: 'x' }), delta(0, { type: 'x_delta', n: 1 }), open(0, { type: 'x' }), close(0), ...done],
    extras: { blocks: [{ type: 'x', n: 1 }, { type: 'x' }] },
    rules: ['index-reused', 'blocks-overlap'],
  },
  {
    name: 'no starts',
    wire: [start(), think(0, 'h'), sign(0, 'S'), say(1, 'a'), close(1), ...done],
    text: 'a',
    reasoning: 'h',
    extras: { thinking_blocks: [{ type: 'thinking', thinking: 'h', signature: 'S' }] },
    rules: ['block-start-missing', 'block-stop-missing'],
  },
  {
    name: 'no start of a call',
    wire: [start(), args(0, '{"a":'), args(0, '1}'), close(0), ...called],
    calls: [[DERIVED, 'tool_0', '{"a":1}']],
    finish: 'tool_calls',
    rules: ['block-start-missing', 'tool-name-missing', 'tool-id-missing'],
  },
  {
    name: 'a start without a type',
    wire: [start(), open(0, {}), say(0, 'a'), close(0), open(1, null), args(1, '{}'), close(1), ...called],
    text: 'a',
    calls: [[DERIVED, 'tool_0', '{}']],
    finish: 'tool_calls',
    rules: ['block-start-missing', 'tool-name-missing', 'tool-id-missing'],
  },
  {
    name: 'no stops',
    wire: [
      start(),
      open(0, text()),
      say(0, 'a'),
      open(1, tool('t', 'f')),
      args(1, '{"a":1}'),
      open(2, text()),
      say(2, 'b'),
      ...called,
    ],
    text: 'ab',
    calls: [['t', 'f', '{"a":1}']],
    finish: 'tool_calls',
    rules: ['block-stop-missing', 'blocks-overlap'],
  },
  {
    name: 'a stop without a start',
    wire: [start(), close(7), ...says(0, 'a'), ...done],
    text: 'a',
    rules: ['stop-without-start'],
  },
  {
    name: 'text in a thinking block',
    wire: [start(), open(0, thinking()), think(0, 'h'), say(0, 'a'), think(0, 'i'), close(0), ...done],
    text: 'a',
    reasoning: 'hi',
    rules: ['delta-of-another-kind'],
  },
  {
    name: 'text after its stop',
    wire: [start(), ...says(0, 'a'), say(0, 'b'), ...done],
    text: 'ab',
    rules: ['delta-after-stop'],
  },
  {
    name: 'text while a call is open',
    wire: [
      start(),
      open(0, tool('t', 'f')),
      args(0, '{"a"'),
      open(1, text()),
      say(1, 'x'),
      args(0, ':1}'),
      close(1),
      close(0),
      ...called,
    ],
    text: 'x',
    calls: [['t', 'f', '{"a":1}']],
    finish: 'tool_calls',
    rules: ['blocks-overlap'],
  },
  {
    name: 'thinking within thinking: a signature is for all of a block, so that the second waits',
    wire: [
      start(),
      open(0, thinking()),
      think(0, 'a'),
      open(1, thinking()),
      think(1, 'b'),
      open(2, thinking()),
      think(0, 'c'),
      think(2, 'x'),
      think(1, 'd'),
      sign(1, 'S1'),
      close(1),
      open(3, text()),
      say(3, 't'),
      sign(0, 'S0'),
      close(0),
      close(3),
      ...done,
    ],
    text: 't',
    reasoning: 'acbdx',
    extras: {
      thinking_blocks: [
        { thinking: 'ac', signature: 'S0' },
        { thinking: 'bd', signature: 'S1' },
        { thinking: 'x', signature: '' },
      ],
    },
    rules: ['blocks-overlap', 'block-stop-missing'],
  },
  {
    name: 'thinking within thinking that is cut',
    wire: [start(), open(0, thinking()), think(0, 'a'), open(1, thinking()), think(1, 'b'), think(0, 'c')],
    reasoning: 'acb',
    finish: null,
    rules: ['blocks-overlap', 'ended-early'],
  },
  {
    name: 'an unknown block with deltas around another block',
    wire: [
      start(),
      open(0, { type: 'x', a: '1' }),
      open(1, text()),
      say(1, 't'),
      delta(0, { type: 'x_delta', a: '2' }),
      close(0),
      close(1),
      ...done,
    ],
    text: 't',
    extras: { blocks: [{ type: 'x', a: '1' }, text('t'), { type: 'x', a: '2' }] },
    rules: ['blocks-overlap'],
  },
  // Text in the start
  {
    name: 'a prefix in the start',
    wire: [start(), open(0, text('Hel')), say(0, 'lo'), close(0), ...done],
    text: 'Hello',
    rules: ['text-in-start'],
  },
  {
    name: 'all of it in the start',
    wire: [start(), open(0, text('Hello')), close(0), ...done],
    text: 'Hello',
    rules: ['text-in-start'],
  },
  {
    name: 'the start repeated in pieces',
    wire: [start(), open(0, text('Hello')), say(0, 'Hel'), say(0, 'lo'), close(0), ...done],
    text: 'Hello',
    rules: ['start-text-repeated'],
  },
  {
    name: 'the start repeated, and more',
    wire: [start(), open(0, text('Hel')), say(0, 'He'), say(0, 'llo'), say(0, '!'), close(0), ...done],
    text: 'Hello!',
    rules: ['start-text-repeated'],
  },
  {
    name: 'a prefix that looked repeated',
    wire: [start(), open(0, text('abc')), say(0, 'a'), say(0, 'x'), close(0), ...done],
    text: 'abcax',
    rules: ['text-in-start'],
  },
  {
    name: 'a prefix that looked repeated to the end',
    wire: [start(), open(0, text('ha')), say(0, 'h'), close(0), ...done],
    text: 'hah',
    rules: ['text-in-start'],
  },
  {
    name: 'thinking repeated',
    wire: [
      start(),
      open(0, thinking('why', 'S')),
      think(0, 'w'),
      think(0, 'hy'),
      sign(0, 'S'),
      close(0),
      ...says(1, 'a'),
      ...done,
    ],
    text: 'a',
    reasoning: 'why',
    extras: { thinking_blocks: [{ type: 'thinking', thinking: 'why', signature: 'S' }] },
    rules: ['start-text-repeated', 'signature-repeated'],
  },
  {
    name: 'a held start when the stream is cut',
    wire: [start(), open(0, text('Hello'))],
    text: 'Hello',
    finish: null,
    rules: ['ended-early', 'text-in-start'],
  },
  // Signatures
  {
    name: 'a signature in pieces',
    wire: [start(), open(0, thinking()), think(0, 'x'), sign(0, 'AA'), sign(0, 'BB'), close(0), ...done],
    reasoning: 'x',
    extras: { thinking_blocks: [{ type: 'thinking', thinking: 'x', signature: 'AABB' }] },
    rules: ['signature-split'],
  },
  {
    name: 'a signature after the stop',
    wire: [
      start(),
      open(0, thinking()),
      think(0, 'x'),
      close(0),
      open(1, text()),
      say(1, 'a'),
      sign(0, 'L'),
      say(1, 'b'),
      close(1),
      ...done,
    ],
    text: 'ab',
    reasoning: 'x',
    extras: { thinking_blocks: [{ type: 'thinking', thinking: 'x', signature: 'L' }] },
    rules: ['signature-late'],
  },
  {
    name: 'a signature at the index of the text',
    wire: [start(), open(0, thinking()), think(0, 'x'), close(0), open(1, text()), say(1, 'a'), sign(1, 'L'), close(1), ...done],
    text: 'a',
    reasoning: 'x',
    extras: { thinking_blocks: [{ type: 'thinking', thinking: 'x', signature: 'L' }] },
    rules: ['delta-of-another-kind', 'signature-late'],
  },
  // Calls
  {
    name: 'the input in the start and in deltas',
    wire: [start(), open(0, tool('t', 'f', { a: 1 })), args(0, '{"a"'), args(0, ':1}'), close(0), ...called],
    calls: [['t', 'f', '{"a":1}']],
    finish: 'tool_calls',
    rules: ['input-in-start-and-deltas'],
  },
  {
    name: 'the input in the start and an empty delta',
    wire: [start(), open(0, tool('t', 'f', { a: 1 })), args(0, ''), close(0), ...called],
    calls: [['t', 'f', '{"a":1}']],
    finish: 'tool_calls',
    rules: [],
  },
  {
    name: 'no input at all',
    wire: [start(), open(0, { type: 'tool_use', id: 't', name: 'f' }), args(0, '{"p":"a"}'), close(0), ...called],
    calls: [['t', 'f', '{"p":"a"}']],
    finish: 'tool_calls',
    rules: [],
  },
  {
    name: 'an object in place of text',
    wire: [start(), open(0, tool('t', 'f')), args(0, { a: 1 }), close(0), ...called],
    calls: [['t', 'f', '{"a":1}']],
    finish: 'tool_calls',
    rules: [],
  },
  {
    name: 'an empty object, then the arguments',
    wire: [start(), open(0, tool('t', 'f')), args(0, '{}'), args(0, '{"a":1}'), close(0), ...called],
    calls: [['t', 'f', '{"a":1}']],
    finish: 'tool_calls',
    rules: ['input-sent-twice'],
  },
  {
    name: 'two calls interleaved',
    wire: [
      start(),
      open(0, tool('a', 'f')),
      open(1, tool('b', 'g')),
      args(0, '{"a"'),
      args(1, '{"b"'),
      args(0, ':1}'),
      args(1, ':2}'),
      close(0),
      close(1),
      ...called,
    ],
    calls: [
      ['a', 'f', '{"a":1}'],
      ['b', 'g', '{"b":2}'],
    ],
    finish: 'tool_calls',
    rules: ['blocks-overlap'],
  },
  {
    name: 'an id twice, blank and a number',
    wire: [start(), ...['a', 'a', '', 7].flatMap((id, index) => [open(index, tool(id, 'f')), close(index)]), ...called],
    calls: [
      ['a', 'f', '{}'],
      [DERIVED, 'f', '{}'],
      [DERIVED, 'f', '{}'],
      ['7', 'f', '{}'],
    ],
    finish: 'tool_calls',
    rules: ['tool-id-duplicate', 'tool-id-missing'],
  },
  {
    name: 'arguments after the stop',
    wire: [start(), open(0, tool('t', 'f')), args(0, '{"a":1}'), close(0), args(0, '{"a":2}'), ...called],
    calls: [['t', 'f', '{"a":1}']],
    finish: 'tool_calls',
    rules: ['input-after-stop'],
  },
  {
    name: 'arguments that never close',
    wire: [start(), open(0, tool('t', 'f')), args(0, '{"a":'), close(0), ...called],
    calls: [['t', 'f', '{"a":']],
    finish: 'tool_calls',
    rules: ['input-not-json'],
  },
  {
    name: 'max_tokens before the arguments, without a stop',
    wire: [start(), open(0, tool('t', 'f')), finish('max_tokens'), stop],
    calls: [['t', 'f', '{}']],
    finish: 'length',
    rules: [],
  },
  {
    name: 'a server tool of the future',
    wire: [start(), open(0, { type: 'x_tool_use', id: 's', name: 'x', input: {} }), args(0, '{"a":1}'), close(0), ...done],
    extras: { blocks: [{ type: 'x_tool_use', id: 's', name: 'x', input: { a: 1 } }] },
    rules: [],
  },
];

const body = (wire: Row['wire']): string => wire.map((part) => (typeof part === 'string' ? part : frames([part]))).join('');

test.each(rows)(
  '$name',
  ({ wire, text: said = '', reasoning = '', calls = [], finish: end = 'stop', extras, error, code, rules }) => {
    const found = run(body(wire));
    const { usage: _, ...whole } = summary(found);
    expect(whole).toMatchObject({
      text: said,
      reasoning,
      tool_calls: calls.map(([id, name, text]) => ({ id, name, arguments: text })),
      finish_reason: end,
      ...(extras && { extras }),
      ...(error && { error }),
    });
    expect(found.error?.code).toBe(code);
    expect(found.rules).toEqual(rules.map((rule) => (rule.includes('/') ? rule : `anthropic/${rule}`)));
  },
);

test.each(rows)('split anywhere: $name', ({ wire }) => {
  const whole = run(body(wire));
  for (const size of [1, 7]) expect(run(body(wire), size).events).toEqual(whole.events);
});

// A call is judged by what it is in the end, not by what it was when its block stopped.
test.each([
  { before: '{"a":', after: '1}', input: { a: 1 }, status: undefined, rules: ['input-after-stop'] },
  { before: '', after: '{"a":', input: {}, status: 'incomplete', rules: ['input-after-stop', 'input-not-json'] },
  { before: '{"a":', after: '2', input: {}, status: 'incomplete', rules: ['input-after-stop', 'input-not-json'] },
])('arguments $before stop $after', ({ before, after, input, status, rules }) => {
  const { message, rules: found } = run(
    frames([start(), open(0, tool('t', 'f')), args(0, before), close(0), args(0, after), ...called]),
  );
  const [call] = message.content;
  expect(call).toMatchObject({ type: 'tool_use', input, input_raw: before + after });
  expect(call?.type === 'tool_use' && call.status).toBe(status);
  expect(found).toEqual(rules.map((rule) => `anthropic/${rule}`));
});
