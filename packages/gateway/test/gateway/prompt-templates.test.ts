import { afterAll, beforeAll, expect, test } from 'vitest';
import { wholeOf } from './dialects.ts';
import { Faultd } from './faultd.ts';
import { type Reply, whole } from './http.ts';
import { RawClient, requestText } from './raw-client.ts';
import { type Started, startGateway } from './start.ts';

// `responses.create` with a stored prompt: the template names the model.

let faultd: Faultd;

beforeAll(async () => {
  faultd = await Faultd.start();
});

afterAll(() => faultd.stop());

const BODY = { prompt: { id: 'pmpt_1' } };

async function post(gateway: Started, body: object): Promise<Reply> {
  const client = await RawClient.open(gateway.url);
  const reply = await client.send(requestText('POST', '/v1/responses', {}, JSON.stringify(body))).reply();
  client.leave();
  await gateway.close();
  return reply;
}

const provider = (protocol: string, over: object = {}): object => ({
  protocol,
  base_url: faultd.url,
  api_key: 'sk-canary-0123456789abcdef',
  ...over,
});

test.each([
  ['passed through', { repair: false }],
  ['with repaired responses', { repair: true }],
])('a prompt without a model goes to the OpenAI Responses provider: %s', async (_, over) => {
  faultd.play([{ send: whole(200, wholeOf('openai-responses')) }]);
  const gateway = await startGateway({
    config: { providers: { chat: provider('openai-chat'), stored: provider('openai-responses', over) } },
  });
  const reply = await post(gateway, BODY);
  expect(reply.status).toBe(200);
  expect(JSON.parse(faultd.served.at(-1)?.body ?? '')).toEqual(BODY);
});

test('without such a provider the request is rejected', async () => {
  const gateway = await startGateway({ config: { providers: { chat: provider('openai-chat') } } });
  const reply = await post(gateway, BODY);
  expect(reply.status).toBe(400);
  expect(JSON.parse(reply.body.toString())).toMatchObject({
    error: { param: 'prompt', message: expect.stringContaining('prompt templates require a provider') },
  });
});

test('a model of another protocol cannot expand a prompt template', async () => {
  const gateway = await startGateway({ config: { providers: { chat: provider('openai-chat') } } });
  const reply = await post(gateway, { ...BODY, model: 'chat/m' });
  expect(reply.status).toBe(400);
  expect(reply.body.toString()).toContain('cannot be expanded');
});

test('any other request needs a model', async () => {
  const gateway = await startGateway({ config: { providers: { stored: provider('openai-responses') } } });
  const reply = await post(gateway, { input: 'hi' });
  expect(reply.status).toBe(400);
  expect(reply.body.toString()).toContain('model: is required');
});
