import { describe, expect, test } from 'vitest';
import {
  bodyOf,
  encodeResponses,
  type Json,
  payloadsOf,
  responseOf,
  responsesContext,
  SDKS,
} from '../../../../test/sdk/responses.ts';
import type { BlockDelta, CanonicalStreamEvent, MessageDelta } from '../../src/canonical/events.ts';
import type { ContentBlock, StopReason } from '../../src/canonical/message.ts';
import type { CodecContext } from '../../src/codec/protocol.ts';
import { ResponsesGrammar } from '../../src/protocols/openai-responses/grammar.ts';
import { decodeRequestBody } from '../../src/protocols/openai-responses/request-decode.ts';

const START: CanonicalStreamEvent = { type: 'message_start', message: { id: 'msg_abc', model: 'claude', created: 7 } };
const begin = (index: number, content_block: ContentBlock): CanonicalStreamEvent => ({
  type: 'content_block_start',
  index,
  content_block,
});
const delta = (index: number, part: BlockDelta): CanonicalStreamEvent => ({ type: 'content_block_delta', index, delta: part });
const stop = (index: number): CanonicalStreamEvent => ({ type: 'content_block_stop', index });
const finish = (reason: StopReason, more: Partial<MessageDelta> = {}): CanonicalStreamEvent[] => [
  { type: 'message_delta', delta: { stop_reason: reason }, usage: { input_tokens: 3, output_tokens: 2 }, ...more },
  { type: 'message_stop' },
];
const say = (text: string): BlockDelta => ({ type: 'text_delta', text });
const args = (partial_json: string): BlockDelta => ({ type: 'input_json_delta', partial_json });
const use = (id: string): ContentBlock => ({ type: 'tool_use', id, name: 'f', input: {} });

const foreign = (changes: Partial<CodecContext> = {}) => responsesContext({ source: 'anthropic-messages', ...changes });

function run(events: readonly CanonicalStreamEvent[], context = foreign()) {
  const frames = encodeResponses(events, context);
  const outcome = ResponsesGrammar.check(frames);
  const payloads = payloadsOf(frames);
  const types = payloads.map(({ type }) => String(type).replace(/^response\./, ''));
  const last = responseOf(frames);
  return { frames, outcome, payloads, types, last, output: last['output'] as Json[], notes: context.notes };
}

interface Row {
  name: string;
  events: CanonicalStreamEvent[];
  types?: string[];
  output: Json[];
  outcome?: string;
  notes?: string[];
}

const OPENING = ['created', 'in_progress'];

