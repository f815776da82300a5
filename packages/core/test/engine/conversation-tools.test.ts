import { describe, expect, test } from 'vitest';
import { convertRequest, convertResponse, type ProtocolId } from '../../src/index.ts';

type Json = Record<string, unknown>;

const MODELS = {
  'openai-chat': { provider: 'openai', model: 'gpt-5.6' },
  'anthropic-messages': { provider: 'anthropic', model: 'claude-opus-5' },
  'openai-responses': { provider: 'openai', model: 'gpt-5.6' },
  gemini: { provider: 'google', model: 'gemini-3-pro' },
} satisfies Record<ProtocolId, Json>;

const PROTOCOLS = Object.keys(MODELS) as ProtocolId[]; // the keys of a closed table

const convert = (from: ProtocolId, to: ProtocolId, body: Json) => {
  const { notes, ...converted } = convertRequest(body, { from, to, ...MODELS[to] });
  return { body: converted.body as Json, told: notes.map(({ code, path }) => `${code} ${path}`) }; // every codec writes an object
};

const SCHEMA = { type: 'object', properties: { city: { type: 'string' } } };
const user = (text: string): Json => ({ role: 'user', content: text });

/** Names of the tools of a body, in the places of each protocol. */
function toolNames({ tools = [] }: { tools?: unknown }): unknown[] {
  return (tools as Json[]).flatMap((tool) => {
    const declarations = tool['functionDeclarations'] as Json[] | undefined;
    if (declarations) return declarations.map(({ name }) => name);
    return [(tool['function'] as Json | undefined)?.['name'] ?? tool['name'] ?? tool['type'] ?? Object.keys(tool)[0]];
  });
}

/** Roles of the turns, without their text. */
function roles({ messages, input, contents }: { messages?: unknown; input?: unknown; contents?: unknown }): unknown[] {
  return ((messages ?? input ?? contents) as Json[]).map(({ role, type }) => role ?? type);
}

/** Items and blocks of a conversation that are no text. */
function specialOf({ input, messages }: { input?: unknown; messages?: unknown }): Json[] {
  const turns = (input ?? messages) as Json[];
  const nodes = turns.flatMap((turn) => (Array.isArray(turn['content']) ? (turn['content'] as Json[]) : [turn]));
  return nodes.filter(({ type = 'message' }) => !['message', 'text', 'input_text'].includes(String(type)));
}

const responses = (items: Json[], over: Json = {}): Json => ({ model: 'm', max_output_tokens: 99, input: items, ...over });
const claude = (messages: Json[], over: Json = {}): Json => ({ model: 'm', max_tokens: 99, messages, ...over });

const F = { type: 'function', name: 'f', parameters: SCHEMA };
const G = { type: 'function', name: 'g', parameters: SCHEMA };
const DEFINITION = { name: 'f', input_schema: SCHEMA };
const adding = (definition: Json): Json => ({ type: 'tool_addition', tool: { type: 'tool_definition', definition } });
const naming = (type: string, name: string): Json => ({ type, tool: { type: 'tool_reference', name } });
const instructing = (...content: Json[]): Json[] => [user('a'), { role: 'system', content }, user('b')];

interface Row {
  name: string;
  from: ProtocolId;
  body: Json;
  /** Tools that every other protocol is sent. */
  tools: string[];
  /** Notes about them, whatever the target. */
  told: string[];
}

