import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectAnswered, expectRefused } from './check.ts';
import { Faultd } from './faultd.ts';
import { type Reply, whole } from './http.ts';
import { modelOf, PAIRS, type Pair, providersAt } from './pairs.ts';
import { RawClient, requestText } from './raw-client.ts';
import { good } from './scripts.ts';
import { ask, eventually, type Started, startGateway } from './start.ts';

// RFC 9110 7.8: a server may ignore Upgrade. Where a client would only try again, it is told to use HTTP instead.

const CLIENT_KEY = 'client-key-0123456789';

let faultd: Faultd;
let open: Started;
let off: Started;
let locked: Started;

beforeAll(async () => {
  faultd = await Faultd.start();
  open = await startGateway({ config: { providers: providersAt(faultd) } });
  off = await startGateway({ config: { providers: providersAt(faultd), responses: { websocket: false } } });
  locked = await startGateway({ config: { providers: providersAt(faultd), auth: { keys: [CLIENT_KEY] } } });
});

afterAll(async () => {
  await open.close();
  await off.close();
  await locked.close();
  await faultd.stop();
});

const WEBSOCKET = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
};

async function get(url: string, path: string, headers: Record<string, string>): Promise<Reply> {
  const client = await RawClient.open(url);
  const reply = await client.send(requestText('GET', path, headers)).reply();
  client.leave();
  return reply;
}

describe('WebSocket on Responses', () => {
  test.each(['/v1/responses', '/openai/v1/responses', '/v1/responses?model=m'])('%s is upgraded', async (path) => {
    const client = await RawClient.open(open.url);
    client.send(requestText('GET', path, { ...WEBSOCKET, connection: 'keep-alive, upgrade', upgrade: 'WebSocket' }));
    await eventually(() => client.received.toString().startsWith('HTTP/1.1 101 Switching Protocols'));
    client.leave();
  });

  test.each<[name: string, headers: Record<string, string>, status: number]>([
    ['no key', { 'sec-websocket-key': '' }, 400],
    ['another version', { 'sec-websocket-version': '7' }, 400],
    ['two protocols', { upgrade: 'h2c, websocket' }, 400],
  ])('a handshake with %s is refused', async (_name, headers, status) => {
    expect((await get(open.url, '/v1/responses', { ...WEBSOCKET, ...headers })).status).toBe(status);
  });

  test.each([
    ['/v1/responses', WEBSOCKET],
    ['/openai/v1/responses', WEBSOCKET],
    ['/v1/responses?model=m', WEBSOCKET],
    ['/v1/responses', { ...WEBSOCKET, upgrade: 'WebSocket' }],
    ['/v1/responses', { ...WEBSOCKET, connection: 'keep-alive, upgrade', upgrade: 'h2c, websocket' }],
  ])('%s %j gets 426 with the protocol to use where it is off', async (path, headers) => {
    faultd.play();
    const reply = await get(off.url, path, headers);
    expectRefused('openai-responses', reply, 426, 'WebSocket is off (responses.websocket); send POST requests over HTTP');
    expect(reply.headers).toMatchObject({ upgrade: 'HTTP/1.1', connection: 'close, upgrade' });
    expect(faultd.served).toEqual([]);
  });

  test('a client without a key is rejected as on every path', async () => {
    expectRefused('openai-responses', await get(locked.url, '/v1/responses', WEBSOCKET), 401);
  });

  test('GET without an upgrade stays 405', async () => {
    const reply = await get(open.url, '/v1/responses', {});
    expect(reply).toMatchObject({ status: 405, headers: { allow: 'POST' } });
    expect(reply.headers['upgrade']).toBeUndefined();
  });
});

describe('an upgrade elsewhere is ignored', () => {
  test.each([
    ['/v1/models', 200],
    ['/health/live', 200],
    ['/v1/chat/completions', 405],
    ['/v1/realtime', 404],
  ])('GET %s: %i', async (path, status) => {
    faultd.play([{ send: whole(404, '{}') }]);
    expect((await get(open.url, path, WEBSOCKET)).status).toBe(status);
  });

  // Java's HttpClient offers h2c with every request of a connection.
  test.each(PAIRS.slice(0, 4))('POST with an h2c offer is served over HTTP/1.1: $name', async (pair: Pair) => {
    faultd.play(good(pair, false));
    const headers = { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': 'AAEAAEAA' };
    const reply = await ask(open.url, { client: pair.client, model: modelOf(pair), stream: false, headers });
    expectAnswered(pair, false, reply);
    expect(faultd.served[0]?.headers['upgrade']).toBeUndefined();
  });
});
