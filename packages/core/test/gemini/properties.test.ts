import fc from 'fast-check';
import { expect, test } from 'vitest';
import { encodeGemini, geminiContext, type Json, piecesOf } from '../../../../test/sdk/gemini.ts';
import type { BlockDelta, CanonicalStreamEvent } from '../../src/canonical/events.ts';
import type { ContentBlock, StopReason } from '../../src/canonical/message.ts';
import { CodecError } from '../../src/canonical/notes.ts';
import type { SignedBlob } from '../../src/canonical/protocol.ts';
import { GeminiGrammar } from '../../src/protocols/gemini/grammar.ts';
import { GEMINI_MODELS, profileFor } from '../../src/protocols/gemini/profiles.ts';
import { decodeRequestBody } from '../../src/protocols/gemini/request-decode.ts';
import { encodeRequestBody } from '../../src/protocols/gemini/request-encode.ts';
import { run } from './run.ts';

const word = fc.constantFrom('', 'a', 'é😀', '\n\r', '"', '__proto__', '[DONE]', 'data: x');
const origin = fc.constantFrom<SignedBlob['origin']>('gemini', 'anthropic-messages', 'openai-responses', 'openai-chat');
const signature: fc.Arbitrary<SignedBlob> = fc.record({
  origin,
  form: fc.constantFrom<SignedBlob['form']>('signature', 'redacted', 'encrypted', 'thought_signature'),
  value: fc.constantFrom('S', 'T'),
});
const citation = fc.record({
  kind: fc.constant('url' as const),
  url: fc.constant('https://x'),
  start: fc.integer(),
  end: fc.integer(),
  origin,
});

const block: fc.Arbitrary<ContentBlock> = fc.oneof(
  fc.record({ type: fc.constant('text' as const), text: word }),
  fc.record({ type: fc.constant('text' as const), text: word, signature, citations: fc.array(citation, { maxLength: 2 }) }),
  fc.record({ type: fc.constant('text' as const), text: word, extensions: fc.constant({ gemini: { partMetadata: { a: 1 } } }) }),
  fc.record({ type: fc.constant('thinking' as const), thinking: word }),
  fc.record({ type: fc.constant('thinking' as const), thinking: word, signature }),
  fc.record({
    type: fc.constant('tool_use' as const),
    id: fc.constantFrom('a', 'b'),
    name: fc.constantFrom('f', '__proto__'),
    input: fc.constant({}),
    kind: fc.constantFrom('function' as const, 'custom' as const, 'server' as const),
  }),
  fc.record({ type: fc.constant('tool_result' as const), tool_use_id: fc.constant('a'), name: fc.constant('f'), content: word }),
  fc.record({
    type: fc.constant('image' as const),
    source: fc.constantFrom({ data: 'A' }, { url: 'https://x' }, { file_id: 'f' }, {}),
  }),
  fc.record({ type: fc.constant('audio' as const), source: fc.constantFrom({ data: 'A' }, {}), transcript: word }),
  fc.record({ type: fc.constant('file' as const), source: fc.constantFrom({ file_data: 'A' }, { text: 'x' }) }),
  fc.record({
    type: fc.constant('opaque' as const),
    origin: fc.constant('anthropic-messages' as const),
    raw: fc.constant({}),
    text: word,
  }),
);
const delta: fc.Arbitrary<BlockDelta> = fc.oneof(
  fc.record({ type: fc.constant('text_delta' as const), text: word }),
  fc.record({ type: fc.constant('thinking_delta' as const), thinking: word }),
  fc.record({
    type: fc.constant('input_json_delta' as const),
    partial_json: fc.constantFrom('{"a":', '1}', '{}', '[1]', 'x', '{\n"b":2}'),
  }),
  fc.record({ type: fc.constant('input_text_delta' as const), text: word }),
  fc.record({ type: fc.constant('signature_delta' as const), signature }),
  fc.record({ type: fc.constant('citations_delta' as const), citation }),
  fc.record({ type: fc.constant('audio_delta' as const), data: word, transcript: word }),
  fc.record({ type: fc.constant('opaque_delta' as const), raw: fc.constant({}) }),
);
const stops: StopReason[] = [
  'end_turn',
  'max_tokens',
  'tool_use',
  'content_filter',
  'stop_sequence',
  'refusal',
  'pause_turn',
  'context_window',
  'error',
];
const index = fc.nat({ max: 3 });
const choice = fc.constantFrom({}, {}, {}, { choice: 1 });
const usage = fc.record({
  input_tokens: fc.integer({ min: -5, max: 50 }),
  output_tokens: fc.integer({ min: -5, max: 50 }),
  cache_read_tokens: fc.integer({ min: -5, max: 90 }),
  reasoning_tokens: fc.integer({ min: -5, max: 90 }),
});

