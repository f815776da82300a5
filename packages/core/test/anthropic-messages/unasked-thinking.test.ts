import { describe, expect, test } from 'vitest';
import { type Json, readStream } from '../../../../test/sdk/anthropic.ts';
import { createExchange, type Exchange, type ProtocolId, type Provider } from '../../src/index.ts';

// State of another provider on its way to an Anthropic client and back, with and without a request for thinking.

const PROVIDERS = {
  gemini: { id: 'my.google-1', protocol: 'gemini', base_url: 'https://g.example.com', api_key: 'k' },
  'openai-chat': { id: 'moonshot', protocol: 'openai-chat', base_url: 'https://c.example.com/v1', api_key: 'k' },
  'openai-responses': { id: 'openai', protocol: 'openai-responses', base_url: 'https://r.example.com/v1', api_key: 'k' },
} satisfies Partial<Record<ProtocolId, Provider>>;

const SIGNATURE = `${'Ab+/'.repeat(700)}==`;
const ENCRYPTED = 'gAAA-_x'.repeat(300);
const CALL = { name: 'read', args: { path: 'a' } };
const TOOLS = [{ name: 'read', input_schema: { type: 'object', properties: { path: { type: 'string' } } } }];

/** A response with a call, and the state that the upstream wants back. */
const RESPONSES = {
  gemini: {
    candidates: [
      {
        content: { role: 'model', parts: [{ functionCall: CALL, thoughtSignature: SIGNATURE }] },
        finishReason: 'STOP',
        index: 0,
      },
    ],
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
    responseId: 'r1',
    modelVersion: 'gemini-3-pro',
  },
  'openai-chat': {
    id: 'c1',
    object: 'chat.completion',
    created: 1,
    model: 'kimi-k2-thinking',
    choices: [
      {
        index: 0,
        finish_reason: 'tool_calls',
        message: {
          role: 'assistant',
          content: null,
          reasoning_content: 'I read it.',
          tool_calls: [{ id: 'read:0', type: 'function', function: { name: 'read', arguments: '{"path":"a"}' } }],
        },
      },
    ],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  },
  'openai-responses': {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    status: 'completed',
    model: 'gpt-5',
    output: [
      { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: ENCRYPTED },
      { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'read', arguments: '{"path":"a"}', status: 'completed' },
    ],
    usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
  },
};

type Upstream = keyof typeof RESPONSES;

/** What the next request must bring back to the upstream. */
const WANTED: Record<Upstream, string> = {
  gemini: `"thoughtSignature":"${SIGNATURE}"`,
  'openai-chat': '"reasoning_content":"I read it."',
  'openai-responses': `"encrypted_content":"${ENCRYPTED}"`,
};

const MODELS: Record<Upstream, string> = {
  gemini: 'gemini-3-pro',
  'openai-chat': 'kimi-k2-thinking',
  'openai-responses': 'gpt-5',
};

const THINKING = { type: 'enabled', budget_tokens: 2000 };
const USER = { role: 'user', content: 'read a' };

function ask(upstream: Upstream, body: Json): { exchange: Exchange; sent: string } {
  const exchange = createExchange('anthropic', upstream, { provider: PROVIDERS[upstream], model: MODELS[upstream] });
  const wire = { model: 'm', max_tokens: 9000, tools: TOOLS, messages: [USER], ...body };
  const request = exchange.request({ method: 'POST', path: '/v1/messages', headers: {}, body: wire });
  return { exchange, sent: JSON.stringify(request.body) };
}

/** The response as the client reads it, whole or from a stream through the SDK. */
async function read(upstream: Upstream, body: Json, isStream: boolean): Promise<Json[]> {
  const { exchange } = ask(upstream, { ...body, stream: isStream });
  const reply = { status: 200, headers: {}, body: RESPONSES[upstream] };
  if (!isStream) return (exchange.response(reply).body as { content: Json[] }).content;
  const stream = exchange.stream();
  const wire = new TextEncoder().encode(JSON.stringify(RESPONSES[upstream]));
  const pieces = [...stream.push(wire), ...stream.end()];
  const message = await readStream(Buffer.concat(pieces).toString());
  return message['content'] as Json[];
}

const CASES = Object.keys(RESPONSES).flatMap((upstream) =>
  [false, true].flatMap((isStream) => [
    { upstream: upstream as Upstream, isStream, name: `${upstream}${isStream ? ', stream' : ''}` },
  ]),
);

/** The second request: the assistant's blocks as they came, and the result of the call. */
function replay(upstream: Upstream, content: Json[], body: Json): string {
  const call = content.find(({ type }) => type === 'tool_use');
  const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: call?.['id'], content: 'text of a' }] };
  return ask(upstream, { ...body, messages: [USER, { role: 'assistant', content }, result] }).sent;
}

describe.each(CASES)('$name', ({ upstream, isStream }) => {
  test('without thinking in the request, no thinking block is empty and every signature is filled', async () => {
    const content = await read(upstream, {}, isStream);
    for (const { type, thinking, signature } of content)
      if (type === 'thinking') expect([thinking, signature]).toEqual([expect.stringMatching(/./), expect.stringMatching(/./)]);
  });

  test('without thinking in the request, state returns to the upstream on the next turn', async () => {
    const content = await read(upstream, {}, isStream);
    expect(replay(upstream, content, {})).toContain(WANTED[upstream]);
  });

  test('with thinking in the request, state returns to the upstream on the next turn', async () => {
    const content = await read(upstream, { thinking: THINKING }, isStream);
    expect(replay(upstream, content, { thinking: THINKING })).toContain(WANTED[upstream]);
  });

  test('call ids are valid for Anthropic, and the upstream gets its own id back', async () => {
    const content = await read(upstream, {}, isStream);
    const { id } = content.find(({ type }) => type === 'tool_use') ?? {};
    expect(id).toMatch(/^[a-zA-Z0-9_-]{1,16384}$/);
    expect(replay(upstream, content, {})).not.toContain('cv1');
  });
});

describe('a carried id', () => {
  test('loses its state towards another provider, and stays short', async () => {
    const content = await read('gemini', {}, false);
    const sent = replay('openai-responses', content, {});
    expect(sent).not.toContain('cv1');
    for (const [, id = ''] of sent.matchAll(/"call_id":"([^"]*)"/g)) expect(id.length).toBeLessThanOrEqual(64);
  });

  test('a signature that would make the id too long is dropped with a note', () => {
    const { exchange } = ask('gemini', {});
    const [candidate] = RESPONSES.gemini.candidates;
    const parts = [{ functionCall: CALL, thoughtSignature: 'A'.repeat(20_000) }];
    const body = { ...RESPONSES.gemini, candidates: [{ ...candidate, content: { role: 'model', parts } }] };
    const reply = exchange.response({ status: 200, headers: {}, body });
    expect(JSON.stringify(reply.body).length).toBeLessThan(2000);
    expect(exchange.notes).toContainEqual(expect.objectContaining({ code: 'DROPPED', feature: 'content.tool_use.signature' }));
  });
});