const ROWS: Row[] = [
  {
    name: 'tools of an additional_tools item',
    from: 'openai-responses',
    body: responses([user('a'), { type: 'additional_tools', role: 'developer', tools: [F, G] }, user('b')]),
    tools: ['f', 'g'],
    told: ['APPROXIMATED /input/1'],
  },
  {
    name: 'tools of an additional_tools item beside declared ones',
    from: 'openai-responses',
    body: responses([user('a'), { type: 'additional_tools', role: 'developer', tools: [G] }], { tools: [F] }),
    tools: ['f', 'g'],
    told: ['APPROXIMATED /input/1'],
  },
  {
    name: 'tools in a namespace of an additional_tools item',
    from: 'openai-responses',
    body: responses([
      user('a'),
      { type: 'additional_tools', role: 'developer', tools: [{ type: 'namespace', name: 'n', description: 'd', tools: [F] }] },
    ]),
    tools: ['n__f'],
    told: ['APPROXIMATED /input/1'],
  },
  {
    name: 'tools that a client-side tool search found',
    from: 'openai-responses',
    body: responses([
      user('a'),
      { type: 'tool_search_call', call_id: 'c', execution: 'client', arguments: {} },
      { type: 'tool_search_output', call_id: 'c', execution: 'client', tools: [F] },
    ]),
    tools: ['f'],
    told: [],
  },
  {
    name: 'a tool that a server-side tool search found is already declared',
    from: 'openai-responses',
    body: responses([user('a'), { type: 'tool_search_output', execution: 'server', tools: [F] }], { tools: [F] }),
    tools: ['f'],
    told: ['DROPPED /input/1'],
  },
  {
    name: 'a configuration_update item',
    from: 'openai-responses',
    body: responses([user('a'), { type: 'configuration_update', reasoning: { effort: 'high' } }, user('b')]),
    tools: [],
    told: ['DROPPED /input/1'],
  },
  {
    name: 'a tool of a tool_addition block',
    from: 'anthropic-messages',
    body: claude(instructing(adding(DEFINITION))),
    tools: ['f'],
    told: ['APPROXIMATED /messages/1/content/0'],
  },
  {
    name: 'a tool that a tool_removal block withdraws again',
    from: 'anthropic-messages',
    body: claude(instructing(adding(DEFINITION), naming('tool_removal', 'f'))),
    tools: [],
    told: ['APPROXIMATED /messages/1/content/0', 'DROPPED /messages/1/content/1'],
  },
  {
    name: 'a tool_addition block that names a declared tool',
    from: 'anthropic-messages',
    body: claude(instructing(naming('tool_addition', 'f')), { tools: [DEFINITION] }),
    tools: ['f'],
    told: ['DROPPED /messages/1/content/0'],
  },
  {
    name: 'a declared tool that a tool_removal block withdraws',
    from: 'anthropic-messages',
    body: claude(instructing(naming('tool_removal', 'f')), { tools: [DEFINITION, { ...DEFINITION, name: 'g' }] }),
    tools: ['g'],
    told: ['APPROXIMATED /tools/0', 'DROPPED /messages/1/content/0'],
  },
  {
    name: 'a declared tool that is withdrawn and added again',
    from: 'anthropic-messages',
    body: claude(instructing(naming('tool_removal', 'f'), naming('tool_addition', 'f')), { tools: [DEFINITION] }),
    tools: ['f'],
    told: ['DROPPED /messages/1/content/0'],
  },
  {
    name: 'tools that a compaction block remembers',
    from: 'anthropic-messages',
    body: claude([
      user('a'),
      { role: 'assistant', content: [{ type: 'compaction', content: 'so far', tool_changes: [adding(DEFINITION)] }] },
      user('b'),
    ]),
    tools: ['f'],
    told: ['APPROXIMATED /messages/1/content/0'],
  },
];

const CROSSED = ROWS.flatMap((row) => PROTOCOLS.filter((to) => to !== row.from).map((to) => ({ ...row, to })));