const ROWS: Row[] = [
  {
    name: 'text',
    events: [START, begin(0, { type: 'text', text: '' }), delta(0, say('a')), delta(0, say('b')), stop(0), ...finish('end_turn')],
    types: [
      ...OPENING,
      'output_item.added',
      'content_part.added',
      'output_text.delta',
      'output_text.delta',
      'output_text.done',
      'content_part.done',
      'output_item.done',
      'completed',
    ],
    output: [
      {
        type: 'message',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'ab', annotations: [], logprobs: [] }],
      },
    ],
  },
  {
    name: 'P112 a summary has a part, reasoning text of another protocol is a summary',
    events: [
      START,
      begin(0, { type: 'thinking', thinking: '', variant: 'full' }),
      delta(0, { type: 'thinking_delta', thinking: 'raw' }),
      stop(0),
      begin(1, { type: 'thinking', thinking: '', variant: 'summary' }),
      delta(1, { type: 'thinking_delta', thinking: 'one', summary_index: 0 }),
      delta(1, { type: 'thinking_delta', thinking: '\n\n', summary_index: 1 }),
      delta(1, { type: 'thinking_delta', thinking: 'two', summary_index: 1 }),
      stop(1),
      ...finish('end_turn'),
    ],
    types: [
      ...OPENING,
      'output_item.added',
      'reasoning_summary_part.added',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.done',
      'reasoning_summary_part.done',
      'output_item.done',
      'output_item.added',
      'reasoning_summary_part.added',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.done',
      'reasoning_summary_part.done',
      'reasoning_summary_part.added',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.done',
      'reasoning_summary_part.done',
      'output_item.done',
      'completed',
    ],
    output: [
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'raw' }] },
      {
        type: 'reasoning',
        summary: [
          { type: 'summary_text', text: 'one' },
          { type: 'summary_text', text: 'two' },
        ],
      },
    ],
  },
  {
    name: 'a blank line stands between two summaries, and may stand in one',
    events: [
      START,
      begin(0, { type: 'thinking', thinking: '', variant: 'summary' }),
      ...[0, 0, 1, 1, 1, 1].map((summary_index, i) =>
        delta(0, { type: 'thinking_delta', thinking: i === 1 || i === 4 ? 'a' : '\n\n', summary_index }),
      ),
      stop(0),
      ...finish('end_turn'),
    ],
    types: [
      ...OPENING,
      'output_item.added',
      'reasoning_summary_part.added',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.done',
      'reasoning_summary_part.done',
      'reasoning_summary_part.added',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.done',
      'reasoning_summary_part.done',
      'output_item.done',
      'completed',
    ],
    output: [
      {
        type: 'reasoning',
        summary: [
          { type: 'summary_text', text: '\n\na' },
          { type: 'summary_text', text: '\n\na\n\n' },
        ],
      },
    ],
  },
  {
    name: 'P111 interleaved calls stay interleaved, numbered as they open',
    events: [
      START,
      begin(0, use('a')),
      begin(1, use('b')),
      delta(0, args('{"x"')),
      delta(1, args('{"y"')),
      delta(0, args(':1}')),
      delta(1, args(':2}')),
      stop(0),
      stop(1),
      ...finish('tool_use'),
    ],
    types: [
      ...OPENING,
      'output_item.added',
      'output_item.added',
      'function_call_arguments.delta',
      'function_call_arguments.delta',
      'function_call_arguments.delta',
      'function_call_arguments.delta',
      'function_call_arguments.done',
      'output_item.done',
      'function_call_arguments.done',
      'output_item.done',
      'completed',
    ],
    output: [
      { type: 'function_call', call_id: 'a', name: 'f', arguments: '{"x":1}', status: 'completed' },
      { type: 'function_call', call_id: 'b', name: 'f', arguments: '{"y":2}', status: 'completed' },
    ],
  },
  {
    name: 'P42 a call without arguments has the empty object',
    events: [START, begin(0, use('a')), stop(0), begin(1, use('b')), stop(1), ...finish('tool_use')],
    output: [
      { arguments: '{}', status: 'completed' },
      { arguments: '{}', status: 'completed' },
    ],
  },
  {
    name: 'a call that was cut stays cut',
    events: [START, begin(0, use('a')), delta(0, args('{"x"')), stop(0), ...finish('max_tokens')],
    outcome: 'incomplete',
    output: [{ arguments: '{"x"', status: 'incomplete' }],
  },
  {
    name: 'and one that lost all its arguments gets none',
    events: [START, begin(0, use('a')), stop(0), ...finish('max_tokens')],
    outcome: 'incomplete',
    output: [{ arguments: '', status: 'incomplete' }],
  },
  {
    name: 'a custom call is text',
    events: [
      START,
      begin(0, { type: 'tool_use', id: 'a', name: 'sql', input: '', kind: 'custom' }),
      delta(0, { type: 'input_text_delta', text: 'SELECT 1' }),
      stop(0),
      ...finish('tool_use'),
    ],
    types: [
      ...OPENING,
      'output_item.added',
      'custom_tool_call_input.delta',
      'custom_tool_call_input.done',
      'output_item.done',
      'completed',
    ],
    output: [{ type: 'custom_tool_call', call_id: 'a', name: 'sql', input: 'SELECT 1' }],
  },
  {
    name: 'P28 a call names its namespace',
    events: [
      START,
      begin(0, { type: 'tool_use', id: 'a', name: 'get', namespace: 'crm', input: {} }),
      stop(0),
      ...finish('tool_use'),
    ],
    output: [{ type: 'function_call', name: 'get', namespace: 'crm' }],
  },
  {
    name: 'P37 a refusal is a part of its own',
    events: [
      START,
      begin(0, { type: 'text', text: '' }),
      delta(0, say('Well.')),
      stop(0),
      begin(1, { type: 'text', text: '', refusal: true }),
      delta(1, say('No.')),
      stop(1),
      ...finish('end_turn'),
    ],
    output: [
      {
        type: 'message',
        content: [
          { type: 'output_text', text: 'Well.' },
          { type: 'refusal', refusal: 'No.' },
        ],
      },
    ],
  },
  {
    name: 'P38 a refusal before any word: what the provider says of it',
    events: [
      START,
      ...finish('refusal', {
        delta: { stop_reason: 'refusal', stop_details: { category: 'cyber', explanation: 'Not this.' } },
      }),
    ],
    output: [{ type: 'message', content: [{ type: 'refusal', refusal: 'Not this.' }] }],
  },
  { name: 'P38 or that it was filtered', events: [START, ...finish('refusal')], outcome: 'incomplete', output: [] },
  {
    name: 'P41 citations: with their place, or over the whole text; those of documents are lost',
    events: [
      START,
      begin(0, { type: 'text', text: '' }),
      delta(0, say('héé')),
      delta(0, { type: 'citations_delta', citation: { kind: 'url', url: 'u', title: 't', origin: 'anthropic-messages' } }),
      delta(0, { type: 'citations_delta', citation: { kind: 'url', url: 'v', start: 1, end: 2, origin: 'gemini' } }),
      delta(0, { type: 'citations_delta', citation: { kind: 'document', origin: 'anthropic-messages' } }),
      delta(0, say('y')),
      stop(0),
      ...finish('end_turn'),
    ],
    output: [
      {
        content: [
          {
            annotations: [
              { type: 'url_citation', url: 'v', title: '', start_index: 1, end_index: 2 },
              { type: 'url_citation', url: 'u', title: 't', start_index: 0, end_index: 4 },
            ],
          },
        ],
      },
    ],
    notes: ['DROPPED citations'],
  },
  {
    name: 'log probabilities',
    events: [
      START,
      begin(0, { type: 'text', text: '' }),
      delta(0, {
        type: 'text_delta',
        text: 'a',
        logprobs: [{ token: 'a', logprob: -1, bytes: [97], top: [{ token: 'b', logprob: -2 }] }],
      }),
      stop(0),
      ...finish('end_turn'),
    ],
    output: [
      {
        content: [
          {
            logprobs: [{ token: 'a', logprob: -1, bytes: [97], top_logprobs: [{ token: 'b', logprob: -2, bytes: [] }] }],
          },
        ],
      },
    ],
  },
  {
    name: 'what the provider ran, and what has no form here, is told',
    events: [
      START,
      begin(0, { type: 'tool_use', id: 's', name: 'web_search', input: {}, kind: 'server' }),
      delta(0, args('{}')),
      stop(0),
      begin(1, { type: 'tool_result', tool_use_id: 's', content: 'x', kind: 'server' }),
      stop(1),
      begin(2, { type: 'image', source: { data: 'AAA', media_type: 'image/png' } }),
      stop(2),
      begin(3, { type: 'image', source: { url: 'https://x' } }),
      stop(3),
      begin(4, { type: 'opaque', origin: 'gemini', raw: {}, text: 'stand-in' }),
      stop(4),
      begin(5, { type: 'opaque', origin: 'gemini', raw: {} }),
      stop(5),
      ...finish('end_turn'),
    ],
    output: [
      { type: 'image_generation_call', result: 'AAA', status: 'completed' },
      { type: 'message', content: [{ text: 'stand-in' }] },
    ],
    notes: [
      'DROPPED content.server_tool_use',
      'DROPPED content.tool_result',
      'APPROXIMATED content.image',
      'DROPPED content.image',
      'DROPPED content.opaque',
    ],
  },
  {
    name: 'two calls of one id get two',
    events: [START, begin(0, use('a')), stop(0), begin(1, use('a')), stop(1), ...finish('tool_use')],
    output: [{ call_id: 'a' }, { call_id: expect.stringMatching(/^call_[0-9a-f]{24}$/) as unknown }],
    notes: ['RENAMED content.tool_use.id'],
  },
  {
    name: 'pause_turn has no word here',
    events: [START, ...finish('pause_turn')],
    output: [],
    notes: ['APPROXIMATED stop_reason'],
  },
  {
    name: 'P75 one answer',
    events: [
      START,
      { type: 'content_block_start', index: 0, choice: 1, content_block: { type: 'text', text: 'B' } },
      begin(0, { type: 'text', text: 'A' }),
      stop(0),
      { type: 'content_block_stop', index: 0, choice: 1 },
      { type: 'message_delta', choice: 1, delta: { stop_reason: 'max_tokens' } },
      ...finish('end_turn'),
    ],
    output: [{ content: [{ text: 'A' }] }],
    notes: ['DROPPED choices'],
  },
  {
    name: 'empty text says nothing',
    events: [START, begin(0, { type: 'text', text: '' }), stop(0), ...finish('end_turn')],
    output: [],
  },
];

