import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { findRefusal, LearnedRefusals } from '../../src/upstream/retry.ts';
import { Faultd, type Script } from './faultd.ts';
import { whole } from './http.ts';
import { good } from './scripts.ts';
import { type Started, startGateway } from './start.ts';

// Servers that refuse an optional field, or demand one: what works directly works through the gateway.

type Json = Record<string, unknown>;

let faultd: Faultd;
let gateway: Started;

beforeAll(async () => {
  faultd = await Faultd.start();
});

beforeEach(async () => {
  gateway = await startGateway({
    hasBreakers: true,
    config: {
      providers: {
        own: { protocol: 'openai-chat', base_url: faultd.url, api_key: 'k' },
        claude: { protocol: 'anthropic-messages', base_url: faultd.url, api_key: 'k' },
        together: { base_url: faultd.url, api_key: 'k' },
        zai: { protocol: 'anthropic-messages', base_url: faultd.url, api_key: 'k', extends: 'zai' },
        anthropic: { base_url: faultd.url, api_key: 'k' },
      },
    },
  });
  return () => gateway.close();
});

afterAll(() => faultd.stop());

const chatError = (status: number, message: string, param: string | null = null): Script => [
  { send: whole(status, JSON.stringify({ error: { message, type: 'invalid_request_error', param, code: null } })) },
];
const ok = (stream: boolean): Script => good({ upstream: 'openai-chat' }, stream);
const bodies = (): Json[] => faultd.served.map(({ body }) => JSON.parse(body) as Json);

async function post(path: string, body: Json, headers: Record<string, string> = {}): Promise<{ status: number; text: string }> {
  const response = await fetch(gateway.url + path, { method: 'POST', body: JSON.stringify(body), headers });
  return { status: response.status, text: await response.text() };
}

const HISTORY = [
  { role: 'user', content: 'hi' },
  {
    role: 'assistant',
    content: null,
    reasoning_content: 'I look it up',
    tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }],
  },
  { role: 'tool', tool_call_id: 'c1', content: '7' },
];

const chat = (model: string, stream: boolean): Json => ({ model, stream, messages: HISTORY });

describe.each(['own/m', 'together/m'])('chat to %s', (model) => {
  test.each([
    { field: 'stream_options', status: 400, message: 'Unrecognized request argument supplied: stream_options', stream: true },
    { field: 'stream_options', status: 422, message: 'body.stream_options: Extra inputs are not permitted', stream: true },
    { field: 'reasoning', status: 400, message: "'messages.1' : property 'reasoning_content' is unsupported", stream: true },
    { field: 'reasoning', status: 400, message: "'messages.1' : property 'reasoning_content' is unsupported", stream: false },
  ])('a rejected $field ($status, stream: $stream) is dropped in one retry and remembered', async (row) => {
    const { field, status, message, stream } = row;
    faultd.play(chatError(status, message), ok(stream));
    const first = await post('/v1/chat/completions', chat(model, stream));
    expect(first.status).toBe(200);
    const [refused, repeated] = bodies();
    const hasField = (body: Json | undefined): boolean =>
      field === 'reasoning' ? JSON.stringify(body).includes('reasoning_content') : body?.['stream_options'] !== undefined;
    expect([hasField(refused), hasField(repeated)]).toEqual([true, false]);
    expect((await post('/v1/chat/completions', chat(model, stream))).status).toBe(200);
    expect(bodies()).toHaveLength(3);
    expect(hasField(bodies()[2])).toBe(false);
    expect(gateway.log()).toContainEqual(
      expect.objectContaining({ field, msg: 'provider rejected an optional field; retrying without it' }),
    );
    expect(gateway.log().filter(({ msg }) => msg === 'attempt failed')).toEqual([]);
  });

  test('both fields may be rejected, one after the other', async () => {
    faultd.play(chatError(400, 'unknown field stream_options'), chatError(400, 'unknown field reasoning_content'), ok(true));
    expect((await post('/v1/chat/completions', chat(model, true))).status).toBe(200);
    expect((await post('/v1/chat/completions', chat(model, true))).status).toBe(200);
    expect(bodies()).toHaveLength(4);
  });

  test('a second error reaches the client, and nothing is remembered', async () => {
    faultd.play(chatError(400, 'unknown field stream_options'), chatError(400, 'the second error'), ok(true));
    const reply = await post('/v1/chat/completions', chat(model, true));
    expect([reply.status, reply.text.includes('the second error')]).toEqual([400, true]);
    await post('/v1/chat/completions', chat(model, true));
    expect(bodies()[2]?.['stream_options']).toEqual({ include_usage: true });
  });

  test.each([
    ['a demand', 400, 'thinking is enabled but reasoning_content is missing in assistant tool call message'],
    ['another field', 400, "Unknown parameter: 'top_q'"],
    ['another status', 401, 'stream_options is not supported'],
  ])('%s is not treated as a rejected field', async (_, status, message) => {
    faultd.play(chatError(status, message), ok(true));
    expect((await post('/v1/chat/completions', chat(model, true))).status).toBe(status);
    expect(bodies()).toHaveLength(1);
  });

  test('stream_options without a stream is a client error', async () => {
    faultd.play(chatError(400, 'stream_options is not allowed when stream is false'), ok(false));
    const body = { ...chat(model, false), stream_options: { include_usage: true } };
    expect((await post('/v1/chat/completions', body)).status).toBe(400);
    expect(bodies()).toHaveLength(1);
  });
});

