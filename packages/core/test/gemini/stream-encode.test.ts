import { describe, expect, test } from 'vitest';
import {
  encodeGemini,
  fragmentsOf,
  geminiContext,
  hear,
  type Json,
  type Part,
  piecesOf,
  SDKS,
} from '../../../../test/sdk/gemini.ts';
import { MessageAccumulator } from '../../src/accumulate/message.ts';
import type { BlockDelta, CanonicalStreamEvent } from '../../src/canonical/events.ts';
import type { ContentBlock, StopReason } from '../../src/canonical/message.ts';
import type { SignedBlob } from '../../src/canonical/protocol.ts';
import type { CanonicalRequest } from '../../src/canonical/request.ts';
import { decodeCarrier } from '../../src/codec/answers.ts';
import { createFramer } from '../../src/engine/stream.ts';
import { isObject } from '../../src/json/json.ts';
import { geminiCodec } from '../../src/protocols/gemini/codec.ts';
import { GeminiGrammar } from '../../src/protocols/gemini/grammar.ts';
import { encodeResponse } from '../../src/protocols/gemini/response.ts';
import { encodeStream } from '../../src/protocols/gemini/stream-encode.ts';
import { run } from './run.ts';

type Events = CanonicalStreamEvent[];

const start: Events = [{ type: 'message_start', message: { id: 'r1', model: 'claude' } }];
const open = (index: number, content_block: ContentBlock, choice?: number): Events => [
  { type: 'content_block_start', index, content_block, ...(choice !== undefined && { choice }) },
];
const delta = (index: number, value: BlockDelta, choice?: number): Events => [
  { type: 'content_block_delta', index, delta: value, ...(choice !== undefined && { choice }) },
];
const close = (index: number, content_block?: ContentBlock): Events => [
  { type: 'content_block_stop', index, ...(content_block && { content_block }) },
];
const finish = (stop_reason: StopReason, more: object = {}): Events => [
  { type: 'message_delta', delta: { stop_reason }, ...more } as CanonicalStreamEvent,
  { type: 'message_stop' },
];

const TEXT: ContentBlock = { type: 'text', text: '' };
const THINKING: ContentBlock = { type: 'thinking', thinking: '' };
const use = (id: string, rest: object = {}): ContentBlock => ({ type: 'tool_use', id, name: 'f', input: {}, ...rest });
const say = (index: number, ...texts: string[]): Events => [
  ...open(index, TEXT),
  ...texts.flatMap((text) => delta(index, { type: 'text_delta', text })),
  ...close(index),
];
const think = (index: number, thinking: string, signature?: SignedBlob): Events => [
  ...open(index, THINKING),
  ...delta(index, { type: 'thinking_delta', thinking }),
  ...(signature ? delta(index, { type: 'signature_delta', signature }) : []),
  ...close(index),
];
const args = (index: number, partial_json: string): Events => delta(index, { type: 'input_json_delta', partial_json });
const blob = (origin: SignedBlob['origin']): SignedBlob => ({ origin, form: 'signature', value: 'S' });
const call = (id: string, value: object = {}): Part => ({ functionCall: { id, name: 'f', args: value as Json } });
const error = (code: 'OVERLOADED' | 'STREAM_TRUNCATED'): Events => [{ type: 'error', error: { code, message: 'm' } }];

interface Row {
  name: string;
  events: Events;
  parts: unknown[];
  finish?: string;
  notes?: string[];
  request?: Partial<CanonicalRequest>;
  /** The whole message says more than could be said live. */
  isLate?: true;
}