/** Any events in any order: no rule of the canonical stream is kept. */
const event: fc.Arbitrary<CanonicalStreamEvent> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .tuple(index, block, choice)
      .map(([at, content_block, which]) => ({ type: 'content_block_start' as const, index: at, content_block, ...which })),
  },
  {
    weight: 9,
    arbitrary: fc
      .tuple(index, delta, choice)
      .map(([at, value, which]) => ({ type: 'content_block_delta' as const, index: at, delta: value, ...which })),
  },
  {
    weight: 5,
    arbitrary: fc.tuple(index, choice).map(([at, which]) => ({ type: 'content_block_stop' as const, index: at, ...which })),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(fc.constantFrom(...stops, null), usage, choice).map(([stop_reason, counts, which]) => ({
      type: 'message_delta' as const,
      delta: { stop_reason },
      usage: counts,
      ...which,
    })),
  },
  { weight: 1, arbitrary: fc.constant({ type: 'message_stop' as const }) },
  { weight: 1, arbitrary: fc.constant({ type: 'ping' as const }) },
  { weight: 1, arbitrary: fc.constant({ type: 'error' as const, error: { code: 'OVERLOADED' as const, message: 'm' } }) },
);
const START: CanonicalStreamEvent = { type: 'message_start', message: { id: 'r', model: 'm' } };

test('whatever the events are, the stream keeps the grammar and can be read', () => {
  fc.assert(
    fc.property(
      fc.array(event, { maxLength: 20 }),
      fc.constantFrom('openai-chat' as const, 'gemini' as const),
      (events, source) => {
        const frames = encodeGemini([START, ...events, { type: 'message_stop' }], geminiContext({ source }));
        expect(() => GeminiGrammar.check(frames, true)).not.toThrow();
        expect(() => run(piecesOf(frames).join(''))).not.toThrow();
      },
    ),
    { numRuns: 600 },
  );
});

const json = fc.jsonValue({ maxDepth: 3 });
const or = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 30, arbitrary }, { weight: 1, arbitrary: json });
const some = (model: Record<string, fc.Arbitrary<unknown>>, ...requiredKeys: string[]): fc.Arbitrary<Json> =>
  fc.record(model, { requiredKeys });
const called = fc.constantFrom('f', 'g', 'a.b', '2x', '__proto__');

const part = fc.oneof(
  some({ text: or(word), thought: fc.boolean(), thoughtSignature: or(fc.constantFrom('S', 'Y3YxLm5vbmU=', 'Y3Yx!')), odd: json }),
  some(
    {
      functionCall: some({ id: or(fc.constantFrom('a', 'b')), name: or(called), args: or(some({ a: json })) }, 'name'),
      thoughtSignature: or(word),
    },
    'functionCall',
  ),
  some(
    {
      functionResponse: some(
        {
          id: or(fc.constantFrom('a', 'b')),
          name: or(called),
          response: or(some({ output: json, error: json })),
          parts: or(fc.constant([{ inlineData: { mimeType: 'image/png', data: 'A' } }])),
        },
        'name',
      ),
    },
    'functionResponse',
  ),
  some(
    {
      inline_data: some({ mime_type: or(fc.constantFrom('image/png', 'audio/wav', 'audio/odd', 'x')), data: or(word) }),
      videoMetadata: json,
    },
    'inline_data',
  ),
  some(
    {
      fileData: some({
        mimeType: or(fc.constantFrom('image/png', 'video/mp4')),
        fileUri: or(fc.constantFrom('https://x', 'gs://x')),
      }),
      mediaResolution: json,
    },
    'fileData',
  ),
  some({ executableCode: json, thoughtSignature: word }),
);
const content = some(
  { role: or(fc.constantFrom('user', 'model', 'function')), parts: or(fc.array(or(part), { maxLength: 4 })), odd: json },
  'parts',
);
const schema = fc.constantFrom(
  { type: 'OBJECT', properties: { a: { type: 'STRING' } } },
  { type: 'object' },
  { type: 'object', properties: { a: { $ref: '#/$defs/x' } } },
  {},
);
const body = some(
  {
    contents: or(fc.array(or(content), { maxLength: 5 })),
    systemInstruction: or(some({ parts: fc.array(or(part), { maxLength: 2 }) })),
    tools: or(
      fc.array(
        some({
          functionDeclarations: or(
            fc.array(some({ name: or(called), parameters: or(schema), parametersJsonSchema: or(schema) }, 'name'), {
              maxLength: 3,
            }),
          ),
          googleSearch: json,
          mcpServers: json,
        }),
        { maxLength: 2 },
      ),
    ),
    toolConfig: or(
      some({
        functionCallingConfig: or(
          some({ mode: or(fc.constantFrom('AUTO', 'ANY', 'VALIDATED')), allowedFunctionNames: or(fc.constant(['f'])) }),
        ),
      }),
    ),
    generationConfig: or(
      some({
        temperature: or(fc.double()),
        candidateCount: or(fc.nat()),
        thinkingConfig: or(some({ thinkingBudget: or(fc.integer()), thinkingLevel: or(word) })),
        responseMimeType: or(fc.constant('application/json')),
        responseSchema: or(schema),
        stopSequences: or(fc.array(word)),
      }),
    ),
    safetySettings: json,
    __proto__x: json,
  },
  'contents',
);
const MODELS = ['', 'gemini-3-pro-preview', 'gemini-3-flash', 'gemini-2.5-pro', 'gemini-2.0-flash', 'gemma-3'];

