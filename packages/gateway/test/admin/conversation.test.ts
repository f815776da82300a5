import { afterAll, beforeAll, expect, test } from 'vitest';
import { ADMIN_KEY, startAdmin, type TestGateway, withKey } from './start.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startAdmin({ config: { admin: { key: ADMIN_KEY } } });
});

afterAll(() => gateway.stop());

/** Sends a request and returns its conversation, when it is captured. */
async function converse(path: string, body: object) {
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
  const response = await fetch(gateway.url + path, init);
  await response.text();
  const id = response.headers.get('x-sluice-request-id');
  const key = { headers: withKey(ADMIN_KEY) };
  for (;;) {
    const found = await gateway.call(`exchanges?filter=id:${id}`, key);
    const [exchange] = found.json.exchanges;
    if (exchange?.state !== 'settled') continue;
    const answer = await gateway.call(`exchanges/${exchange.id}/conversation`, key);
    if (answer.status === 200) return answer.json;
  }
}

const CALL = 'demo: call get_weather';
const TOOL = { name: 'get_weather', description: 'The weather', input_schema: { type: 'object', properties: {} } };
const FUNCTION = { type: 'function', function: { name: 'get_weather', description: 'The weather', parameters: {} } };

test.each([
  {
    protocol: 'Anthropic, streamed',
    path: '/v1/messages',
    body: { max_tokens: 50, stream: true, system: 'be brief', messages: [{ role: 'user', content: CALL }], tools: [TOOL] },
  },
  {
    protocol: 'Anthropic, whole',
    path: '/v1/messages',
    body: { max_tokens: 50, system: 'be brief', messages: [{ role: 'user', content: CALL }], tools: [TOOL] },
  },
  {
    protocol: 'Chat, streamed',
    path: '/v1/chat/completions',
    body: {
      stream: true,
      messages: [
        { role: 'system', content: 'be brief' },
        { role: 'user', content: CALL },
      ],
      tools: [FUNCTION],
    },
  },
  {
    protocol: 'Responses, streamed',
    path: '/v1/responses',
    body: { stream: true, instructions: 'be brief', input: CALL, tools: [{ type: 'function', ...FUNCTION.function }] },
  },
])('$protocol: system, user, tools and the call are sections', async ({ path, body }) => {
  const { request, response, tools, stop_reason, error, problems } = await converse(path, { model: 'demo/hello', ...body });
  expect(request.map(({ role, kind, text }: Record<string, string>) => [role, kind, text])).toEqual([
    ['system', 'text', 'be brief'],
    ['user', 'text', CALL],
  ]);
  expect(tools).toEqual([{ name: 'get_weather', description: 'The weather' }]);
  expect(response.at(-1)).toMatchObject({ role: 'assistant', kind: 'tool_use', name: 'get_weather' });
  expect([stop_reason, error, problems]).toEqual(['tool_use', null, []]);
});

test('Gemini has its model in the path', async () => {
  const { request, response } = await converse('/v1beta/models/demo/hello:streamGenerateContent?alt=sse', {
    contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
  });
  expect(request).toEqual([{ role: 'user', kind: 'text', text: 'hi' }]);
  expect(response[0].kind).toBe('text');
});

test('results, images and earlier turns are sections, and media has no bytes', async () => {
  const { request } = await converse('/v1/messages', {
    model: 'demo/hello',
    max_tokens: 50,
    messages: [
      { role: 'user', content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }] },
      { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'look', input: { at: 1 } }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: 'no', is_error: true }] },
    ],
  });
  expect(request).toEqual([
    { role: 'user', kind: 'media', text: 'image: image/png, 3 bytes' },
    { role: 'assistant', kind: 'tool_use', text: '{"at":1}', name: 'look', call_id: 't1' },
    expect.objectContaining({ role: 'tool', kind: 'tool_result', text: 'no', call_id: 't1', is_error: true }),
  ]);
});

test('an error in a stream is the error of the conversation, beside what was received', async () => {
  const { response, error } = await converse('/v1/messages', {
    model: 'demo/error-mid-stream',
    max_tokens: 50,
    stream: true,
    messages: [{ role: 'user', content: 'hi' }],
  });
  expect(response[0].text).not.toBe('');
  expect(error).toMatch(/\w/);
});

test('an exchange without a capture has no conversation', async () => {
  const { status } = await gateway.call('exchanges/unknown/conversation', { headers: withKey(ADMIN_KEY) });
  expect(status).toBe(404);
});
