import { describe, expect, test } from 'vitest';
import { messagesContext } from '../../../../test/sdk/anthropic.ts';
import { CodecError } from '../../src/canonical/notes.ts';
import { SOURCE } from '../../src/canonical/source.ts';
import { encodeCarrier } from '../../src/codec/answers.ts';
import type { HeaderBag } from '../../src/codec/protocol.ts';
import type { JsonObject } from '../../src/json/json.ts';
import { decodeRequest } from '../../src/protocols/anthropic-messages/request-decode.ts';

const user = (...content: JsonObject[]): JsonObject => ({ role: 'user', content });
const assistant = (...content: JsonObject[]): JsonObject => ({ role: 'assistant', content });
const text = (value: string, more: JsonObject = {}): JsonObject => ({ type: 'text', text: value, ...more });
const call = (id: string, name = 'f', more: JsonObject = {}): JsonObject => ({ type: 'tool_use', id, name, input: {}, ...more });
const result = (id: string, content: unknown, more: JsonObject = {}): JsonObject => ({
  type: 'tool_result',
  tool_use_id: id,
  content,
  ...more,
});
const HI = user(text('hi'));

function decode(body: JsonObject, headers: HeaderBag = {}, path = '/v1/messages') {
  const whole = { model: 'claude', max_tokens: 10, messages: [HI], ...body };
  return decodeRequest({ method: 'POST', path, headers, body: whole }, messagesContext());
}

const contentOf = (...blocks: JsonObject[]) => decode({ messages: [user(...blocks)] }).messages[0]?.content;
const saidOf = (...blocks: JsonObject[]) => decode({ messages: [HI, assistant(...blocks)] }).messages[1]?.content;
const own = (fields: JsonObject) => ({ extensions: { 'anthropic-messages': fields } });

describe('the conversation', () => {
  test('texts as they are', () => {
    const { system, messages } = decode({ system: 'Be brief.', messages: [{ role: 'user', content: 'hi' }] });
    expect(system).toEqual([{ type: 'text', text: 'Be brief.' }]);
    expect(messages).toEqual([{ role: 'user', content: [{ type: 'text', text: 'hi' }] }]);
  });

  test('instructions with marks', () => {
    const { system } = decode({ system: [text('a', { cache_control: { type: 'ephemeral', ttl: '1h' } }), text('')] });
    expect(system).toEqual([{ type: 'text', text: 'a', cache_control: { type: 'ephemeral', ttl: '1h' } }]);
  });

  test('P03 results of tools are a turn of their own, before what the user says', () => {
    const messages = [HI, assistant(call('x'), call('y')), user(text('look'), result('x', '1'), result('y', '2'))];
    expect(decode({ messages }).messages.slice(2)).toEqual([
      {
        role: 'tool',
        content: [
          { type: 'tool_result', tool_use_id: 'x', name: 'f', content: '1' },
          { type: 'tool_result', tool_use_id: 'y', name: 'f', content: '2' },
        ],
      },
      { role: 'user', content: [{ type: 'text', text: 'look' }] },
    ]);
  });

  test('P15 instructions among the messages keep their place', () => {
    const messages = [HI, { role: 'system', content: [text('now')] }, { role: 'system', content: 'then' }];
    expect(decode({ messages }).messages.slice(1)).toEqual([
      { role: 'system', content: [{ type: 'text', text: 'now' }] },
      { role: 'system', content: [{ type: 'text', text: 'then' }] },
    ]);
  });

  test('those in front are instructions like any other', () => {
    const { system, messages } = decode({ system: 'a', messages: [{ role: 'system', content: 'b' }, HI] });
    expect(system?.map((block) => block.text)).toEqual(['a', 'b']);
    expect(messages).toHaveLength(1);
  });

  test('the policy may hoist all', () => {
    const context = messagesContext({ policy: { systemHoist: 'all' } });
    const body = { model: 'm', messages: [HI, { role: 'system', content: 'b' }] };
    const { system, messages } = decodeRequest({ method: 'POST', path: '', headers: {}, body }, context);
    expect([system?.length, messages.length]).toEqual([1, 1]);
  });
});

