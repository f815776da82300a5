import { describe, expect, test } from 'vitest';
import { CodecError, convertRequest, type ProtocolId } from '../../src/index.ts';

// What a target cannot take is told by a note that points into the source. Each row was a silent loss.

type Json = Record<string, unknown>;

const MODELS = {
  'openai-chat': { provider: 'openai', model: 'gpt-5.6' },
  'anthropic-messages': { provider: 'anthropic', model: 'claude-opus-5' },
  'openai-responses': { provider: 'openai', model: 'gpt-5.6' },
  gemini: { provider: 'google', model: 'gemini-3-pro' },
} satisfies Record<ProtocolId, Json>;

const USER = { role: 'user', content: 'hi' };
const said = (content: unknown): Json => ({ role: 'assistant', content });
const chat = (over: Json): Json => ({ model: 'm', max_completion_tokens: 99, messages: [USER], ...over });
const claude = (over: Json): Json => ({ model: 'm', max_tokens: 9000, messages: [USER], ...over });
const responses = (over: Json): Json => ({ model: 'm', max_output_tokens: 99, input: 'hi', ...over });
const google = (over: Json): Json => ({
  contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
  generationConfig: { maxOutputTokens: 99 },
  ...over,
});

const SCHEMA = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false };
/** `a` may be left out, which strict mode of OpenAI does not allow. */
const LOOSE = { type: 'object', properties: { a: { type: 'string' } } };
const SEARCH = { type: 'web_search_20250305', name: 'web_search', max_uses: 3 };
const IMAGE = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: '' } };

interface Row {
  name: string;
  from: ProtocolId;
  to: ProtocolId[];
  body: Json;
  /** Another model than the usual one there. */
  model?: string;
  /** What of the result counts. */
  sends?: Json;
  told: string[];
}

const OTHERS = (own: ProtocolId): ProtocolId[] => (Object.keys(MODELS) as ProtocolId[]).filter((id) => id !== own); // the keys of a closed table