test('a rejected field is dropped for clients of other protocols', async () => {
  faultd.play(chatError(400, 'stream_options: Extra inputs are not permitted'), ok(true));
  const body = { model: 'own/m', max_tokens: 9, stream: true, messages: [{ role: 'user', content: 'hi' }] };
  expect((await post('/v1/messages', body)).status).toBe(200);
  expect(bodies().map((sent) => sent['stream_options'])).toEqual([{ include_usage: true }, undefined]);
});

test('rejected fields are forgotten when the configuration is reloaded', () => {
  const refusals = new LearnedRefusals();
  const profile = { stream_usage: true, reasoning_replay: 'as_sent' } as Parameters<LearnedRefusals['findProfile']>[0]['profile']; // two of its fields
  refusals.learn({ key: 'p/m', profile }, ['reasoning']);
  expect(refusals.findProfile({ key: 'p/m', profile })).toMatchObject({ stream_usage: true, reasoning_replay: 'never' });
  expect(refusals.findProfile({ key: 'p/n', profile })).toBe(profile);
  const reloaded = { ...profile };
  expect(refusals.findProfile({ key: 'p/m', profile: reloaded })).toBe(reloaded);
});

describe('errors that name a field', () => {
  const error = (message: string, body?: unknown, status = 400) =>
    findRefusal({ code: 'INVALID_INPUT', message, upstream: { protocol: 'openai-chat', status, body } });

  test.each([
    ["property 'reasoning' is unsupported", 'reasoning'],
    ['Additional properties are not allowed (reasoning_details was unexpected)', 'reasoning'],
    ['messages.1.reasoning: Extra inputs are not permitted', 'reasoning'],
    ['Unrecognized argument: include_usage', 'stream_options'],
    ['reasoning_content is required', undefined],
    ['reasoning models are not supported', undefined],
    ['invalid request', undefined],
    [`${'x'.repeat(10_000)} unknown stream_options`, undefined],
  ])('%s', (message, field) => expect(error(message)).toBe(field));

  test('a list of errors in the body', () => {
    const detail = [{ type: 'extra_forbidden', loc: ['body', 'messages', 1, 'reasoning_content'], msg: 'Extra inputs' }];
    expect(error('refused', { detail }, 422)).toBe('reasoning');
    expect(error('refused', { detail }, 500)).toBe(undefined);
  });
});