const ROWS: Row[] = [
  {
    name: 'text as it comes',
    events: [...start, ...say(0, 'a', 'b'), ...finish('end_turn')],
    parts: [{ text: 'a' }, { text: 'b' }],
  },
  {
    name: 'P93 P102 interleaved calls go out whole, in the order in which they began; the same id twice',
    events: [
      ...start,
      ...open(0, use('x')),
      ...open(1, use('x')),
      ...args(1, '{"b"'),
      ...args(0, '{"a":1}'),
      ...args(1, ':2}'),
      ...close(1),
      ...close(0),
      ...finish('tool_use'),
    ],
    parts: [call('x', { a: 1 }), call('x', { b: 2 })],
  },
  {
    name: 'P42 a call without arguments, when the message goes on or ends well',
    events: [...start, ...open(0, use('x')), ...close(0), ...open(1, use('y')), ...close(1), ...finish('tool_use')],
    parts: [call('x'), call('y')],
  },
  {
    name: 'a call that was cut is left out',
    events: [...start, ...say(0, 'a'), ...open(1, use('x')), ...args(1, '{"a":'), ...close(1), ...finish('max_tokens')],
    parts: [{ text: 'a' }],
    finish: 'MAX_TOKENS',
    notes: ['DROPPED content.tool_use'],
  },
  {
    name: 'of parallel calls both may be cut',
    events: [
      ...start,
      ...open(0, use('x')),
      ...open(1, use('y')),
      ...args(0, '{"a":'),
      ...close(0),
      ...close(1),
      ...finish('max_tokens'),
    ],
    parts: [],
    finish: 'MAX_TOKENS',
    notes: ['DROPPED content.tool_use', 'DROPPED content.tool_use'],
  },
  {
    name: 'a call flagged as incomplete is left out, whatever its text',
    events: [
      ...start,
      ...open(0, use('x')),
      ...args(0, '{}'),
      ...close(0, use('x', { status: 'incomplete' })),
      ...finish('end_turn'),
    ],
    parts: [],
    notes: ['DROPPED content.tool_use'],
  },
  {
    name: 'a whole call is kept behind one that was cut',
    events: [
      ...start,
      ...open(0, use('x')),
      ...open(1, use('y')),
      ...args(0, '{"a":'),
      ...args(1, '{"b":2}'),
      ...close(0),
      ...close(1),
      ...finish('max_tokens'),
    ],
    parts: [call('y', { b: 2 })],
    finish: 'MAX_TOKENS',
    notes: ['DROPPED content.tool_use'],
  },
  {
    name: 'a call without arguments was not cut when text follows',
    events: [...start, ...open(0, use('x')), ...close(0), ...say(1, 'a'), ...finish('max_tokens')],
    parts: [call('x'), { text: 'a' }],
    finish: 'MAX_TOKENS',
  },
  {
    name: 'P43 P44 arguments that are no object stand under input, null is none',
    events: [
      ...start,
      ...open(0, use('x')),
      ...args(0, '[1]'),
      ...close(0),
      ...open(1, use('y')),
      ...args(1, ' null'),
      ...close(1),
      ...finish('tool_use'),
    ],
    parts: [call('x', { input: [1] }), call('y')],
    notes: ['APPROXIMATED tool_use.input'],
  },
  {
    name: 'a broken call is left out, however the message ended',
    events: [
      ...start,
      ...open(0, use('x')),
      ...args(0, '{"a'),
      ...close(0),
      ...open(1, use('y')),
      ...args(1, '{"b":2}'),
      ...close(1),
      ...finish('tool_use'),
    ],
    parts: [call('y', { b: 2 })],
    notes: ['DROPPED content.tool_use'],
  },
  {
    name: 'without any call that could be run the turn is no good end',
    events: [...start, ...say(0, 'a'), ...open(1, use('x')), ...args(1, '{"a'), ...close(1), ...finish('tool_use')],
    parts: [{ text: 'a' }],
    finish: 'MALFORMED_FUNCTION_CALL',
    notes: ['DROPPED content.tool_use'],
  },
  {
    name: 'the text of a custom tool stands under input, whatever it looks like',
    events: [
      ...start,
      ...open(0, use('x', { kind: 'custom', input: '' })),
      ...delta(0, { type: 'input_text_delta', text: '{"a":1}' }),
      ...close(0),
      ...open(1, use('y', { kind: 'custom', input: '' })),
      ...close(1),
      ...finish('tool_use'),
    ],
    parts: [call('x', { input: '{"a":1}' }), call('y', { input: '' })],
    notes: ['APPROXIMATED tool_use.input', 'APPROXIMATED tool_use.input'],
  },
  {
    name: 'a name that was settled late',
    events: [...start, ...open(0, use('x')), ...close(0, use('x', { name: 'full' })), ...finish('tool_use')],
    parts: [{ functionCall: { id: 'x', name: 'full', args: {} } }],
  },
  {
    name: 'a call that changed after it had been passed on',
    events: [
      ...start,
      ...open(0, use('x')),
      ...args(0, '{"a":1}'),
      ...close(0),
      ...finish('tool_use', { late_blocks: [{ index: 0, content_block: use('x', { input_raw: '{"a":2}' }) }] }),
    ],
    parts: [call('x', { a: 1 })],
    isLate: true,
    notes: ['APPROXIMATED content.tool_use'],
  },
  {
    name: 'a call that changed while it waited',
    events: [
      ...start,
      ...open(0, use('x')),
      ...close(0),
      ...finish('tool_use', { late_blocks: [{ index: 0, content_block: use('x', { input_raw: '{"a":2}' }) }] }),
    ],
    parts: [call('x', { a: 2 })],
  },
  {
    name: 'thoughts and their signature',
    events: [
      ...start,
      ...think(0, 'hm', { ...blob('gemini'), form: 'thought_signature' }),
      ...say(1, 'a'),
      ...finish('end_turn'),
    ],
    parts: [{ text: 'hm', thought: true }, { text: '', thought: true, thoughtSignature: 'S' }, { text: 'a' }],
  },
  {
    name: 'thoughts that the client did not ask for are hidden, their signature goes',
    events: [
      ...start,
      ...think(0, 'hm', { ...blob('gemini'), form: 'thought_signature' }),
      ...say(1, 'a'),
      ...finish('end_turn'),
    ],
    parts: [{ text: '', thought: true, thoughtSignature: 'S' }, { text: 'a' }],
    request: { thinking: { type: 'adaptive', display: 'omitted' } },
  },
  {
    name: 'thoughts that the client asked for',
    events: [...start, ...think(0, 'hm'), ...finish('end_turn')],
    parts: [{ text: 'hm', thought: true }],
    request: { thinking: { type: 'enabled', display: 'summarized' } },
  },
  {
    name: 'the signature of a call stands on its part, wherever it came',
    events: [
      ...start,
      ...open(0, use('x')),
      ...delta(0, { type: 'signature_delta', signature: { ...blob('gemini'), form: 'thought_signature' } }),
      ...args(0, '{}'),
      ...close(0),
      ...finish('tool_use'),
    ],
    parts: [{ ...call('x'), thoughtSignature: 'S' }],
  },
  {
    name: 'a signature that came late',
    events: [
      ...start,
      ...think(0, 'hm'),
      ...say(1, 'a'),
      ...delta(0, { type: 'signature_delta', signature: { ...blob('gemini'), form: 'thought_signature' } }),
      ...finish('end_turn'),
    ],
    parts: [{ text: 'hm', thought: true }, { text: 'a' }, { text: '', thought: true, thoughtSignature: 'S' }],
  },
  {
    name: 'images, sound and its words',
    events: [
      ...start,
      ...open(0, { type: 'image', source: { data: 'A', media_type: 'image/png' } }),
      ...close(0),
      ...open(1, { type: 'audio', source: { format: 'pcm16' } }),
      ...delta(1, { type: 'audio_delta', data: 'B' }),
      ...delta(1, { type: 'audio_delta', transcript: 'hello' }),
      ...close(1),
      ...finish('end_turn'),
    ],
    parts: [
      { inlineData: { mimeType: 'image/png', data: 'A' } },
      { inlineData: { mimeType: 'audio/pcm16', data: 'B' } },
      { text: 'hello' },
    ],
    notes: ['APPROXIMATED content.audio.transcript'],
  },
  {
    name: 'what only other protocols understand',
    events: [
      ...start,
      ...open(0, use('s', { kind: 'server' })),
      ...close(0),
      ...open(1, { type: 'tool_result', tool_use_id: 's', content: 'x', kind: 'server' }),
      ...close(1),
      ...open(2, { type: 'opaque', origin: 'anthropic-messages', raw: {} }),
      ...close(2),
      ...open(3, { type: 'opaque', origin: 'anthropic-messages', raw: {}, text: 'stand-in' }),
      ...close(3),
      ...finish('end_turn'),
    ],
    parts: [{ text: 'stand-in' }],
    notes: ['DROPPED content.server_tool_use', 'DROPPED content.tool_result', 'DROPPED content.opaque'],
  },
  { name: 'P38 a refusal without a word', events: [...start, ...finish('refusal')], parts: [], finish: 'SAFETY' },
  {
    name: 'P37 a refusal in words',
    events: [
      ...start,
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '', refusal: true } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'No.' } },
      { type: 'content_block_stop', index: 0 },
      ...finish('refusal'),
    ],
    parts: [{ text: 'No.' }],
  },
  {
    name: 'a refusal after some text is no plain stop',
    events: [...start, ...say(0, 'To make'), ...finish('refusal')],
    parts: [{ text: 'To make' }],
    finish: 'SAFETY',
  },
  { name: 'a turn that was paused', events: [...start, ...finish('pause_turn')], parts: [], notes: ['APPROXIMATED stop_reason'] },
  {
    name: 'pings say nothing',
    events: [...start, { type: 'ping' }, ...say(0, 'a'), ...finish('end_turn')],
    parts: [{ text: 'a' }],
  },
];