describe.each(ROWS)('$name', ({ events, types, output, outcome = 'completed', notes = [] }) => {
  const result = run(events);

  test('is written', () => {
    expect(result.outcome).toBe(outcome);
    if (types) expect(result.types).toEqual(types);
    expect(result.output).toHaveLength(output.length);
    expect(result.output).toMatchObject(output);
    expect(result.notes.map(({ code, feature }) => `${code} ${feature}`)).toEqual(notes);
  });

  test.each(SDKS)('is read by $name', async ({ stream }) => {
    expect((await stream(bodyOf(result.frames))).output).toMatchObject(output);
  });
});

test('the envelope: an id of this protocol, the model that was asked for, and what was asked', () => {
  const request = decodeRequestBody(
    {
      model: 'asked',
      input: 'hi',
      instructions: 'Be brief.',
      tools: [
        {
          type: 'namespace',
          name: 'n',
          description: 'd',
          tools: [{ type: 'function', name: 'f', parameters: null, strict: true }],
        },
      ],
      tool_choice: 'required',
      temperature: 0.5,
      metadata: { a: 'b' },
      reasoning: { effort: 'low' },
      max_output_tokens: 20,
      text: { verbosity: 'low' },
    },
    responsesContext(),
  );
  const { payloads, last } = run(
    [START, ...finish('end_turn', { usage: { input_tokens: 3, output_tokens: 2 } })],
    foreign({ request }),
  );
  const created = payloads[0]?.['response'] as Json;
  expect(created).toMatchObject({
    id: 'resp_msg_abc',
    status: 'in_progress',
    output: [],
    usage: null,
    created_at: 7,
    completed_at: null,
  });
  expect(last).toMatchObject({
    id: 'resp_msg_abc',
    object: 'response',
    status: 'completed',
    model: 'asked',
    instructions: 'Be brief.',
    tools: [{ type: 'namespace', name: 'n', description: 'd', tools: [{ type: 'function', name: 'f', strict: true }] }],
    tool_choice: 'required',
    temperature: 0.5,
    top_p: 1,
    presence_penalty: 0,
    frequency_penalty: 0,
    service_tier: 'default',
    access_programs: null,
    metadata: { a: 'b' },
    reasoning: { effort: 'low', summary: null },
    max_output_tokens: 20,
    text: { format: { type: 'text' }, verbosity: 'low' },
    completed_at: 1_700_000_000,
    error: null,
    incomplete_details: null,
    usage: {
      input_tokens: 3,
      input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
      output_tokens: 2,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 5,
    },
  });
});

