import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ContentBlock } from '../../src/canonical/message.ts';
import { CodecError } from '../../src/canonical/notes.ts';
import type { CanonicalMessage, CanonicalRequest } from '../../src/canonical/request.ts';
import type { ProviderProfile } from '../../src/codec/profile.ts';
import type { JsonObject } from '../../src/json/json.ts';
import { DEFAULT_CHAT_PROFILE, OPENAI_CHAT_PROFILES } from '../../src/protocols/openai-chat/profiles.ts';
import { decodeRequestBody } from '../../src/protocols/openai-chat/request-decode.ts';
import { encodeRequestBody } from '../../src/protocols/openai-chat/request-encode.ts';
import { bareContext } from './bare-context.ts';

const json = fc.jsonValue({ maxDepth: 3 });
/** Mostly something that may stand there, sometimes anything. */
const or = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 60, arbitrary }, { weight: 1, arbitrary: json });
const record = (model: Record<string, fc.Arbitrary<unknown>>, ...requiredKeys: string[]): fc.Arbitrary<JsonObject> =>
  fc.record(model, { requiredKeys });
const word = fc.constantFrom('', 'a', 'b', 'é😀', 'a.b', '__proto__', 'x'.repeat(70));

const wirePart = fc.oneof(
  record(
    {
      type: fc.constant('text'),
      text: or(word),
      prompt_cache_breakpoint: or(fc.constant({ mode: 'explicit' })),
      cache_control: json,
    },
    'type',
    'text',
  ),
  record(
    {
      type: fc.constant('image_url'),
      image_url: or(fc.constantFrom('u', { url: 'https://x', detail: 'low' }, { url: 'data:image/png;base64,AA', x: 1 })),
    },
    'type',
    'image_url',
  ),
  record(
    {
      type: fc.constant('input_audio'),
      input_audio: or(fc.constantFrom({ data: 'A', format: 'wav' }, { data: 'A', format: 'ogg' })),
    },
    'type',
    'input_audio',
  ),
  record(
    {
      type: fc.constant('file'),
      file: or(fc.constantFrom({ file_data: 'A' }, { file_data: 'data:text/plain;base64,A', filename: 'n' }, { file_id: 'f' })),
    },
    'type',
    'file',
  ),
  record({ type: fc.constant('refusal'), refusal: or(word) }, 'type', 'refusal'),
  record(
    { type: fc.constant('thinking'), thinking: or(fc.array(record({ text: or(word) }), { maxLength: 2 })) },
    'type',
    'thinking',
  ),
  record({ type: or(fc.constantFrom('odd', '__proto__')), x: json }, 'type'),
);
const wireContent = or(fc.oneof(word, fc.array(or(wirePart), { maxLength: 3 })));
const called = fc.constantFrom('f', 'g', 'a.b', '__proto__');
const wireCall = fc.oneof(
  record(
    { id: or(word), function: record({ name: or(called), arguments: or(fc.constantFrom('', '{"a":1}', '{', '[1]')) }, 'name') },
    'function',
  ),
  record(
    { id: or(word), type: fc.constant('custom'), custom: record({ name: or(called), input: or(word) }, 'name', 'input') },
    'type',
    'custom',
  ),
);
const wireMessage = fc.oneof(
  record(
    { role: or(fc.constantFrom('system', 'developer', 'user')), content: wireContent, name: or(word), odd: json },
    'role',
    'content',
  ),
  record(
    {
      role: fc.constant('assistant'),
      content: or(fc.oneof(fc.constant(null), wireContent)),
      refusal: or(word),
      tool_calls: or(fc.array(or(wireCall), { maxLength: 3 })),
      function_call: record({ name: or(called), arguments: or(word) }, 'name'),
      reasoning_content: or(word),
      reasoning: or(word),
      reasoning_details: or(fc.array(json, { maxLength: 2 })),
      audio: record({ id: or(fc.constant('au')) }, 'id'),
      prefix: fc.boolean(),
    },
    'role',
  ),
  record({ role: fc.constant('tool'), tool_call_id: or(word), content: wireContent, name: or(called) }, 'role', 'content'),
  record({ role: fc.constant('function'), name: or(called), content: or(word) }, 'role', 'name'),
);
const wireTool = fc.oneof(
  record(
    {
      type: fc.constant('function'),
      function: record(
        { name: or(called), parameters: or(fc.constantFrom({}, { type: 'object' })), strict: fc.boolean(), odd: json },
        'name',
      ),
    },
    'function',
  ),
  record(
    { type: fc.constant('custom'), custom: record({ name: or(called), format: or(fc.constant({ type: 'text' })) }, 'name') },
    'type',
    'custom',
  ),
  record({ type: or(fc.constant('openrouter:web_search')), x: json }, 'type'),
);
const wireBody = record(
  {
    model: or(fc.constant('m')),
    messages: or(fc.array(or(wireMessage), { minLength: 1, maxLength: 5 })),
    tools: or(fc.array(or(wireTool), { maxLength: 3 })),
    functions: or(fc.array(record({ name: or(called) }, 'name'), { maxLength: 2 })),
    tool_choice: or(
      fc.constantFrom(
        'auto',
        'any',
        { type: 'function', function: { name: 'f' } },
        { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'f' } }] } },
      ),
    ),
    function_call: or(fc.constantFrom('auto', { name: 'f' })),
    temperature: or(fc.double({ noNaN: true, noDefaultInfinity: true })),
    max_tokens: or(fc.integer()),
    max_completion_tokens: or(fc.integer()),
    top_k: or(fc.nat()),
    n: or(fc.integer()),
    stop: or(fc.oneof(word, fc.array(word, { maxLength: 6 }))),
    response_format: or(
      fc.constantFrom(
        { type: 'json_object', odd: 1 },
        { type: 'json_schema', json_schema: { schema: {}, odd: 1 } },
        { type: 'text' },
        { type: 'odd' },
      ),
    ),
    reasoning_effort: or(fc.constantFrom('none', 'low', 'odd')),
    reasoning: or(fc.constantFrom({ effort: 'low' }, { max_tokens: 5 }, { enabled: false })),
    thinking: or(fc.constantFrom({ type: 'enabled' }, { type: 'disabled', odd: 1 })),
    enable_thinking: or(fc.boolean()),
    metadata: or(fc.constantFrom({ a: 'b' }, { a: 1 })),
    user: or(word),
    safety_identifier: or(word),
    service_tier: or(fc.constantFrom('default', 'fast', 'batch')),
    prompt_cache_options: or(fc.constantFrom({ mode: 'explicit' }, { ttl: '30m', odd: 1 })),
    prompt_cache_retention: or(fc.constant('24h')),
    verbosity: or(fc.constantFrom('low', 'odd')),
    modalities: or(fc.constantFrom(['text'], ['odd'])),
    web_search_options: or(fc.constant({})),
    logprobs: or(fc.constantFrom(true, 1)),
    stream: or(fc.boolean()),
    stream_options: or(fc.constant({ include_usage: true, odd: 1 })),
    odd: json,
  },
  'model',
  'messages',
);