describe.each(ROWS)('$name', ({ events, parts, finish: word = 'STOP', notes = [], request, isLate = false }) => {
  const context = geminiContext({
    source: 'anthropic-messages',
    ...(request && { request: { model: 'asked', messages: [], parameters: {}, ...request } }),
  });
  const frames = encodeGemini(events, context);

  test('parts, finish, notes', () => {
    expect(GeminiGrammar.check(frames)).toBe('done');
    const fragments = fragmentsOf(frames) as { candidates: { content: { parts: unknown[] }; finishReason?: string }[] }[];
    expect(fragments.slice(0, -1).flatMap(({ candidates }) => candidates[0]?.content.parts)).toEqual(parts);
    expect(fragments.at(-1)).toMatchObject({ candidates: [{ content: { parts: [{ text: '' }] }, finishReason: word }] });
    expect(context.notes.map(({ code, feature }) => `${code} ${feature}`)).toEqual(notes);
    expect(fragments[0]).toMatchObject({ modelVersion: request ? 'asked' : 'claude', responseId: 'r1' });
  });

  test.each(SDKS)('$name reads it', async ({ stream }) => {
    const fragments = await stream(piecesOf(frames));
    expect(hear(fragments).finish).toBe(word);
  });

  if (!isLate)
    test('the whole answer has the same calls and the same end', () => {
      const accumulator = new MessageAccumulator();
      for (const event of events) accumulator.push(event);
      const whole = encodeResponse(accumulator.finish().message, geminiContext({ source: 'anthropic-messages' }));
      const isCall = (part: unknown): boolean => isObject(part) && part['functionCall'] !== undefined;
      const [candidate] = whole['candidates'] as [{ content: { parts: unknown[] }; finishReason: string }];
      expect(candidate.content.parts.filter(isCall)).toEqual(parts.filter(isCall));
      expect(candidate.finishReason).toBe(word);
    });
});