const ROWS: Row[] = [
  {
    name: 'a prefill, which OpenAI does not continue',
    from: 'anthropic-messages',
    to: ['openai-chat', 'openai-responses'],
    body: claude({ messages: [USER, said('{"a":')] }),
    told: ['APPROXIMATED /messages/1 messages.prefill'],
  },
  {
    name: 'a limit of web searches',
    from: 'anthropic-messages',
    to: ['openai-responses', 'gemini'],
    body: claude({ tools: [SEARCH] }),
    told: ['APPROXIMATED /tools/0 tools.web_search', 'DROPPED /tools/0/max_uses tools.web_search.max_uses'],
  },
  {
    name: 'domains of a web search that are not searched',
    from: 'anthropic-messages',
    to: ['gemini'],
    body: claude({ tools: [{ type: 'web_search_20250305', name: 'web_search', blocked_domains: ['a.b'] }] }),
    told: ['APPROXIMATED /tools/0 tools.web_search', 'DROPPED /tools/0/blocked_domains tools.web_search.blocked_domains'],
  },
  {
    name: 'how much of a web search is read',
    from: 'openai-responses',
    to: ['anthropic-messages', 'gemini'],
    body: responses({ tools: [{ type: 'web_search', search_context_size: 'high' }] }),
    told: ['APPROXIMATED /tools/0 tools.web_search', 'DROPPED /tools/0/search_context_size tools.web_search.search_context_size'],
  },
  {
    name: 'filters of a web search that are not known',
    from: 'openai-responses',
    to: ['anthropic-messages'],
    body: responses({ tools: [{ type: 'web_search', filters: { allowed_domains: ['a.b'], language: 'de' } }] }),
    told: ['APPROXIMATED /tools/0 tools.web_search', 'DROPPED /tools/0/filters/language tools.web_search.filters.language'],
  },
  {
    name: 'files of a container',
    from: 'openai-responses',
    to: ['anthropic-messages', 'gemini'],
    body: responses({ tools: [{ type: 'code_interpreter', container: { type: 'auto', file_ids: ['f'] } }] }),
    told: ['APPROXIMATED /tools/0 tools.code_execution', 'DROPPED /tools/0/container tools.code_execution.container'],
  },
  {
    name: 'a container that says nothing',
    from: 'openai-responses',
    to: ['anthropic-messages', 'gemini'],
    body: responses({ tools: [{ type: 'code_interpreter', container: { type: 'auto' } }] }),
    told: ['APPROXIMATED /tools/0 tools.code_execution'],
  },
  {
    name: 'an empty message of a user',
    from: 'openai-chat',
    to: ['anthropic-messages', 'openai-responses', 'gemini'],
    body: chat({ messages: [USER, { role: 'user', content: '' }] }),
    told: ['REPAIRED /messages/1 messages.empty'],
  },
  {
    name: 'nothing but an empty message of a user, which OpenAI accepts',
    from: 'openai-chat',
    to: ['openai-chat', 'openai-responses'],
    body: chat({ messages: [{ role: 'user', content: '' }] }),
    told: [],
  },
  {
    name: 'an empty message of an assistant',
    from: 'openai-chat',
    to: ['anthropic-messages', 'openai-responses', 'gemini'],
    body: chat({ messages: [USER, said(''), USER] }),
    told: ['REPAIRED /messages/1 messages.empty'],
  },
  {
    name: 'an empty message of an assistant of Responses',
    from: 'openai-responses',
    to: ['openai-chat', 'anthropic-messages', 'gemini', 'openai-responses'],
    body: responses({ input: [USER, said(''), USER] }),
    told: ['REPAIRED /input/1 messages.empty'],
  },
  {
    name: 'text of nothing but white space',
    from: 'openai-chat',
    to: ['anthropic-messages'],
    body: chat({
      messages: [
        USER,
        said([
          { type: 'text', text: ' ' },
          { type: 'text', text: 'b' },
        ]),
        USER,
      ],
    }),
    told: ['REPAIRED /messages/1/content/0 messages.whitespace'],
  },
  {
    name: 'instructions of nothing but white space',
    from: 'openai-chat',
    to: ['anthropic-messages'],
    body: chat({ messages: [{ role: 'system', content: ' \n' }, USER] }),
    told: ['REPAIRED /messages/0/content messages.whitespace'],
  },
  {
    name: 'an effort beside disabled thinking',
    from: 'anthropic-messages',
    to: ['openai-chat', 'openai-responses'],
    body: claude({ thinking: { type: 'disabled' }, output_config: { effort: 'high' } }),
    told: ['DROPPED /output_config/effort thinking.effort'],
  },
  {
    name: 'an effort beside disabled thinking, where thinking cannot be disabled',
    from: 'anthropic-messages',
    to: ['gemini'],
    body: claude({ thinking: { type: 'disabled' }, output_config: { effort: 'high' } }),
    told: ['APPROXIMATED /thinking/type thinking.effort', 'DROPPED /output_config/effort thinking.effort'],
  },
  {
    name: 'an effort beside disabled thinking, for a model that does not think',
    from: 'anthropic-messages',
    to: ['openai-chat'],
    model: 'gpt-4.1',
    body: claude({ thinking: { type: 'disabled' }, output_config: { effort: 'high' } }),
    told: ['DROPPED /output_config/effort thinking.effort'],
  },
  {
    name: 'an effort beside disabled thinking in the words of other vendors',
    from: 'openai-chat',
    to: ['openai-responses'],
    body: chat({ thinking: { type: 'disabled' }, reasoning_effort: 'high' }),
    told: ['DROPPED /reasoning_effort thinking.effort'],
  },
  {
    name: 'the name of a schema',
    from: 'openai-chat',
    to: ['anthropic-messages', 'gemini'],
    body: chat({ response_format: { type: 'json_schema', json_schema: { name: 'weather', strict: true, schema: SCHEMA } } }),
    told: ['DROPPED /response_format/json_schema/name output_format.name'],
  },
  {
    name: 'the name of a schema of Responses',
    from: 'openai-responses',
    to: ['anthropic-messages', 'gemini'],
    body: responses({ text: { format: { type: 'json_schema', name: 'weather', strict: true, schema: SCHEMA } } }),
    told: ['DROPPED /text/format/name output_format.name'],
  },
  {
    name: 'a schema without a name',
    from: 'anthropic-messages',
    to: ['openai-chat'],
    body: claude({ output_config: { format: { type: 'json_schema', schema: SCHEMA } } }),
    sends: { response_format: { type: 'json_schema', json_schema: { name: 'response', strict: true, schema: SCHEMA } } },
    told: ['APPROXIMATED /output_config/format output_format.name'],
  },
  {
    name: 'a schema that is always kept',
    from: 'anthropic-messages',
    to: ['openai-responses'],
    body: claude({ output_config: { format: { type: 'json_schema', schema: SCHEMA } } }),
    sends: { text: { format: { type: 'json_schema', name: 'response', strict: true, schema: SCHEMA } } },
    told: ['APPROXIMATED /output_config/format output_format.name'],
  },
  {
    name: 'a schema that is always kept, but not in strict mode of OpenAI',
    from: 'anthropic-messages',
    to: ['openai-chat', 'openai-responses'],
    body: claude({ output_config: { format: { type: 'json_schema', schema: LOOSE } } }),
    told: ['APPROXIMATED /output_config/format output_format.name', 'APPROXIMATED /output_config/format output_format.strict'],
  },
  {
    name: 'a schema of Google that is always kept',
    from: 'gemini',
    to: ['openai-chat'],
    body: google({ generationConfig: { responseMimeType: 'application/json', responseJsonSchema: SCHEMA } }),
    sends: { response_format: { type: 'json_schema', json_schema: { name: 'response', strict: true, schema: SCHEMA } } },
    told: ['APPROXIMATED /generationConfig/responseMimeType output_format.name'],
  },
  {
    name: 'a format of another type, under its old name',
    from: 'anthropic-messages',
    to: OTHERS('anthropic-messages'),
    body: claude({ output_format: { type: 'grammar', grammar: 'x' } }),
    told: ['DROPPED /output_format unknown.output_format'],
  },
  {
    name: 'a format under both names',
    from: 'anthropic-messages',
    to: ['gemini'],
    body: claude({
      output_config: { format: { type: 'json_schema', schema: SCHEMA } },
      output_format: { type: 'json_schema', schema: LOOSE },
    }),
    told: ['DROPPED /output_format unknown.output_format'],
  },
  {
    name: 'tools with one name',
    from: 'anthropic-messages',
    to: OTHERS('anthropic-messages'),
    body: claude({
      tools: [
        { name: 'f', input_schema: SCHEMA },
        { name: 'f', description: 'another', input_schema: SCHEMA },
      ],
    }),
    told: ['REPAIRED /tools/1 tools.name'],
  },
  {
    name: 'tools with one name to their own protocol',
    from: 'openai-chat',
    to: ['openai-chat'],
    body: chat({
      tools: [
        { type: 'function', function: { name: 'f', parameters: SCHEMA } },
        { type: 'function', function: { name: 'f', parameters: SCHEMA } },
      ],
    }),
    sends: { tools: [{ type: 'function', function: { name: 'f', parameters: SCHEMA } }] },
    told: ['REPAIRED /tools/1 tools.name'],
  },
  {
    name: 'an image without data',
    from: 'anthropic-messages',
    to: ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'],
    body: claude({ messages: [{ role: 'user', content: [{ type: 'text', text: 'a' }, IMAGE] }] }),
    told: ['DROPPED /messages/0/content/1 image'],
  },
  {
    name: 'an image without data in the result of a tool',
    from: 'anthropic-messages',
    to: ['openai-chat', 'openai-responses'],
    body: claude({
      messages: [
        USER,
        said([{ type: 'tool_use', id: 'c', name: 'f', input: {} }]),
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content: [{ type: 'text', text: 'a' }, IMAGE] }] },
      ],
    }),
    told: ['DROPPED /messages/2/content/0/content/1 image'],
  },
  {
    name: 'an image with an unknown source',
    from: 'anthropic-messages',
    to: OTHERS('anthropic-messages'),
    body: claude({
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'a' },
            { type: 'image', source: { type: 'bytes', data: 'a' } },
          ],
        },
      ],
    }),
    told: ['DROPPED /messages/0/content/1 messages.opaque'],
  },
  {
    name: 'audio and a document without data',
    from: 'gemini',
    to: ['openai-chat'],
    body: google({
      contents: [
        {
          role: 'user',
          parts: [
            { text: 'a' },
            { inlineData: { mimeType: 'audio/wav', data: '' } },
            { inlineData: { mimeType: 'application/pdf', data: '' } },
          ],
        },
      ],
    }),
    told: ['DROPPED /contents/0/parts/1 audio', 'DROPPED /contents/0/parts/2 file'],
  },
  {
    name: 'compaction of the context',
    from: 'anthropic-messages',
    to: OTHERS('anthropic-messages'),
    body: claude({ context_management: { edits: [{ type: 'compact_20260112' }] } }),
    told: ['DROPPED /context_management unknown.context_management'],
  },
  {
    name: 'compaction of the context of Responses',
    from: 'openai-responses',
    to: OTHERS('openai-responses'),
    body: responses({ context_management: [{ type: 'compaction', compact_threshold: 1000 }] }),
    told: ['DROPPED /context_management unknown.context_management'],
  },
  {
    name: 'the summary of a compaction',
    from: 'anthropic-messages',
    to: ['openai-chat'],
    body: claude({ messages: [USER, said([{ type: 'compaction', content: 'so far' }]), USER] }),
    sends: { messages: [USER, said('so far'), USER] },
    told: ['APPROXIMATED /messages/1/content/0 messages.opaque'],
  },
];