describe('P110 a stream that fails', () => {
  const error = { code: 'OVERLOADED', message: 'busy' } as const;
  const cut = [START, begin(0, { type: 'text', text: '' }), delta(0, say('a'))];

  test.each<[string, CanonicalStreamEvent[], string]>([
    ['says the error, then that the response has failed', [...cut, { type: 'error', error }], 'server_error'],
    ['also when it ends early: no stop is invented', cut, 'server_error'],
    ['also before it began', [{ type: 'error', error: { code: 'RATE_LIMIT', message: 'slow down' } }], 'rate_limit_exceeded'],
    ['also when the provider broke off', [...cut, stop(0), ...finish('error')], 'server_error'],
    ['also when it stops without saying why', [...cut, stop(0), { type: 'message_stop' }], 'server_error'],
  ])('%s', async (_, events, code) => {
    const { outcome, types, last, frames } = run(events);
    expect(outcome).toBe('failed');
    expect(types.slice(-2)).toEqual(['error', 'failed']);
    expect(last).toMatchObject({ status: 'failed', error: { code } });
    for (const { stream } of SDKS) await expect(stream(bodyOf(frames))).rejects.toBeDefined();
  });

  test('strict: what may not be lost ends the stream', () => {
    const { outcome, last } = run([START, begin(0, { type: 'audio', source: {} })], foreign({ policy: { strict: true } }));
    expect([outcome, (last['error'] as Json)['code']]).toEqual(['failed', 'invalid_prompt']);
  });

  test('what is nested too deeply to be written', () => {
    const raw = { type: 'x', deep: JSON.parse(`${'['.repeat(50_000)}${']'.repeat(50_000)}`) };
    const { outcome } = run([START, begin(0, { type: 'opaque', origin: 'openai-responses', raw })], responsesContext());
    expect(outcome).toBe('failed');
  });
});