describe('tools that the conversation declares', () => {
  test.each(CROSSED)('$name, to $to, are tools of the request', ({ from, to, body, tools, told }) => {
    const sent = convert(from, to, body);
    expect(toolNames(sent.body)).toEqual(tools);
    expect(sent.told).toEqual(expect.arrayContaining(told));
  });

  test.each(CROSSED)('$name, to $to, leaves no empty turn', ({ from, to, body }) => {
    const { body: sent } = convert(from, to, body);
    const turns = (sent['messages'] ?? sent['input'] ?? sent['contents']) as Json[];
    expect(turns.filter(({ content, parts, type }) => !type && [content, parts].some(isEmpty))).toEqual([]);
  });

  test.each(ROWS)('$name goes back to its own protocol as sent', ({ from, body }) => {
    const { body: sent, told } = convert(from, from, body);
    expect(sent['tools']).toEqual(body['tools']);
    expect(specialOf(sent)).toEqual(specialOf(body));
    expect(specialOf(sent)).not.toEqual([]);
    expect(told).toEqual([]);
  });

  test('a hoisted tool is called by the name that the client gave it', () => {
    const name = `f${'o'.repeat(80)}`;
    const body = claude(instructing(adding({ ...DEFINITION, name })));
    const { body: asked, request } = convertRequest(body, { from: 'anthropic-messages', to: 'openai-chat' });
    const [sent] = toolNames(asked as Json);
    expect(sent).toMatch(/^fo+_[0-9a-f]{8}$/);
    const tool_calls = [{ id: 'c', type: 'function', function: { name: sent, arguments: '{}' } }];
    const completion = { id: 'x', model: 'm', choices: [{ index: 0, finish_reason: 'tool_calls', message: { tool_calls } }] };
    const { body: answer } = convertResponse(completion, { from: 'openai-chat', to: 'anthropic-messages', request });
    expect(answer).toMatchObject({ content: [{ type: 'tool_use', name }] });
  });
});

const isEmpty = (content: unknown): boolean => content === '' || (Array.isArray(content) && content.length === 0);

describe('thinking that is dropped', () => {
  test.each(['openai-chat', 'anthropic-messages', 'gemini'] as const)('leaves no empty turn in %s', (to) => {
    const body = responses([
      user('a'),
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 't' }], encrypted_content: 'x' },
      user('b'),
    ]);
    const { body: sent, told } = convert('openai-responses', to, body);
    expect(roles(sent)).not.toContain(to === 'gemini' ? 'model' : 'assistant');
    expect(told).toEqual(['DROPPED /input/1']);
  });
});

describe('a tool search that the target does not have', () => {
  const SEARCHES = [
    {
      from: 'anthropic-messages',
      body: claude([user('a')], {
        tools: [
          { type: 'tool_search_tool_regex_20251119', name: 'tool_search_tool_regex' },
          { ...DEFINITION, defer_loading: true },
        ],
      }),
    },
    {
      from: 'openai-responses',
      body: responses([user('a')], { tools: [{ type: 'tool_search' }, { ...F, defer_loading: true }] }),
    },
  ] satisfies { from: ProtocolId; body: Json }[];

  test.each(SEARCHES.flatMap((row) => PROTOCOLS.filter((to) => to !== row.from).map((to) => ({ ...row, to }))))(
    'leaves no deferred tool: $from to $to',
    ({ from, to, body }) => {
      const sent = convert(from, to, body);
      expect(toolNames(sent.body)).toEqual(['f']);
      expect(JSON.stringify(sent.body)).not.toContain('defer_loading');
      expect(sent.told).toEqual(expect.arrayContaining(['DROPPED /tools/0', 'DROPPED /tools/1/defer_loading']));
    },
  );

  test.each(SEARCHES)('stays as sent in its own protocol: $from', ({ from, body }) => {
    expect(convert(from, from, body)).toMatchObject({ body: { tools: body['tools'] }, told: [] });
  });

  test('becomes a function where the client runs it, and every tool is sent at once', () => {
    const body = responses([user('a')], {
      tools: [
        { type: 'tool_search', execution: 'client' },
        { ...F, defer_loading: true },
      ],
    });
    const sent = convert('openai-responses', 'anthropic-messages', body);
    expect(toolNames(sent.body)).toEqual(['tool_search', 'f']);
    expect(sent.told).toEqual(['APPROXIMATED /tools/0', 'DROPPED /tools/1/defer_loading']);
  });
});