const PAIRS = ROWS.flatMap((row) => row.to.map((to) => ({ ...row, to })));

describe('a loss is noted', () => {
  test.each(PAIRS)('$name: $from to $to', ({ from, to, body, model = MODELS[to].model, sends = {}, told }) => {
    const { body: sent, notes } = convertRequest(body, { from, to, ...MODELS[to], model });
    expect(notes.map(({ code, path, feature }) => `${code} ${path} ${feature}`).toSorted()).toEqual(told.toSorted());
    expect(sent).toMatchObject(sends);
  });

  test('no request of the table is sent with an empty message', () => {
    for (const { from, to, body } of PAIRS) {
      const { body: sent } = convertRequest(body, { from, to, ...MODELS[to] });
      const { messages, input, contents } = sent as Json;
      for (const turn of (messages ?? input ?? contents) as Json[])
        expect(turn['content'] ?? turn['parts'] ?? turn).not.toEqual([]);
    }
  });
});

describe('a prefill that is continued is no loss', () => {
  test.each([
    { to: 'openai-chat', provider: 'mistral' },
    { to: 'openai-chat', provider: 'deepseek' },
    { to: 'gemini', provider: 'google' },
  ] as const)('$to by $provider', ({ to, provider }) => {
    const body = claude({ messages: [USER, said('{"a":')] });
    expect(convertRequest(body, { from: 'anthropic-messages', to, provider, model: 'm' }).notes).toEqual([]);
  });

  test('nor is a trailing message that OpenAI itself would not continue', () => {
    const body = chat({ messages: [USER, said('{"a":')] });
    for (const to of ['openai-chat', 'openai-responses'] as const)
      expect(convertRequest(body, { from: 'openai-chat', to, ...MODELS[to] }).notes).toEqual([]);
  });
});

describe('a format that is wrong is refused with its place', () => {
  test.each<[body: Json, param: string]>([
    [{ output_format: { type: 'json_schema' } }, 'output_format.schema'],
    [{ output_format: { type: 'json_schema', schema: 'x' } }, 'output_format.schema'],
    [{ output_format: 'json' }, 'output_format'],
    [{ output_config: { format: { type: 'json_schema' } } }, 'output_config.format.schema'],
    [{ output_config: { format: 'json' } }, 'output_config.format'],
    [{ output_config: 'x' }, 'output_config'],
  ])('%j', (over, param) => {
    const convert = (): unknown => convertRequest(claude(over), { from: 'anthropic-messages', to: 'openai-chat' });
    expect(convert).toThrow(CodecError);
    expect(convert).toThrow(new RegExp(`^${param}: `));
  });

  test('a format of the future goes back as it came, under the name it had', () => {
    for (const over of [{ output_format: { type: 'grammar' } }, { output_config: { format: { type: 'grammar' } } }]) {
      const { body, notes } = convertRequest(claude(over), { from: 'anthropic-messages', to: 'anthropic-messages' });
      expect(body).toMatchObject(over);
      expect(notes).toEqual([]);
    }
  });
});