describe('blocks', () => {
  const source = { type: 'base64', media_type: 'image/png', data: 'AA' };
  const citation = { type: 'char_location', cited_text: 'c', document_index: 0 };
  const rows: [name: string, block: JsonObject, canonical: unknown][] = [
    ['image base64', { type: 'image', source }, { type: 'image', source: { data: 'AA', media_type: 'image/png' } }],
    ['image url', { type: 'image', source: { type: 'url', url: 'https://a' } }, { type: 'image', source: { url: 'https://a' } }],
    [
      'P33 a data: URL is no URL',
      { type: 'image', source: { type: 'url', url: 'data:image/png;base64,AA' } },
      { type: 'image', source: { data: 'AA', media_type: 'image/png' } },
    ],
    [
      'image file, which says whose it is',
      { type: 'image', source: { type: 'file', file_id: 'f' } },
      { type: 'image', source: { file_id: 'f' }, ...own({ source: { type: 'file' } }) },
    ],
    [
      'a source of the future',
      { type: 'image', source: { type: 'new' } },
      { type: 'opaque', origin: 'anthropic-messages', raw: { type: 'image', source: { type: 'new' } } },
    ],
    [
      'document pdf',
      {
        type: 'document',
        source: { type: 'base64', media_type: 'application/pdf', data: 'AA' },
        title: 't',
        context: 'c',
        citations: { enabled: true },
      },
      {
        type: 'file',
        source: { file_data: 'AA', media_type: 'application/pdf' },
        title: 't',
        context: 'c',
        citations_enabled: true,
      },
    ],
    [
      'document text',
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'abc' } },
      { type: 'file', source: { text: 'abc', media_type: 'text/plain' } },
    ],
    [
      'document content',
      { type: 'document', source: { type: 'content', content: [text('a')] } },
      { type: 'file', source: { content: [{ type: 'text', text: 'a' }] } },
    ],
    [
      'document url',
      { type: 'document', source: { type: 'url', url: 'https://a' } },
      { type: 'file', source: { file_url: 'https://a' } },
    ],
    [
      'search result',
      { type: 'search_result', source: 's', title: 't', content: [text('a')], citations: { enabled: false } },
      {
        type: 'file',
        source: { content: [{ type: 'text', text: 'a' }] },
        search_result: { source: 's' },
        title: 't',
        citations_enabled: false,
      },
    ],
    [
      'text with citations',
      text('a', { citations: [citation] }),
      {
        type: 'text',
        text: 'a',
        citations: [{ kind: 'document', cited_text: 'c', document_index: 0, raw: citation, origin: 'anthropic-messages' }],
      },
    ],
    [
      'container_upload',
      { type: 'container_upload', file_id: 'f' },
      { type: 'opaque', origin: 'anthropic-messages', raw: { type: 'container_upload', file_id: 'f' } },
    ],
    ['a field that nobody knows', text('a', { new: 1 }), { type: 'text', text: 'a', ...own({ new: 1 }) }],
    [
      'a mark',
      text('a', { cache_control: { type: 'ephemeral' } }),
      { type: 'text', text: 'a', cache_control: { type: 'ephemeral' } },
    ],
  ];

  test.each(rows)('%s', (_name, block, canonical) => {
    expect(contentOf(block)).toEqual([canonical]);
  });

  const said: [name: string, block: JsonObject, canonical: unknown][] = [
    [
      'thinking',
      { type: 'thinking', thinking: 'hm', signature: 's' },
      { type: 'thinking', thinking: 'hm', signature: { origin: 'anthropic-messages', form: 'signature', value: 's' } },
    ],
    ['unsigned thinking', { type: 'thinking', thinking: 'hm', signature: '' }, { type: 'thinking', thinking: 'hm' }],
    [
      'redacted thinking',
      { type: 'redacted_thinking', data: 'd' },
      {
        type: 'thinking',
        thinking: '',
        variant: 'redacted',
        signature: { origin: 'anthropic-messages', form: 'redacted', value: 'd' },
      },
    ],
    ['a call', call('x', 'f', { caller: { type: 'direct' } }), { type: 'tool_use', id: 'x', name: 'f', input: {} }],
    [
      'a call that code made',
      call('x', 'f', { caller: { type: 'code_execution_20250825', tool_id: 's' } }),
      { type: 'tool_use', id: 'x', name: 'f', input: {}, ...own({ caller: { type: 'code_execution_20250825', tool_id: 's' } }) },
    ],
    [
      'P43 arguments as text',
      call('x', 'f', { input: '{"a":1}' }),
      { type: 'tool_use', id: 'x', name: 'f', input: { a: 1 }, input_raw: '{"a":1}' },
    ],
    [
      'P44 arguments that are no object',
      call('x', 'f', { input: [1] }),
      { type: 'tool_use', id: 'x', name: 'f', input: {}, input_raw: '[1]' },
    ],
    [
      'a call that the provider ran',
      { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'q' } },
      {
        type: 'tool_use',
        id: 's',
        name: 'web_search',
        input: { query: 'q' },
        kind: 'server',
        ...own({ type: 'server_tool_use' }),
      },
    ],
    [
      'and one of MCP',
      { type: 'mcp_tool_use', id: 's', name: 'n', server_name: 'm', input: {} },
      { type: 'tool_use', id: 's', name: 'n', input: {}, kind: 'mcp', ...own({ type: 'mcp_tool_use', server_name: 'm' }) },
    ],
    [
      'compaction',
      { type: 'compaction', content: 'c' },
      { type: 'opaque', origin: 'anthropic-messages', raw: { type: 'compaction', content: 'c' }, text: 'c' },
    ],
  ];

  test.each(said)('%s of an assistant', (_name, block, canonical) => {
    expect(saidOf(block)).toEqual([canonical]);
  });

  test('what the provider answered to its own call, with the name of the call', () => {
    const found = { type: 'web_search_tool_result', tool_use_id: 's', content: [{ type: 'web_search_result', url: 'u' }] };
    const [, answer] = saidOf({ type: 'server_tool_use', id: 's', name: 'web_search', input: {} }, found) ?? [];
    expect(answer).toMatchObject({
      type: 'tool_result',
      tool_use_id: 's',
      name: 'web_search',
      kind: 'server',
      ...own({ type: 'web_search_tool_result', content: found.content }),
    });
  });

  test('results of texts, images, documents, references', () => {
    const parts = [text('a'), text(''), { type: 'image', source }, { type: 'tool_reference', tool_name: 't' }];
    const [, , tool] = decode({ messages: [HI, assistant(call('x')), user(result('x', parts, { is_error: true }))] }).messages;
    expect(tool?.content).toEqual([
      {
        type: 'tool_result',
        tool_use_id: 'x',
        name: 'f',
        is_error: true,
        content: [
          { type: 'text', text: 'a' },
          { type: 'image', source: { data: 'AA', media_type: 'image/png' } },
          { type: 'opaque', origin: 'anthropic-messages', raw: { type: 'tool_reference', tool_name: 't' } },
        ],
      },
    ]);
  });
});