describe('servers with special requirements', () => {
  /** What the server finds wrong about the one request that it got. */
  const fault = (judge: (body: Json) => string | undefined): string | undefined => {
    expect(bodies()).toHaveLength(1);
    return judge(bodies()[0] ?? {});
  };

  const needsReasoning = ({ messages }: Json): string | undefined =>
    (messages as Json[]).some((message) => message['tool_calls'] && !message['reasoning_content'])
      ? 'reasoning_content is missing'
      : undefined;

  test.each(['own/kimi-k2.5', 'own/m', 'together/m'])('needreason: %s gets the reasoning of a chat client', async (model) => {
    faultd.play(good({ upstream: 'openai-chat' }, false));
    expect((await post('/v1/chat/completions', chat(model, false))).status).toBe(200);
    expect(fault(needsReasoning)).toBe(undefined);
  });

  test('needreason: a Kimi model gets the reasoning of an Anthropic client', async () => {
    faultd.play(good({ upstream: 'openai-chat' }, false));
    const messages = [
      { role: 'user', content: 'hi' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'I look it up', signature: '' },
          { type: 'tool_use', id: 'c1', name: 'f', input: {} },
        ],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: '7' }] },
    ];
    expect((await post('/v1/messages', { model: 'own/kimi-k2.5', max_tokens: 9, messages })).status).toBe(200);
    expect(fault(needsReasoning)).toBe(undefined);
  });

  const noMaxTokens = ({ max_tokens: max }: Json): string | undefined => (max === undefined ? undefined : 'max_tokens');

  test.each(['own/m', 'own/o3', 'together/m'])(
    'nomaxtokens: %s gets the limit under the name that a chat client sent',
    async (model) => {
      faultd.play(good({ upstream: 'openai-chat' }, false));
      const body = { model, max_completion_tokens: 9, messages: [{ role: 'user', content: 'hi' }] };
      expect((await post('/v1/chat/completions', body)).status).toBe(200);
      expect(fault(noMaxTokens)).toBe(undefined);
      expect(bodies()[0]).toMatchObject({ max_completion_tokens: 9 });
    },
  );

  test.each([
    ['own/o3', 'max_completion_tokens'],
    ['own/openai/gpt-5-mini', 'max_completion_tokens'],
    ['own/gpt-oss-120b', 'max_tokens'],
    ['own/llama', 'max_tokens'],
  ])('the limit of an Anthropic client reaches %s as %s', async (model, field) => {
    faultd.play(ok(false));
    await post('/v1/messages', { model, max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] });
    expect(bodies()[0]).toMatchObject({ [field]: 9 });
  });

  const noAdaptive = ({ thinking, output_config: config }: Json): string | undefined =>
    config !== undefined || (thinking as Json | undefined)?.['type'] === 'adaptive' ? 'adaptive' : undefined;

  test.each(['claude/glm-4.6', 'claude/kimi-k2', 'zai/glm-4.6'])(
    'noadaptive: %s gets thinking and sampling as sent',
    async (model) => {
      faultd.play(good({ upstream: 'anthropic-messages' }, false));
      const settings = { max_tokens: 9000, thinking: { type: 'enabled', budget_tokens: 2000 }, temperature: 1, top_p: 0.99 };
      expect((await post('/v1/messages', { model, ...settings, messages: [{ role: 'user', content: 'hi' }] })).status).toBe(200);
      expect(fault(noAdaptive)).toBe(undefined);
      expect(bodies()[0]).toMatchObject(settings);
    },
  );
});

describe('anthropic-version', () => {
  test.each([
    ['anthropic/claude-opus-5', '2026-10-21'],
    ['claude/glm-4.6', '2026-10-21'],
    ['claude/claude-sonnet-4-5', '2026-10-21'],
    ['zai/glm-4.6', '2023-06-01'],
  ])('%s gets %s', async (model, version) => {
    faultd.play(good({ upstream: 'anthropic-messages' }, false));
    const body = { model, max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] };
    expect((await post('/v1/messages', body, { 'anthropic-version': '2026-10-21' })).status).toBe(200);
    expect(faultd.served[0]?.headers['anthropic-version']).toBe(version);
  });
});

test('changed fields are logged by name and path', async () => {
  faultd.play(good({ upstream: 'anthropic-messages' }, false));
  const body = { model: 'anthropic/claude-opus-5', max_tokens: 9, temperature: 1, messages: [{ role: 'user', content: 'hi' }] };
  expect((await post('/v1/messages', body)).status).toBe(200);
  expect(bodies()[0]).not.toHaveProperty('temperature');
  expect(gateway.log().find(({ msg }) => msg === 'answered')).toMatchObject({
    notes: 1,
    changes: [{ code: 'DROPPED', path: '/temperature', feature: 'parameters.temperature' }],
  });
});