describe('an answer whose upstream told no usage', () => {
  const ends = (stop_reason: StopReason): CanonicalStreamEvent[] => [
    START,
    { type: 'message_delta', delta: { stop_reason } },
    { type: 'message_stop' },
  ];

  test.each(['end_turn', 'max_tokens'] as const)('has zeros, and that is told: %s', (stop) => {
    const { last, notes } = run(ends(stop));
    expect(last['usage']).toMatchObject({ input_tokens: 0, output_tokens: 0, total_tokens: 0 });
    expect(notes).toMatchObject([{ code: 'APPROXIMATED', path: '/usage', feature: 'usage' }]);
  });

  test('has none when it failed', () => {
    const { last, notes } = run([START, { type: 'error', error: { code: 'OVERLOADED', message: 'busy' } }]);
    expect({ usage: last['usage'], notes }).toEqual({ usage: null, notes: [] });
  });
});

test('P132 a ping is nothing, and nothing follows the end', () => {
  const { types } = run([START, { type: 'ping' }, ...finish('end_turn'), { type: 'ping' }, begin(0, use('a'))]);
  expect(types).toEqual([...OPENING, 'completed']);
});

test('a signature that comes after its item is done stands in the response at the end, and is told', () => {
  const signature = { origin: 'anthropic-messages', form: 'signature', value: 's' } as const;
  const { output, notes } = run([
    START,
    begin(0, { type: 'thinking', thinking: 'T' }),
    stop(0),
    begin(1, { type: 'text', text: 'A' }),
    delta(0, { type: 'signature_delta', signature }),
    stop(1),
    ...finish('end_turn'),
  ]);
  expect(output[0]).toMatchObject({ type: 'reasoning', encrypted_content: expect.stringMatching(/^cv1\./) as unknown });
  expect(notes).toMatchObject([{ code: 'APPROXIMATED', feature: 'content.signature', path: '/content/0' }]);
});

test('calls that went on after their block had stopped: what is still here is mended, the rest is told', () => {
  const late = (index: number, raw: string): NonNullable<MessageDelta['late_blocks']>[number] => ({
    index,
    content_block: { ...use('a'), type: 'tool_use', id: 'a', name: 'f', input: {}, input_raw: raw },
  });
  const mended = run([
    START,
    begin(0, use('a')),
    delta(0, args('{"x"')),
    stop(0),
    ...finish('tool_use', { late_blocks: [late(0, '{"x":1}')] }),
  ]);
  expect(mended.output).toMatchObject([{ arguments: '{"x":1}', status: 'completed' }]);
  expect(mended.notes).toEqual([]);
  const gone = run([
    START,
    begin(0, use('a')),
    delta(0, args('{}')),
    stop(0),
    ...finish('tool_use', { late_blocks: [late(0, '{"x":1}')] }),
  ]);
  expect(gone.output).toMatchObject([{ arguments: '{}' }]);
  expect(gone.notes).toMatchObject([{ code: 'APPROXIMATED', feature: 'content.tool_use' }]);
});

test('the cost is linear: each delta is written once, and once at its end', () => {
  const size = (count: number): number => {
    const deltas = Array.from({ length: count }, () => delta(0, say('0123456789')));
    return bodyOf(run([START, begin(0, { type: 'text', text: '' }), ...deltas, stop(0), ...finish('end_turn')]).frames).length;
  };
  const [small, large] = [size(100), size(1000)];
  expect(large / small).toBeLessThan(11);
});