describe('P81 carriers', () => {
  const blob = { origin: 'gemini', form: 'thought_signature', value: 'S' } as const;
  const carry = (attach: 'self' | 'next'): JsonObject => ({
    type: 'thinking',
    thinking: '',
    signature: encodeCarrier(blob, 'g.1', attach),
  });
  const signature = { ...blob, provider: 'g.1' };

  test('a signature for the next block signs it, and its block is none', () => {
    expect(saidOf(carry('next'), call('x'))).toEqual([{ type: 'tool_use', id: 'x', name: 'f', input: {}, signature }]);
    expect(saidOf(carry('next'), text('a'))).toEqual([{ type: 'text', text: 'a', signature }]);
  });

  test('a signature of its own stays', () => {
    expect(saidOf(carry('self'), text('a'))?.[0]).toEqual({ type: 'thinking', thinking: '', signature });
  });

  test('one for a block that does not come stays, too, and does not reach into the next message', () => {
    const { messages } = decode({ messages: [HI, assistant(carry('next')), HI, assistant(call('x'))] });
    expect(messages[1]?.content).toEqual([{ type: 'thinking', thinking: '', signature }]);
    expect(messages[3]?.content[0]).not.toHaveProperty('signature');
  });
});

describe('tools', () => {
  const toolOf = (tool: JsonObject) => decode({ tools: [tool] }).tools?.[0];

  test('a function with all that can be said of it', () => {
    const tool = {
      name: 'f',
      description: 'd',
      input_schema: { type: 'object' },
      strict: true,
      defer_loading: true,
      allowed_callers: ['direct'],
      input_examples: [{ a: 1 }],
      eager_input_streaming: true,
      cache_control: { type: 'ephemeral' },
    };
    expect(toolOf({ type: 'custom', ...tool })).toEqual(tool);
  });

  test.each([
    ['web_search_20260318', 'web_search', 'server'],
    ['web_fetch_20250910', 'web_fetch', 'server'],
    ['code_execution_20260521', 'code_execution', 'server'],
    ['bash_20250124', 'bash', 'server'],
    ['text_editor_20250728', 'text_editor', 'server'],
    ['memory_20250818', 'memory', 'server'],
    ['computer_20250124', 'computer', 'server'],
    ['tool_search_tool_bm25_20251119', 'tool_search', 'server'],
    ['mcp_toolset', 'mcp', 'mcp'],
    ['advisor_20260301', 'advisor', 'server'],
  ])('%s is a %s', (wire_type, type, kind) => {
    expect(toolOf({ type: wire_type, name: 'n', max_uses: 2 })).toEqual({
      name: 'n',
      kind,
      server: { type, wire_type, config: { name: 'n', max_uses: 2 }, origin: 'anthropic-messages' },
    });
  });
});