const profile: fc.Arbitrary<ProviderProfile> = fc
  .tuple(
    fc.constantFrom(...Object.values(OPENAI_CHAT_PROFILES)),
    record({
      cache_breakpoints: fc.boolean(),
      custom_tools: fc.boolean(),
      strict_alternation: fc.boolean(),
      tool_images: fc.boolean(),
      content_parts: fc.boolean(),
      json_schema: fc.boolean(),
    }),
  )
  .map(([row, over]) => ({ ...DEFAULT_CHAT_PROFILE, ...row, ...over }));

function attempt<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch (error) {
    if (error instanceof CodecError) return undefined;
    throw error;
  }
}

/** JSON has no undefined; toEqual would not see one. */
const hasUndefined = (value: unknown): boolean =>
  value === undefined || (typeof value === 'object' && value !== null && Object.values(value).some(hasUndefined));

const COUNTS = ['max_tokens', 'max_completion_tokens', 'temperature', 'top_p', 'n', 'top_logprobs'];

function check(request: CanonicalRequest, used: ProviderProfile): void {
  const before = structuredClone(request);
  const body = attempt(() => encodeRequestBody(request, bareContext({ profile: used })));
  if (!body) return;
  expect(request, 'the request is not changed').toEqual(before);
  expect(hasUndefined(body), 'undefined').toBe(false);
  for (const name of COUNTS) if (typeof body[name] === 'number') expect(body[name], name).toBeGreaterThanOrEqual(0);
  const again = decodeRequestBody(body, bareContext({ profile: used }));
  expect(encodeRequestBody(again, bareContext({ profile: used }))).toEqual(body);
}

describe('any wire body', () => {
  test('arbitrary JSON: CodecError or a request', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(() => attempt(() => decodeRequestBody(value, bareContext()))).not.toThrow();
      }),
    );
  });

  test('what looks like a request: decoded, written, read and written again', () => {
    let taken = 0;
    fc.assert(
      fc.property(wireBody, profile, (body, used) => {
        const source = structuredClone(body);
        const request = attempt(() => decodeRequestBody(body, bareContext({ profile: used })));
        expect(body).toEqual(source);
        if (!request) return;
        taken++;
        check(request, used);
      }),
      { numRuns: 3000 },
    );
    expect(taken).toBeGreaterThan(300);
  });
});