/** Two calls with one id, of which Google has run the first: the name tells which. */
const SHARED_ID = {
  contents: [
    { role: 'model', parts: [{ functionCall: { id: 'b', name: '2x' } }] },
    { role: 'model', parts: [{ functionCall: { id: 'b', name: 'f' } }, { functionResponse: { id: 'a', name: '2x' } }] },
  ],
};

/** A result of a call that nobody made, with a part that says nothing: both become text, and the part must not come back. */
const EMPTY_PART = { contents: [{ parts: [{ functionResponse: { name: 'f', parts: [{ '': null }] } }] }] };

test('P130 a request is refused with a reason, or read and written, twice the same, and what was written is read again', () => {
  fc.assert(
    fc.property(body, fc.constantFrom(...MODELS), (wire, model) => {
      const context = () => geminiContext({ profile: profileFor('google', model) });
      const write = (source: unknown): string =>
        JSON.stringify(encodeRequestBody(decodeRequestBody(source, context(), { model: 'm' }), context()));
      let written: string;
      const before = JSON.stringify(wire);
      try {
        written = write(wire);
      } catch (error) {
        expect(error).toBeInstanceOf(CodecError);
        return;
      } finally {
        expect(JSON.stringify(wire), 'the source is not changed').toBe(before);
      }
      expect(write(wire)).toBe(written);
      expect(write(JSON.parse(written)), 'a second time nothing is left to do').toBe(written);
      checkTurns(JSON.parse(written) as Json);
    }),
    {
      numRuns: 1500,
      examples: [
        [SHARED_ID, ''],
        [EMPTY_PART, ''],
      ],
    },
  );
});

/** What the API requires of contents: roles alternate, the user is first, and the next turn has one result per call. */
function checkTurns({ contents }: Json): void {
  const turns = contents as { role: string; parts: { functionCall?: Json; functionResponse?: Json }[] }[];
  turns.forEach(({ role, parts }, i) => {
    expect(role).toBe(i % 2 === 0 ? 'user' : 'model');
    expect(parts.length).toBeGreaterThan(0);
    if (role !== 'model') return;
    const served = parts.filter(({ functionResponse }) => functionResponse).length;
    const asked = parts.filter(({ functionCall }) => functionCall).length;
    const next = turns[i + 1]?.parts.filter(({ functionResponse }) => functionResponse).length;
    if (next !== undefined && served === 0) expect(next).toBe(asked);
  });
}

test('every row of the table of models is met', () => {
  const names = [...MODELS, 'gemini-3.5-flash', 'gemini-2.5-flash-lite', 'gemini-2.5-flash-image', 'gemini-2.5-flash'];
  for (const [pattern] of GEMINI_MODELS)
    expect(
      names.some((name) => pattern.test(name)),
      String(pattern),
    ).toBe(true);
});
