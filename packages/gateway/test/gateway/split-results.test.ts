import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { wholeOf } from './dialects.ts';
import { Faultd } from './faultd.ts';
import { whole } from './http.ts';
import { ask, type Started, startGateway } from './start.ts';

// Requests to an own provider of Gemini, which are passed on as sent, apart from what Google is known to reject.

let faultd: Faultd;
let gateway: Started;

beforeAll(async () => {
  faultd = await Faultd.start();
  const provider = { protocol: 'gemini', base_url: `${faultd.url}/v1beta`, api_key: 'sk-canary-0123456789abcdef' };
  gateway = await startGateway({ config: { providers: { own: provider } } });
});

afterAll(async () => {
  await gateway.close();
  await faultd.stop();
});

async function send(contents: unknown): Promise<{ contents: unknown; worst: string | undefined }> {
  faultd.play([{ send: whole(200, wholeOf('gemini')) }]);
  const reply = await ask(gateway.url, { client: 'gemini', model: 'own/m', stream: false, body: { contents } });
  expect(reply.status).toBe(200);
  return { contents: JSON.parse(faultd.served[0]?.body ?? '').contents, worst: reply.headers['x-sluice-notes-worst'] };
}

const user = (...parts: object[]) => ({ role: 'user', parts });
const hi = user({ text: 'hi' });
const call = (...names: string[]) => ({ role: 'model', parts: names.map((name) => ({ functionCall: { name, args: {} } })) });
const result = (name: string) => ({ functionResponse: { name, response: { ok: true } } });

describe('results of parallel calls', () => {
  test('in several contents are joined, as Google demands', async () => {
    const { contents, worst } = await send([
      hi,
      call('a', 'b', 'c'),
      user(result('a')),
      user(result('b')),
      user(result('c')),
      hi,
    ]);
    expect(contents).toEqual([hi, call('a', 'b', 'c'), user(result('a'), result('b'), result('c')), hi]);
    expect(worst).toBe('repaired');
  });

  test.each([
    ['in one content', [hi, call('a', 'b'), user(result('a'), result('b'))]],
    ['of several turns', [hi, call('a'), user(result('a')), call('b'), user(result('b'))]],
    ['of different roles', [hi, call('a', 'b'), user(result('a')), { role: 'function', parts: [result('b')] }]],
    ['beside text', [hi, call('a', 'b'), user(result('a')), user(result('b'), { text: 'look' })]],
    ['that are no list', { parts: 'x' }],
  ])('%s are passed as sent', async (_, contents) => {
    expect((await send(contents)).contents).toEqual(contents);
  });
});
