import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ContentBlock } from '../../src/canonical/message.ts';
import type { Note } from '../../src/canonical/notes.ts';
import type { ProtocolId, SignedBlob } from '../../src/canonical/protocol.ts';
import type { CanonicalMessage, CanonicalRequest, CanonicalTool } from '../../src/canonical/request.ts';
import { withSource } from '../../src/canonical/source.ts';
import { prepare } from '../../src/passes/prepare.ts';
import type { Rules, SchemaDialect } from '../../src/passes/rules.ts';
import { Refused, type RuleChanges, testRules } from './telling.ts';

const silent = { note: () => {} };
const run = (request: CanonicalRequest, rules: Rules): CanonicalRequest => prepare(request, rules, silent).request;

test('pairs first, then names and ids, then media, then turns and numbers', () => {
  const rules = testRules({ alternate: true });
  const request = run(
    {
      model: 'm',
      tools: [{ name: 'a.b' }],
      parameters: { temperature: 9 },
      messages: [
        { role: 'assistant', content: [{ type: 'tool_use', id: 'x:1', name: 'a.b', input: {} }] },
        { role: 'user', content: [{ type: 'text', text: 'wait' }] },
        {
          role: 'tool',
          content: [{ type: 'tool_result', tool_use_id: 'x:1', content: [{ type: 'image', source: { url: 'u' } }] }],
        },
      ],
    },
    rules,
  );
  expect(request.messages.map(({ role }) => role)).toEqual(['assistant', 'tool', 'user']);
  expect(request.messages[2]?.content[0]).toEqual({ type: 'text', text: 'Attachment of tool call x_1:' });
  expect(request.tools).toEqual([{ name: 'a_b' }]);
  expect(rules.told.map((line) => line.split(' ')[0])).toEqual(['REPAIRED', 'RENAMED', 'RENAMED', 'APPROXIMATED', 'CLAMPED']);
});

test('P10 P14 P11: instructions and a cut conversation for a target where turns alternate', () => {
  const said = (role: CanonicalMessage['role'], text: string): CanonicalMessage => ({ role, content: [{ type: 'text', text }] });
  const rules = testRules({
    alternate: true,
    emptyMessages: 'drop',
    dropWhitespace: true,
    firstUser: true,
    midSystem: 'reminder',
  });
  const { messages } = run(
    {
      model: 'm',
      parameters: {},
      messages: [said('assistant', 'a'), said('user', ' '), said('assistant', 'b'), said('system', 's'), said('user', 'c')],
    },
    rules,
  );
  expect(
    messages.map(({ role, content }) => [role, ...content.map((block) => (block.type === 'text' ? block.text : ''))]),
  ).toEqual([
    ['user', '(continued)'],
    ['assistant', 'a', 'b'],
    ['user', '<system-reminder>s</system-reminder>', 'c'],
  ]);
});