describe('any canonical request', () => {
  const name = fc.constantFrom('f', 'g', 'a.b', 'x'.repeat(70));
  const id = fc.constantFrom('1', '2', 'a:b', 'y'.repeat(50));
  const textBlock = fc.record(
    { type: fc.constant('text' as const), text: word, cache_control: fc.constant({ type: 'ephemeral' as const }) },
    { requiredKeys: ['type', 'text'] },
  );
  const image = fc.constantFrom<ContentBlock>(
    { type: 'image', source: { data: 'A', media_type: 'image/png' } },
    { type: 'image', source: { url: 'u' } },
  );
  const media = fc.oneof(
    image,
    fc.constantFrom<ContentBlock>(
      { type: 'audio', source: { data: 'A', format: 'wav' } },
      { type: 'audio', source: { data: 'A', format: 'ogg' } },
      { type: 'file', source: { file_data: 'A' } },
      { type: 'file', source: { text: 't' } },
      { type: 'file', source: { file_url: 'u' } },
    ),
  );
  const opaque = fc.constantFrom<ContentBlock>(
    { type: 'opaque', origin: 'gemini', raw: {}, text: 't' },
    { type: 'opaque', origin: 'openai-chat', raw: { type: 'odd' } },
  );
  const signature = fc.constantFrom({ origin: 'gemini' as const, form: 'signature' as const, value: 's' }, undefined);
  const thinking = fc
    .tuple(word, signature)
    .map(([text, blob]): ContentBlock => ({ type: 'thinking', thinking: text, ...(blob && { signature: blob }) }));
  const use = fc
    .tuple(id, name, fc.constantFrom<'function' | 'custom' | 'server'>('function', 'custom', 'server'))
    .map(
      ([id, name, kind]): ContentBlock => ({ type: 'tool_use', id, name, kind, input: kind === 'custom' ? 'text' : { a: 1 } }),
    );
  const result = fc
    .tuple(id, fc.oneof(word, fc.array(fc.oneof(textBlock, media), { maxLength: 2 })), fc.boolean())
    .map(([id, content, is_error]) => ({ type: 'tool_result', tool_use_id: id, content, is_error }) as ContentBlock);
  const message: fc.Arbitrary<CanonicalMessage> = fc.oneof(
    fc.record({ role: fc.constant('user' as const), content: fc.array(fc.oneof(textBlock, media, opaque), { maxLength: 3 }) }),
    fc.record({
      role: fc.constant('assistant' as const),
      content: fc.array(fc.oneof(textBlock, thinking, use, image, opaque), { maxLength: 4 }),
    }),
    fc.record({ role: fc.constant('tool' as const), content: fc.array(result, { maxLength: 3 }) }),
    fc.record({ role: fc.constant('system' as const), content: fc.array(textBlock, { minLength: 1, maxLength: 2 }) }),
  );
  const request: fc.Arbitrary<CanonicalRequest> = fc
    .record(
      {
        system: fc.array(
          fc.oneof(
            textBlock,
            textBlock.map((block) => ({ ...block, role: 'developer' as const })),
          ),
          { maxLength: 3 },
        ),
        tools: fc.array(fc.record({ name, kind: fc.constantFrom<'function' | 'custom'>('function', 'custom') }), {
          maxLength: 3,
        }),
        tool_choice: fc.oneof(
          fc.record({ type: fc.constantFrom<'auto' | 'any'>('auto', 'any'), allowed_tools: fc.array(name, { maxLength: 2 }) }),
          fc.record({ type: fc.constant('tool' as const), name }),
        ),
        user_id: word,
        output_format: fc.constantFrom<NonNullable<CanonicalRequest['output_format']>>(
          { type: 'json_object' },
          { type: 'json_schema', json_schema: { schema: { type: 'object' } } },
        ),
        parallel_tool_use: fc.boolean(),
        thinking: fc.record(
          {
            type: fc.constantFrom<'enabled' | 'disabled' | 'adaptive'>('enabled', 'disabled', 'adaptive'),
            effort: fc.constantFrom<'minimal' | 'max'>('minimal', 'max'),
            budget_tokens: fc.nat(),
          },
          { requiredKeys: ['type'] },
        ),
        stream: fc.boolean(),
        store: fc.boolean(),
        metadata: fc.constant({ a: 'b' }),
        service_tier: fc.constantFrom('standard', 'flex', 'batch'),
        prompt_cache: fc.constantFrom<NonNullable<CanonicalRequest['prompt_cache']>>(
          { key: 'k', ttl: '24h' },
          { mode: 'explicit', ttl: '30m' },
        ),
        verbosity: fc.constant('low' as const),
      },
      { requiredKeys: [] },
    )
    .chain((rest) =>
      fc
        .tuple(
          fc.array(message, { minLength: 1, maxLength: 6 }),
          fc.record(
            {
              max_tokens: fc.integer(),
              temperature: fc.double({ noNaN: true }),
              n: fc.integer(),
              stop_sequences: fc.array(word, { maxLength: 6 }),
              top_k: fc.nat(),
            },
            { requiredKeys: [] },
          ),
        )
        .map(([messages, parameters]) => ({ model: 'm', ...rest, messages, parameters })),
    );

  test('written, read and written again', () => {
    fc.assert(fc.property(request, profile, check), { numRuns: 3000 });
  });
});