test('P81 what another provider signed travels in a carrier, as base64', () => {
  const target = {
    provider: { id: 'claude', protocol: 'anthropic-messages', base_url: 'https://x' },
    model: 'm',
    stream: true,
  } as const;
  const frames = encodeGemini(
    [...start, ...think(0, 'hm', blob('anthropic-messages')), ...finish('end_turn')],
    geminiContext({ target }),
  );
  const [, signed] = fragmentsOf(frames) as { candidates: { content: { parts: Part[] } }[] }[];
  const value = signed?.candidates[0]?.content.parts[0]?.thoughtSignature ?? '';
  expect(decodeCarrier(atob(value))).toEqual({ blob: { ...blob('anthropic-messages'), provider: 'claude' }, attach: 'self' });
});

test('big integers and the order of keys survive in arguments', () => {
  const text = '{"b":12345678901234567890,"a":1}';
  const [frame] = encodeGemini([...start, ...open(0, use('x')), ...args(0, text), ...close(0), ...finish('tool_use')]);
  expect(frame?.data).toContain(`"args":${text}`);
  const [lines] = encodeGemini([...start, ...open(0, use('x')), ...args(0, '{\n "a": 1 }'), ...close(0), ...finish('tool_use')]);
  expect(lines?.data).toContain('"args":{  "a": 1 }');
});

