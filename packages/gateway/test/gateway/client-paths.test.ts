import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { questionOf, wholeOf } from './dialects.ts';
import { Faultd } from './faultd.ts';
import { type Reply, whole } from './http.ts';
import { modelOf, PAIRS, type Pair, providersAt } from './pairs.ts';
import { RawClient, requestText } from './raw-client.ts';
import { good } from './scripts.ts';
import { askText, type Started, startGateway } from './start.ts';

// docs/reliability.md, Clients: access and routing use the same normal form of the path.

let faultd: Faultd;
let gateway: Started;

beforeAll(async () => {
  faultd = await Faultd.start();
  // An answer to HEAD has a length and no body: its end is that of the connection.
  gateway = await startGateway({ config: { providers: providersAt(faultd), limits: { keep_alive: '500ms' } } });
});

afterAll(async () => {
  await gateway.close();
  await faultd.stop();
});

/** Sends text as it is, and reads the answer to its end. */
async function sendRaw(...texts: readonly (string | Uint8Array)[]): Promise<{ reply: Reply; client: RawClient }> {
  const client = await RawClient.open(gateway.url);
  for (const text of texts) client.send(text);
  const reply = await client.reply();
  return { reply, client };
}

describe('paths and methods', () => {
  const body = JSON.stringify(questionOf('openai-chat', 'pass-openai-chat/m', false).body);

  test.each([
    ['POST', '//v1//chat/completions', 200],
    ['POST', 'http://somebody.example/v1/chat/completions', 200],
    ['POST', '/v1/chat/completions?x=y', 200],
    ['POST', '/V1/CHAT/COMPLETIONS', 404],
    ['GET', '/v1/chat/completions', 405],
    ['HEAD', '/v1/chat/completions', 405],
    ['OPTIONS', '/v1/chat/completions', 405],
    ['PUT', '/v1/messages', 405],
    ['PROPFIND', '/v1/responses', 405],
    ['DELETE', '/v1/models', 405],
    ['POST', '/v1/x/%2e%2e/%2e%2e/etc', 400],
    ['POST', '/v1/x/..%2fetc', 400],
    ['POST', '/v1/files/..\\..\\etc', 400],
  ])('%s %s: %i', async (method, path, status) => {
    faultd.play(good(PAIRS[0] as Pair, false));
    const { reply, client } = await sendRaw(requestText(method, path, {}, method === 'POST' || method === 'PUT' ? body : ''));
    expect(reply.status).toBe(status);
    expect(reply.headers['x-sluice-request-id']).toMatch(/^[\w-]{36}$/);
    expect(JSON.stringify(reply.headers)).not.toMatch(/access-control/i);
    if (status === 405) expect(reply.headers['allow']).toMatch(/POST|GET/);
    for (const { path: asked } of faultd.served) expect(asked).not.toMatch(/\/etc$|\.\.\//);
    client.leave();
  });

  test.each(['/', '/health/live', '/health/ready', '/metrics', '//health//live'])(
    'GET %s is served by the gateway itself',
    async (path) => {
      for (const method of ['GET', 'HEAD']) {
        const { reply, client } = await sendRaw(`${method} ${path} HTTP/1.0\r\nhost: 127.0.0.1\r\n\r\n`);
        expect(reply).toMatchObject({ status: 200, headers: { 'x-sluice-request-id': expect.stringMatching(/^[\w-]{36}$/) } });
        expect(reply.body.length > 0).toBe(method === 'GET');
        client.leave();
      }
    },
  );

  test.each(['pass-openai-chat/m', 'mend-openai-chat/m', 'mend-gemini/m'])(
    'a deployment in the path is the model, with or without a model in the body: %s',
    async (model) => {
      const upstream = model.endsWith('gemini/m') ? 'gemini' : 'openai-chat';
      const { model: _, ...plain } = questionOf('openai-chat', '', false).body;
      for (const named of [{}, { model: 'ignored' }, { model: null }]) {
        for (const name of [model, encodeURIComponent(model)]) {
          faultd.play([{ send: whole(200, wholeOf(upstream)) }]);
          const path = `/openai/deployments/${name}/chat/completions?api-version=2024-10-21`;
          const text = requestText('POST', path, { 'api-key': 'k' }, JSON.stringify({ ...plain, ...named }));
          const { reply, client } = await sendRaw(text);
          expect(reply.status).toBe(200);
          const [served] = faultd.served;
          if (upstream === 'gemini') expect(served?.path).toBe('/v1beta/models/m:generateContent');
          else
            expect({ path: served?.path, model: JSON.parse(served?.body ?? '').model }).toEqual({
              path: '/v1/chat/completions',
              model: 'm',
            });
          client.leave();
        }
      }
    },
  );

  test('HTTP/1.0 responses are not chunked', async () => {
    const pair = PAIRS[0] as Pair;
    faultd.play(good(pair, true));
    const { reply } = await sendRaw(
      askText({ client: pair.client, model: modelOf(pair), stream: true }).replace('HTTP/1.1', 'HTTP/1.0'),
    );
    expect(reply.headers['transfer-encoding']).toBeUndefined();
    expect(reply.body.toString()).toMatch(/data: \[DONE\]\n\n$/);
  });
});
