import { describe, expect, test } from 'vitest';
import { CODECS, checkRequestLimits } from '../../src/engine/index.ts';
import { CodecError, createFetchHandler, type ProtocolId, type RequestLimits } from '../../src/index.ts';

const LIMITS: RequestLimits = {
  tools: 3,
  messages: 3,
  contentParts: 3,
  callsPerMessage: 3,
  metadataKeys: 3,
  topLevelKeys: 8,
  objectKeys: 4,
};

const list = <T>(n: number, item: T): T[] => Array.from({ length: n }, () => item);
const keys = (n: number): Record<string, string> => Object.fromEntries(list(n, '').map((_, i) => [`k${i}`, 'v']));
const text = { type: 'text', text: 'hi' };

interface Row {
  protocol: ProtocolId;
  what: string;
  limit: keyof RequestLimits;
  /** What the message begins with, and counts. */
  field: string;
  unit: string;
  body: (n: number) => Record<string, unknown>;
}

const user = { role: 'user', content: 'hi' };
const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } };

const ROWS: readonly Row[] = [
  {
    protocol: 'openai-chat',
    what: 'tools',
    limit: 'tools',
    field: 'tools',
    unit: 'entries',
    body: (n) => ({ tools: list(n, call) }),
  },
  {
    protocol: 'openai-chat',
    what: 'functions',
    limit: 'tools',
    field: 'functions',
    unit: 'entries',
    body: (n) => ({ functions: list(n, { name: 'f' }) }),
  },
  {
    protocol: 'openai-responses',
    what: 'tools in a namespace',
    limit: 'tools',
    field: 'tools',
    unit: 'entries',
    body: (n) => ({ tools: [{ type: 'namespace', name: 'ns', tools: list(n, { type: 'function', name: 'f' }) }] }),
  },
  {
    protocol: 'gemini',
    what: 'function declarations',
    limit: 'tools',
    field: 'tools',
    unit: 'entries',
    body: (n) => ({ tools: [{ functionDeclarations: list(n - 1, { name: 'f' }) }, { googleSearch: {} }] }),
  },
  {
    protocol: 'openai-chat',
    what: 'messages',
    limit: 'messages',
    field: 'messages',
    unit: 'entries',
    body: (n) => ({ messages: list(n, user) }),
  },
  {
    protocol: 'openai-responses',
    what: 'input items',
    limit: 'messages',
    field: 'input',
    unit: 'entries',
    body: (n) => ({ input: list(n, user) }),
  },
  {
    protocol: 'gemini',
    what: 'contents',
    limit: 'messages',
    field: 'contents',
    unit: 'entries',
    body: (n) => ({ contents: list(n, { role: 'user', parts: [] }) }),
  },
  {
    protocol: 'openai-chat',
    what: 'content parts of two messages',
    limit: 'contentParts',
    field: 'messages',
    unit: 'content parts',
    body: (n) => ({
      messages: [
        { role: 'user', content: [text] },
        { role: 'user', content: list(n - 1, text) },
      ],
    }),
  },
  {
    protocol: 'anthropic-messages',
    what: 'content parts of a tool result',
    limit: 'contentParts',
    field: 'messages',
    unit: 'content parts',
    body: (n) => ({
      messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: list(n - 1, text) }] }],
    }),
  },
  {
    protocol: 'anthropic-messages',
    what: 'content parts of the system prompt',
    limit: 'contentParts',
    field: 'messages',
    unit: 'content parts',
    body: (n) => ({ system: list(n, text) }),
  },
  {
    protocol: 'openai-responses',
    what: 'content parts of a function output',
    limit: 'contentParts',
    field: 'input',
    unit: 'content parts',
    body: (n) => ({
      input: [{ type: 'function_call_output', call_id: 'c', output: list(n, { type: 'input_text', text: 'hi' }) }],
    }),
  },
  {
    protocol: 'gemini',
    what: 'content parts',
    limit: 'contentParts',
    field: 'contents',
    unit: 'content parts',
    body: (n) => ({ contents: [{ role: 'user', parts: list(n, { text: 'hi' }) }] }),
  },
  {
    protocol: 'openai-chat',
    what: 'tool calls of a message',
    limit: 'callsPerMessage',
    field: 'messages[1]',
    unit: 'tool calls',
    body: (n) => ({ messages: [user, { role: 'assistant', tool_calls: list(n, call) }] }),
  },
  {
    protocol: 'anthropic-messages',
    what: 'tool calls of a message',
    limit: 'callsPerMessage',
    field: 'messages[1]',
    unit: 'tool calls',
    body: (n) => ({
      messages: [user, { role: 'assistant', content: list(n, { type: 'tool_use', id: 't', name: 'f', input: {} }) }],
    }),
  },
  {
    protocol: 'openai-responses',
    what: 'calls that follow each other',
    limit: 'callsPerMessage',
    field: 'input',
    unit: 'tool calls',
    body: (n) => ({ input: list(n, { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' }) }),
  },
  {
    protocol: 'gemini',
    what: 'tool calls of a message',
    limit: 'callsPerMessage',
    field: 'contents[0]',
    unit: 'tool calls',
    body: (n) => ({ contents: [{ role: 'model', parts: list(n, { functionCall: { name: 'f', args: {} } }) }] }),
  },
  {
    protocol: 'openai-chat',
    what: 'keys of metadata',
    limit: 'metadataKeys',
    field: 'metadata',
    unit: 'keys',
    body: (n) => ({ metadata: keys(n) }),
  },
  {
    protocol: 'gemini',
    what: 'keys of labels',
    limit: 'metadataKeys',
    field: 'labels',
    unit: 'keys',
    body: (n) => ({ labels: keys(n) }),
  },
  {
    protocol: 'openai-chat',
    what: 'keys of any field',
    limit: 'objectKeys',
    field: 'logit_bias',
    unit: 'keys',
    body: (n) => ({ logit_bias: keys(n) }),
  },
  {
    protocol: 'openai-chat',
    what: 'properties of a schema',
    limit: 'objectKeys',
    field: 'tools[1].function.parameters.properties',
    unit: 'keys',
    body: (n) => ({ tools: [call, { function: { parameters: { properties: keys(n) } } }] }),
  },
  { protocol: 'openai-chat', what: 'top-level keys', limit: 'topLevelKeys', field: 'request', unit: 'keys', body: keys },
];

/** Only the limit of the row is small: a list of calls is a list of parts, too. */
const only = ({ limit }: Row): RequestLimits => ({
  ...(Object.fromEntries(Object.keys(LIMITS).map((name) => [name, 1000])) as unknown as RequestLimits), // all keys of LIMITS
  [limit]: LIMITS[limit],
});

function messageOf(run: () => void): string | undefined {
  try {
    run();
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(CodecError);
    const { error: canonical } = error as CodecError; // checked above
    expect(canonical).toMatchObject({ code: 'INVALID_INPUT', http_status: 400 });
    return canonical.message;
  }
}

describe.each(ROWS)('$protocol: $what', (row) => {
  const most = LIMITS[row.limit];

  test('as many as the limit are accepted', () => {
    expect(messageOf(() => checkRequestLimits(row.body(most), only(row)))).toBeUndefined();
  });

  test('one more is rejected, with the field and the limit', () => {
    const message = messageOf(() => checkRequestLimits(row.body(most + 1), only(row)));
    expect(message).toBe(`${row.field}: ${most + 1} ${row.unit}; the limit is ${most} (limits.${row.limit})`);
  });
});

test.each([
  ['texts', list(4, 'hi')],
  ['tokens', list(4, 5)],
  ['lists of tokens', list(4, list(4, 5))],
])('the input of an embedding is no list of messages: %s', (_, input) => {
  expect(messageOf(() => checkRequestLimits({ model: 'm', input }, LIMITS))).toBeUndefined();
});

test('a body without lists, or no object at all, is within the limits', () => {
  for (const body of [{}, { messages: 'hi', tools: 5, metadata: null }, [1], 'text', null, undefined])
    expect(messageOf(() => checkRequestLimits(body, LIMITS))).toBeUndefined();
});

describe('createFetchHandler', () => {
  const PATHS = {
    'openai-chat': '/v1/chat/completions',
    'anthropic-messages': '/v1/messages',
    'openai-responses': '/v1/responses',
    gemini: '/v1beta/models/m:generateContent',
  } as const satisfies Record<ProtocolId, string>;

  test.each(Object.keys(PATHS) as ProtocolId[])(
    '%s: 2,001 tools are rejected in the protocol of the client',
    async (protocol) => {
      const handler = createFetchHandler({
        resolve: () => ({ provider: { id: 'p', protocol: 'openai-chat', base_url: 'https://upstream.example' } }),
        fetch: () => Promise.reject(new Error('the upstream must not be asked')),
      });
      const body = JSON.stringify({ model: 'm', tools: list(2001, { name: 'f' }) });
      const response = await handler(new Request(`https://gate.example${PATHS[protocol]}`, { method: 'POST', body }));
      expect(response.status).toBe(400);
      const context = { note: () => undefined, profile: CODECS[protocol].profileFor('') };
      const error = CODECS[protocol].error.decode({ status: 400, headers: {}, body: await response.json() }, context as never);
      expect(error.message).toContain('tools: 2001 entries; the limit is 2000 (limits.tools)');
    },
  );

  test('limits can be set', async () => {
    const handler = createFetchHandler({
      resolve: () => undefined,
      limits: { messages: 1 },
    });
    const body = JSON.stringify({ model: 'm', messages: list(2, user) });
    const response = await handler(new Request('https://gate.example/v1/chat/completions', { method: 'POST', body }));
    expect(await response.json()).toMatchObject({
      error: { message: expect.stringContaining('messages: 2 entries; the limit is 1 (limits.messages)') },
    });
  });
});