describe('the rest', () => {
  const rows: [name: string, body: JsonObject, canonical: JsonObject][] = [
    ['tool_choice any', { tool_choice: { type: 'any' } }, { tool_choice: { type: 'any' } }],
    [
      'one call at a time',
      { tool_choice: { type: 'tool', name: 'f', disable_parallel_tool_use: true } },
      { tool_choice: { type: 'tool', name: 'f' }, parallel_tool_use: false },
    ],
    [
      'parameters',
      { max_tokens: 0, temperature: 0.5, top_p: 0.9, top_k: 4, stop_sequences: ['a'] },
      { parameters: { max_tokens: 0, temperature: 0.5, top_p: 0.9, top_k: 4, stop_sequences: ['a'] } },
    ],
    [
      'a budget',
      { thinking: { type: 'enabled', budget_tokens: 2000, display: 'omitted' } },
      { thinking: { type: 'enabled', budget_tokens: 2000, display: 'omitted' } },
    ],
    [
      'adaptive thinking with an effort',
      { thinking: { type: 'adaptive' }, output_config: { effort: 'max' } },
      { thinking: { type: 'adaptive', effort: 'max' } },
    ],
    [
      'an effort alone',
      { output_config: { effort: 'low' } },
      { thinking: { type: 'adaptive', effort: 'low' }, ...own({ output_config: { effort: 'low' } }) },
    ],
    ['no thinking', { thinking: { type: 'disabled' } }, { thinking: { type: 'disabled' } }],
    [
      'a kind of thinking that only this protocol has',
      { thinking: { type: 'between_tools' } },
      { thinking: { type: 'adaptive' }, ...own({ thinking: { type: 'between_tools' } }) },
    ],
    [
      'a display that only this protocol has',
      { thinking: { type: 'enabled', budget_tokens: 2000, display: 'updates' } },
      {
        thinking: { type: 'enabled', budget_tokens: 2000, display: 'summarized' },
        ...own({ thinking: { display: 'updates' } }),
      },
    ],
    [
      'a display that has no canonical form',
      { thinking: { type: 'adaptive', display: 'future' } },
      { thinking: { type: 'adaptive' }, ...own({ thinking: { display: 'future' } }) },
    ],
    [
      'a schema',
      { output_config: { format: { type: 'json_schema', schema: { type: 'object' } } } },
      { output_format: { type: 'json_schema', json_schema: { schema: { type: 'object' } } } },
    ],
    [
      'a schema in the words of the beta',
      { output_format: { type: 'json_schema', schema: { type: 'object' } } },
      { output_format: { type: 'json_schema', json_schema: { schema: { type: 'object' } } } },
    ],
    ['the user', { metadata: { user_id: '{"a":1}' } }, { user_id: '{"a":1}' }],
    ['the tier', { service_tier: 'standard_only' }, { service_tier: 'standard' }],
    ['a mark of the whole', { cache_control: { type: 'ephemeral' } }, { prompt_cache: { cache_control: { type: 'ephemeral' } } }],
    ['a stream', { stream: true }, { stream: true }],
    ['betas', { container: 'c', mcp_servers: [], speed: 'fast' }, own({ container: 'c', mcp_servers: [], speed: 'fast' })],
  ];

  test.each(rows)('%s', (_name, body, canonical) => {
    expect(decode(body)).toMatchObject(canonical);
  });

  test('the headers that belong to the request', () => {
    const headers = { 'anthropic-beta': 'a,b', 'anthropic-version': '2026-10-21', 'x-api-key': 'secret' };
    expect(decode({}, headers).extensions).toEqual({
      'anthropic-messages': { 'anthropic-beta': 'a,b', 'anthropic-version': '2026-10-21' },
    });
  });

  test.each([
    ['/model/us.anthropic.claude-sonnet-4-5-v1%3A0/invoke', 'us.anthropic.claude-sonnet-4-5-v1:0'],
    ['/model/m/invoke-with-response-stream', 'm'],
    [
      '/v1/projects/p/locations/l/publishers/anthropic/models/claude-opus-4-1@20250805:streamRawPredict',
      'claude-opus-4-1@20250805',
    ],
  ])('%s names the model', (path, model) => {
    expect(decode({ model: undefined }, {}, path).model).toBe(model);
  });

  test('nodes remember their place when they are asked to', () => {
    const body = {
      model: 'm',
      system: 'a',
      tools: [{ name: 'f' }],
      messages: [HI, assistant(call('x')), user(result('x', 'r'), text('t'))],
    };
    const request = decodeRequest({ method: 'POST', path: '', headers: {}, body }, messagesContext({ trace: true }));
    const place = (node: object | undefined) => (node as { [SOURCE]?: string })[SOURCE];
    expect([place(request.system?.[0]), place(request.tools?.[0]), place(request.messages[3])]).toEqual([
      '/system',
      '/tools/0',
      '/messages/2',
    ]);
    expect(place(request.messages[3]?.content[0])).toBe('/messages/2/content/1');
    expect(place(request.messages[2]?.content[0])).toBe('/messages/2/content/0');
  });

  test('__proto__ is data', () => {
    const body = JSON.parse('{"model":"m","messages":[{"role":"user","content":"a"}],"__proto__":{"x":1}}');
    const { extensions } = decodeRequest({ method: 'POST', path: '', headers: {}, body }, messagesContext());
    expect(Object.keys(extensions?.['anthropic-messages'] ?? {})).toEqual(['__proto__']);
  });
});