test('P99 usage: the parts of the whole', () => {
  const usage = {
    input_tokens: 120,
    output_tokens: 30,
    cache_read_tokens: 90,
    cache_creation_tokens: 20,
    reasoning_tokens: 10,
    details: { tool_use_prompt: 5, input_audio: 3 },
  };
  const context = geminiContext({ source: 'anthropic-messages' });
  const frames = encodeGemini([...start, ...say(0, 'a'), ...finish('end_turn', { usage })], context);
  expect(fragmentsOf(frames).at(-1)?.['usageMetadata']).toEqual({
    promptTokenCount: 115,
    cachedContentTokenCount: 90,
    candidatesTokenCount: 20,
    toolUsePromptTokenCount: 5,
    thoughtsTokenCount: 10,
    totalTokenCount: 150,
    promptTokensDetails: [{ modality: 'AUDIO', tokenCount: 3 }],
  });
  expect(context.notes).toMatchObject([{ code: 'APPROXIMATED', feature: 'usage.cache_creation_tokens' }]);
});

test('P41 citations are grounding, by bytes', () => {
  const citation = { kind: 'url', url: 'https://x', title: 't', start: 1, end: 2, origin: 'openai-chat' } as const;
  const events = [
    ...start,
    ...open(0, TEXT),
    ...delta(0, { type: 'text_delta', text: 'é1' }),
    ...delta(0, { type: 'citations_delta', citation }),
    ...delta(0, { type: 'citations_delta', citation: { kind: 'document', document_index: 0, origin: 'anthropic-messages' } }),
    ...close(0),
    ...finish('end_turn'),
  ];
  const context = geminiContext({ source: 'openai-chat' });
  const frames = encodeGemini(events, context);
  expect(fragmentsOf(frames).at(-1)).toMatchObject({
    candidates: [
      {
        groundingMetadata: {
          groundingChunks: [{ web: { uri: 'https://x', title: 't' } }],
          groundingSupports: [{ segment: { startIndex: 2, endIndex: 3, text: '1' }, groundingChunkIndices: [0] }],
        },
      },
    ],
  });
  expect(context.notes).toMatchObject([
    { code: 'APPROXIMATED', feature: 'citations' },
    { code: 'DROPPED', feature: 'citations' },
  ]);
  const again = run(piecesOf(frames).join('')).message.content[0];
  expect(again).toMatchObject({ citations: [{ url: 'https://x', start: 1, end: 2 }] });
});

test('logprobs of another are those of the candidate', () => {
  const logprobs = [{ token: 'a', logprob: -1, top: [{ token: 'b', logprob: -2 }] }];
  const frames = encodeGemini(
    [...start, ...open(0, TEXT), ...delta(0, { type: 'text_delta', text: 'a', logprobs }), ...close(0), ...finish('end_turn')],
    geminiContext({ source: 'openai-chat' }),
  );
  expect(fragmentsOf(frames).at(-1)).toMatchObject({
    candidates: [
      {
        logprobsResult: {
          chosenCandidates: [{ token: 'a', logProbability: -1 }],
          topCandidates: [{ candidates: [{ token: 'b', logProbability: -2 }] }],
        },
      },
    ],
  });
});