describe('notes point into the source', () => {
  const trace = { trace: true };
  const placed = <T extends ContentBlock>(pointer: string, block: T): T => withSource(pointer, block, trace);

  test('of a pass, at its own stage; and of the encoder, behind all of them', () => {
    const rules = testRules({
      firstUser: true,
      protocol: 'anthropic-messages',
      foreignThinking: 'drop',
      unsignedThinking: 'drop',
    });
    const notes: Note[] = [];
    const source: CanonicalRequest = {
      model: 'm',
      parameters: {},
      tools: [withSource('/tools/7', { name: 'f', input_schema: {} }, trace)],
      messages: [
        withSource(
          '/messages/4',
          {
            role: 'assistant',
            content: [
              placed('/messages/4/reasoning', { type: 'thinking', thinking: 'R' }),
              placed('/messages/4/tool_calls/0', { type: 'tool_use', id: 'x:1', name: 'f', input: {} }),
            ],
          },
          trace,
        ),
        withSource(
          '/messages/5',
          { role: 'tool', content: [placed('/messages/5', { type: 'tool_result', tool_use_id: 'x:1', content: '' })] },
          trace,
        ),
      ],
    };
    const { request, context } = prepare(source, rules, { note: (note: Note) => notes.push(note), strict: true });
    expect(rules.told).toEqual([
      'DROPPED assistant.thinking /messages/4/reasoning',
      'RENAMED messages.tool_use.id /messages/4/tool_calls/0',
      'APPROXIMATED messages.first_user /messages/4',
      'REPAIRED tools.schema /tools/7/input_schema',
    ]);
    expect(request.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
    const tell = (path: string) => context.note({ code: 'DROPPED', feature: 'f', message: 'm', path });
    for (const path of [
      '/messages/1/content/0/input',
      '/messages/2/content/0',
      '/messages/0/content/0',
      '/tools/0/strict',
      '/parameters/n',
    ])
      tell(path);
    expect(notes.map(({ path }) => path)).toEqual([
      '/messages/4/tool_calls/0/input',
      '/messages/5',
      '/messages/0/content/0',
      '/tools/7/strict',
      '/parameters/n',
    ]);
    // The rest of the context is the caller's.
    expect(context.strict).toBe(true);
  });

  test('a refusal, too', () => {
    const source: CanonicalRequest = {
      model: 'm',
      parameters: {},
      messages: [{ role: 'user', content: [placed('/contents/9/parts/2', { type: 'file', source: { file_id: 'f' } })] }],
    };
    try {
      run(source, testRules());
      expect.unreachable();
    } catch (error) {
      expect(error instanceof Refused && error.loss.path).toBe('/contents/9/parts/2');
    }
  });
});

describe('any request, any rules', () => {
  const protocol = fc.constantFrom<ProtocolId>('openai-chat', 'anthropic-messages', 'openai-responses', 'gemini');
  const text = fc.constantFrom('', ' ', 'a', 'b\n');
  const id = fc.constantFrom('1', 'x:1', 'call_2', '', '__proto__');
  const name = fc.constantFrom('f', 'a.b', 'a_b', '', '__proto__', 'x'.repeat(80));
  const kind = fc.constantFrom(undefined, 'function', 'custom', 'server', 'mcp');
  const kept = protocol.map((own) => ({ extensions: { [own]: {} } }));
  const cache = fc.constantFrom(
    {},
    { cache_control: { type: 'ephemeral' } },
    { cache_control: { type: 'ephemeral', ttl: '1h' } },
    { cache_control: { type: 'ephemeral', ttl: '12h' } },
  );
  const blob: fc.Arbitrary<SignedBlob> = fc.record(
    {
      origin: protocol,
      form: fc.constantFrom('signature', 'encrypted', 'thought_signature'),
      value: fc.constant('v'),
      provider: fc.constantFrom('p', 'q'),
      model: fc.constantFrom('claude-opus-4-6', 'm'),
    },
    { requiredKeys: ['origin', 'form', 'value'] },
  );
  const also = fc.oneof(
    fc.constant({}),
    kept,
    blob.map((signature) => ({ signature })),
    cache,
  );
  const leaf: fc.Arbitrary<object> = fc.oneof(
    text.map((value) => ({ type: 'text', text: value })),
    fc.constantFrom(
      { type: 'image', source: { url: 'u' } },
      { type: 'image', source: { url: 'u', detail: 'low' } },
      { type: 'image', source: {} },
      { type: 'audio', source: { data: 'A', format: 'wav' } },
      { type: 'file', source: { file_data: 'A' } },
      { type: 'file', source: { file_data: 'A', filename: 'f' }, title: 'T', context: 'C', citations_enabled: true },
      { type: 'file', source: { file_data: 'A', media_type: 'video/mp4', video: { fps: 1 } } },
      { type: 'file', source: { file_id: 'F' }, extensions: { 'openai-chat': {} } },
      { type: 'file', source: { text: 't' }, title: 'T' },
    ),
    fc.record({ type: fc.constant('opaque'), origin: protocol, raw: fc.constant({}), text: fc.constantFrom('t', undefined) }),
  );
  const call = fc.record({
    type: fc.constant('tool_use'),
    id,
    name,
    kind,
    input: fc.constantFrom<unknown>({}, 'text', { a: 1 }),
    namespace: fc.constantFrom(undefined, 'ns'),
  });
  const result = fc.record({
    type: fc.constant('tool_result'),
    tool_use_id: id,
    name,
    kind,
    content: fc.oneof(text, fc.array(leaf, { maxLength: 2 })),
  });
  const thought = text.map((thinking) => ({ type: 'thinking', thinking }));
  /** Which blocks a role may have: "Content blocks" in docs/canonical.md. */
  const BLOCKS: Record<CanonicalMessage['role'], fc.Arbitrary<object>> = {
    user: leaf,
    system: text.map((value) => ({ type: 'text', text: value })),
    assistant: fc.oneof(
      leaf,
      thought,
      call,
      result.map((one) => ({ ...one, kind: 'server' })),
    ),
    tool: result.map((one) => ({ ...one, kind: 'function' })),
  };
  const message = fc.constantFrom<CanonicalMessage['role']>('user', 'assistant', 'tool', 'system').chain((role) =>
    fc.record({
      role: fc.constant(role),
      content: fc.array(
        fc.tuple(BLOCKS[role], also).map(([one, more]) => ({ ...one, ...more })),
        { maxLength: 4 },
      ),
    }),
  );
  const schema = fc.constantFrom<CanonicalTool['input_schema']>(
    undefined,
    {},
    { type: 'object', properties: { a: { type: ['string', 'null'], minLength: 1 } } },
    { anyOf: [{ type: 'string' }] },
    { type: 'array' },
  );
  const tool = fc.tuple(
    fc.record({
      name,
      kind,
      input_schema: schema,
      namespace: fc.constantFrom(undefined, 'ns'),
      strict: fc.constantFrom(undefined, true),
    }),
    cache,
  );
  const serverTool = fc.record({
    type: fc.constantFrom('web_search', 'bash', 'computer'),
    wire_type: fc.constant('w'),
    config: fc.constant({}),
    origin: protocol,
  });
  const anyTool = fc.oneof(
    tool.map(([one, mark]) => ({ ...one, ...mark })),
    serverTool.map((server) => ({ name: server.type, kind: 'server', server })),
  );
  const choice = fc.oneof(
    fc.record({ type: fc.constant('tool'), name }),
    fc.record({ type: fc.constantFrom('auto', 'any'), allowed_tools: fc.array(name, { maxLength: 2 }) }),
  );
  /** undefined says nothing: as JSON has it. */
  const anyRequest: fc.Arbitrary<CanonicalRequest> = fc
    .record(
      {
        model: fc.constant('m'),
        messages: fc.array(message, { maxLength: 6 }),
        system: fc.array(
          text.map((value) => ({ type: 'text', text: value })),
          { maxLength: 2 },
        ),
        tools: fc.array(anyTool, { maxLength: 4 }),
        tool_choice: choice,
        parameters: fc.record({ temperature: fc.double({ noNaN: true }), stop_sequences: fc.array(text, { maxLength: 6 }) }),
        output_format: fc.constant({
          type: 'json_schema',
          json_schema: { schema: { type: 'object', properties: { a: { const: 1 } } } },
        }),
      },
      { requiredKeys: ['model', 'messages', 'parameters'] },
    )
    .map((made) => JSON.parse(JSON.stringify(made)) as CanonicalRequest);

  const dialect = fc.constantFrom<SchemaDialect>(
    'openai',
    'openai-strict',
    'anthropic',
    'anthropic-strict',
    'gemini-json',
    'gemini-openapi',
  );
  const flag = fc.boolean();
  const anyRules: fc.Arbitrary<RuleChanges> = fc.record(
    {
      protocol,
      provider: fc.constantFrom('p', 'q'),
      model: fc.constantFrom('claude-sonnet-4-5', 'm'),
      custom: flag,
      namespaces: flag,
      objectRoot: flag,
      remembersCalls: flag,
      foreignThinking: fc.constantFrom('drop', 'text'),
      unsignedThinking: fc.constantFrom('keep', 'drop'),
      media: fc.record({
        audio: fc.constantFrom(['wav'], []),
        imageUrls: flag,
        fileUrls: flag,
        imageIds: flag,
        fileIds: flag,
        textFiles: flag,
        video: flag,
        assistantAudio: fc.constantFrom('id', 'data', 'transcript'),
        inToolResults: flag,
      }),
      alternate: flag,
      emptyMessages: fc.constantFrom('keep' as const, 'drop' as const),
      dropWhitespace: flag,
      firstUser: flag,
      trailingAssistant: fc.constantFrom('keep', 'trim', 'continue'),
      midSystem: fc.constantFrom('keep', 'after_user', 'reminder'),
      schemas: fc.record({ tool: dialect, strictTool: dialect, output: dialect, strictOutput: dialect }),
      cacheMarks: fc.record({
        places: fc.constantFrom('everywhere', 'parts', 'inputs', 'automatic', 'none'),
        max: fc.constantFrom(0, 2, 4),
        ttls: fc.constantFrom(['5m', '1h'], ['30m', '12h'], []),
      }),
      says: fc.record({
        names: flag,
        titles: fc.constantFrom('field', 'filename', 'text'),
        contexts: flag,
        logprobs: flag,
        citable: flag,
        clips: flag,
        detail: fc.constantFrom('everywhere', 'messages', 'nowhere'),
        validated: flag,
        foreignCallers: fc.constantFrom(/^x/, /./),
        tools: fc.constantFrom([], ['strict', 'output_schema']),
      }),
      serverTools: fc.constant({ web_search: { reads: [], write: () => ({ wire_type: 'own', config: {} }) } }),
      maxTools: fc.constantFrom(2, 128),
    },
    { requiredKeys: [] },
  );

  function freeze<T>(value: T): T {
    if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
    Object.freeze(value);
    for (const item of Object.values(value)) freeze(item);
    return value;
  }

  test('nothing is thrown but refusals, nothing is changed, and what is prepared is prepared', () => {
    let prepared = 0;
    fc.assert(
      fc.property(anyRequest, anyRules, (request, over) => {
        const once = attempt(freeze(request), testRules(over));
        if (!once) return;
        prepared++;
        const again = testRules(over);
        expect(run(freeze(once), again)).toEqual(once);
        expect(again.told).toEqual([]);
      }),
      { numRuns: 1500 },
    );
    expect(prepared).toBeGreaterThan(150);
  });

  function attempt(request: CanonicalRequest, rules: Rules): CanonicalRequest | undefined {
    try {
      return run(request, rules);
    } catch (error) {
      if (error instanceof Refused) return undefined;
      throw error;
    }
  }
});