describe('invalid input is rejected with its path', () => {
  const deep = (levels: number): unknown => (levels === 0 ? 1 : [deep(levels - 1)]);
  const rows: [param: string, body: unknown][] = [
    ['body', 'text'],
    ['model', { messages: [HI] }],
    ['messages', { model: 'm' }],
    ['messages', { model: 'm', messages: [] }],
    ['messages[0]', { model: 'm', messages: ['a'] }],
    ['messages[0].role', { model: 'm', messages: [{ role: 'tool', content: 'a' }] }],
    ['messages[0].content', { model: 'm', messages: [{ role: 'user' }] }],
    ['messages[0].content[0].type', { model: 'm', messages: [user({})] }],
    ['messages[0].content[0].text', { model: 'm', messages: [user({ type: 'text' })] }],
    ['messages[0].content[0].source', { model: 'm', messages: [user({ type: 'image' })] }],
    ['messages[0].content[0].tool_use_id', { model: 'm', messages: [user({ type: 'tool_result' })] }],
    ['messages[0].content[0].id', { model: 'm', messages: [assistant({ type: 'tool_use', name: 'f' })] }],
    ['messages[0].content[1].type', { model: 'm', messages: [user(text('a'), call('x'))] }],
    ['messages[1].content[0].type', { model: 'm', messages: [HI, assistant(result('x', 'r'))] }],
    ['messages[0].content[0].content[0].type', { model: 'm', messages: [user(result('x', [call('y')]))] }],
    ['system[0].type', { model: 'm', messages: [HI], system: [{ type: 'image' }] }],
    ['tools[0].name', { model: 'm', messages: [HI], tools: [{}] }],
    ['tools[0].input_schema', { model: 'm', messages: [HI], tools: [{ name: 'f', input_schema: [] }] }],
    ['tool_choice.name', { model: 'm', messages: [HI], tool_choice: { type: 'tool' } }],
    ['max_tokens', { model: 'm', messages: [HI], max_tokens: -1 }],
    ['temperature', { model: 'm', messages: [HI], temperature: 'hot' }],
    ['stop_sequences[0]', { model: 'm', messages: [HI], stop_sequences: [1] }],
    ['thinking.type', { model: 'm', messages: [HI], thinking: {} }],
    ['metadata', { model: 'm', messages: [HI], metadata: 'a' }],
    ['stream', { model: 'm', messages: [HI], stream: 'yes' }],
    ['messages[1]', { model: 'm', messages: [HI, user(text('a', { x: deep(300) }))] }],
    ['tools[0]', { model: 'm', messages: [HI], tools: [{ name: 'f', input_schema: { a: deep(300) } }] }],
  ];

  test.each(rows)('%s', (param, body) => {
    const run = () => decodeRequest({ method: 'POST', path: '', headers: {}, body }, messagesContext());
    expect(run).toThrow(CodecError);
    try {
      run();
    } catch (error) {
      expect(error instanceof CodecError && error.error).toMatchObject({ param, http_status: 400 });
    }
  });
});