test('n > 1: candidates of their own, that finish together', () => {
  const frames = encodeGemini([
    ...start,
    ...open(0, TEXT),
    ...delta(0, { type: 'text_delta', text: 'a' }),
    ...close(0),
    ...open(0, TEXT, 1),
    ...delta(0, { type: 'text_delta', text: 'b' }, 1),
    { type: 'content_block_stop', index: 0, choice: 1 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' } },
    { type: 'message_delta', choice: 1, delta: { stop_reason: 'max_tokens' } },
    { type: 'message_stop' },
  ]);
  expect(GeminiGrammar.check(frames)).toBe('done');
  const fragments = fragmentsOf(frames) as never;
  expect(hear(fragments, 0)).toMatchObject({ text: 'a', finish: 'STOP' });
  expect(hear(fragments, 1)).toMatchObject({ text: 'b', finish: 'MAX_TOKENS' });
});

describe('errors', () => {
  test.each([
    ['P108 P105 in the middle', [...start, ...say(0, 'a'), ...error('OVERLOADED')], 'UNAVAILABLE', 503],
    ['P107 before anything', error('OVERLOADED'), 'UNAVAILABLE', 503],
    ['P110 the end without a stop', [...start, ...say(0, 'a')], 'INTERNAL', 500],
    ['nothing at all', [], 'INTERNAL', 500],
    ['a generation that was broken off', [...start, ...say(0, 'a'), ...finish('error')], 'INTERNAL', 502],
    ['a stop without a reason', [...start, { type: 'message_stop' } as const], 'INTERNAL', 500],
  ])('%s', async (_, events, status, code) => {
    const frames = encodeGemini(events, geminiContext({ source: 'anthropic-messages' }));
    expect(GeminiGrammar.check(frames)).toBe('error');
    expect(JSON.parse(frames.at(-1)?.data ?? '')).toMatchObject({ error: { code, status } });
    for (const { stream } of SDKS) await expect(stream(piecesOf(frames))).rejects.toThrow(status);
    expect(frames.filter(({ data }) => data.includes('"error"'))).toHaveLength(1);
  });

  test('strict: a loss in the middle of a stream ends it', () => {
    const context = geminiContext({ source: 'anthropic-messages', policy: { strict: true } });
    const frames = encodeGemini(
      [...start, ...open(0, { type: 'opaque', origin: 'openai-chat', raw: {} }), ...close(0), ...finish('end_turn')],
      context,
    );
    expect(GeminiGrammar.check(frames)).toBe('error');
  });

  test('nothing follows the end', () => {
    const encoder = encodeStream(geminiContext());
    for (const event of [...start, ...finish('end_turn')]) encoder.push(event);
    expect([...encoder.push({ type: 'ping' }), ...encoder.push(start[0] as CanonicalStreamEvent), ...encoder.end()]).toEqual([]);
  });

  test('P117 P120 Google\u2019s own words for a bad end go back as they came', () => {
    const frames = (raw: string) => fragmentsOf(encodeGemini(run(raw).events));
    const malformed = {
      candidates: [{ finishReason: 'MALFORMED_FUNCTION_CALL', finishMessage: 'm', index: 0 }],
      responseId: 'r',
    };
    expect(frames(`data: ${JSON.stringify(malformed)}\n\n`)).toMatchObject([malformed]);
    const blocked = { promptFeedback: { blockReason: 'SAFETY' }, responseId: 'r' };
    expect(frames(`data: ${JSON.stringify(blocked)}\n\n`)).toEqual([blocked]);
  });
});

test('P116 a finishReason in a fragment without parts', () => {
  const raw =
    'data: {"candidates":[{"content":{"parts":[{"text":"a"}]}}]}\n\ndata: {"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"totalTokenCount":1}}\n\n';
  const fragments = fragmentsOf(encodeGemini(run(raw).events));
  expect(hear(fragments as never)).toMatchObject({ text: 'a', finish: 'STOP', usage: { totalTokenCount: 1 } });
});

test('logprobs of a stream stand with their text', () => {
  const logprobsResult = {
    chosenCandidates: [{ token: 'a', tokenId: 1, logProbability: -1 }],
    topCandidates: [{ candidates: [{ token: 'b', logProbability: -2 }] }],
  };
  const raw = `data: ${JSON.stringify({ candidates: [{ content: { parts: [{ text: 'a' }] }, logprobsResult, finishReason: 'STOP' }] })}\n\n`;
  const { message, events } = run(raw);
  expect(message.content).toMatchObject([
    { text: 'a', logprobs: [{ token: 'a', logprob: -1, top: [{ token: 'b', logprob: -2 }] }] },
  ]);
  expect(fragmentsOf(encodeGemini(events)).at(-1)).toMatchObject({ candidates: [{ logprobsResult }] });
});

describe('P109 the bytes', () => {
  const pieces = piecesOf(encodeGemini([...start, ...say(0, 'a'), ...finish('end_turn')]));

  test('data lines only, and a blank line at the end', () => {
    for (const piece of pieces) expect(piece).toMatch(/^data: \{.*\}\r\n\r\n$/);
  });

  test('as a JSON list', () => {
    const array = createFramer(geminiCodec, 'json-array');
    const frames = encodeGemini([...start, ...say(0, 'a'), ...error('OVERLOADED')]);
    const text = frames.map(array.frame).join('') + array.end() + array.end();
    expect(text).toMatch(/^\[\{.*\},\r\n\{"error":.*\}\]$/);
    expect(JSON.parse(text)).toHaveLength(2);
    expect(createFramer(geminiCodec, 'json-array').end()).toBe('[]');
  });
});
