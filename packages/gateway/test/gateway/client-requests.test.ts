import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectRefused } from './check.ts';
import { questionOf } from './dialects.ts';
import { Faultd } from './faultd.ts';
import { parseReply, type Reply } from './http.ts';
import { modelOf, PAIRS, type Pair, providersAt } from './pairs.ts';
import { RawClient, requestText } from './raw-client.ts';
import { good } from './scripts.ts';
import { ask, askText, eventually, type Started, startGateway } from './start.ts';

// RELIABILITY 5.2: requests that are too large, too slow, no JSON, or no HTTP.

let faultd: Faultd;
let gateway: Started;

const LIMIT = 256 * 1024;

beforeAll(async () => {
  faultd = await Faultd.start();
  gateway = await startGateway({
    config: {
      providers: providersAt(faultd),
      limits: { request_bytes: '256KiB', header_timeout: '300ms', request_timeout: '600ms', keep_alive: '500ms', messages: 50 },
    },
  });
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

const post = (pair: Pair, body: string, headers: Record<string, string> = {}): string =>
  requestText('POST', questionOf(pair.client, modelOf(pair), false).path, headers, body);

const FOUR = PAIRS.slice(0, 4);

describe.each(FOUR)('$client', (pair) => {
  const { body: question } = questionOf(pair.client, modelOf(pair), false);
  const withField = (json: string): string => `${JSON.stringify(question).slice(0, -1)},"x":${json}}`;

  test.each([
    ['nothing', ''],
    ['no JSON', '{"model": '],
    ['text', 'hello'],
    ['invalid UTF-8', Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')])],
    ['nested a hundred thousand levels', `${'['.repeat(100_000)}${']'.repeat(100_000)}`],
    ['nested a hundred thousand levels, in a field', withField('['.repeat(100_000) + ']'.repeat(100_000))],
    ['65 levels', withField('['.repeat(64) + ']'.repeat(64))],
  ])('a body that is %s is refused with 400, quickly', async (_, body) => {
    faultd.play(good(pair, false));
    const bytes = Buffer.from(body);
    const headed = post(pair, '', { 'content-type': 'application/json', 'content-length': String(bytes.length) });
    const began = performance.now();
    const { reply, client } = await sendRaw(headed, bytes);
    expect(performance.now() - began).toBeLessThan(500);
    expectRefused(pair.client, reply, 400);
    expect(reply.body.toString()).not.toMatch(/\.ts|\.js|at .*\(|node:/);
    expect(faultd.served).toHaveLength(0);
    client.leave();
  });

  test.each([
    ['63 levels', withField('['.repeat(63) + ']'.repeat(63))],
    ['a field that is called __proto__', withField('1').replace('"x"', '"__proto__"')],
    ['half a character', withField('"\\ud800"')],
    ['a number that is too large', withField('1e400')],
  ])('%s is data', async (_, body) => {
    faultd.play(good(pair, false));
    const { reply, client } = await sendRaw(post(pair, body));
    expect(reply.status).toBe(200);
    expect(({} as Record<string, unknown>)['x']).toBeUndefined();
    // Passed through to the letter, but for the name of the model.
    expect(faultd.served[0]?.body).toBe(body.replace(`"${modelOf(pair)}"`, '"m"'));
    client.leave();
  });

  test('keys that stand twice are sent once', async () => {
    if (pair.client === 'gemini') return; // its model stands in the path
    faultd.play(good(pair, false));
    const body = JSON.stringify(question).replace('{', '{"model":"another",').replace('"model":"pass', '"mod\\u0065l":"pass');
    const { reply, client } = await sendRaw(post(pair, body));
    expect(reply.status).toBe(200);
    expect(faultd.served[0]?.body.match(/"mod/g)).toHaveLength(1);
    expect(JSON.parse(faultd.served[0]?.body ?? '')).toMatchObject({ model: 'm' });
    client.leave();
  });

  test('more messages than allowed', async () => {
    const name = ['messages', 'input', 'contents'].find((field) => Object.hasOwn(question, field)) ?? '';
    const list = Array.from({ length: 51 }, () => ({ role: 'user', content: 'hi', parts: [{ text: 'hi' }] }));
    const reply = await ask(gateway.url, { client: pair.client, model: modelOf(pair), stream: true, body: { [name]: list } });
    expectRefused(pair.client, reply, 400, `${name} has more than 50 entries`);
  });

  test('a packed body', async () => {
    const { reply, client } = await sendRaw(post(pair, 'x'.repeat(100), { 'content-encoding': 'gzip' }));
    expectRefused(pair.client, reply, 415, 'gzip');
    client.leave();
  });

  describe('a body that is too large', () => {
    test.each([LIMIT - 1, LIMIT])('%i bytes are not', async (length) => {
      faultd.play(good(pair, false));
      const text = withField('""');
      const { reply, client } = await sendRaw(post(pair, text.replace('"x":""', `"x":"${'y'.repeat(length - text.length)}"`)));
      expect(reply.status).toBe(200);
      client.leave();
    });

    test('is refused by its length, before it is sent', async () => {
      const { reply, client } = await sendRaw(post(pair, '', { 'content-length': String(LIMIT + 1), expect: '100-continue' }));
      expectRefused(pair.client, reply, 413);
      expect(client.received.toString()).not.toContain('100 Continue');
      expect(reply.headers['connection']).toBe('close');
      await client.closed();
    });

    test('is refused while it is sent, and the client reads why', async () => {
      const client = await RawClient.open(gateway.url);
      client.send(post(pair, '', { 'transfer-encoding': 'chunked' }));
      for (let i = 0; i < 64; i++) client.send(`10000\r\n${'x'.repeat(0x10000)}\r\n`);
      const reply = await client.reply();
      expectRefused(pair.client, reply, 413);
      await client.closed();
    });

    test('is taken when it is announced and small enough', async () => {
      faultd.play(good(pair, false));
      const client = await RawClient.open(gateway.url);
      const body = JSON.stringify(question);
      client.send(
        post(pair, '', { 'content-length': String(body.length), 'content-type': 'application/json', expect: '100-continue' }),
      );
      await client.sees('100 Continue');
      expect((await client.send(body).reply()).status).toBe(200);
      client.leave();
    });
  });
});

describe('what is no request', () => {
  const line = 'POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\n';
  test.each([
    ['a huge header', `${line}x: ${'y'.repeat(20_000)}\r\n\r\n`, 431],
    ['a thousand headers', `${line}${Array.from({ length: 1000 }, (_, i) => `x${i}: y\r\n`).join('')}\r\n`, 431],
    ['101 headers', `${line}${Array.from({ length: 100 }, (_, i) => `x${i}: y\r\n`).join('')}\r\n`, 431],
    ['a NUL in a value', `${line}x: a\0b\r\n\r\n`, 400],
    ['a bare CR in a value', `${line}x: a\rb\r\n\r\n`, 400],
    ['a folded header', `${line}x: a\r\n b\r\n\r\n`, 400],
    ['a space before the colon', `${line}x : a\r\n\r\n`, 400],
    ['a length and chunks', `${line}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`, 400],
    ['two lengths', `${line}content-length: 5\r\ncontent-length: 6\r\n\r\nhello`, 400],
    ['chunks of chunks', `${line}transfer-encoding: chunked, chunked\r\n\r\n0\r\n\r\n`, 400],
    ['another coding', `${line}transfer-encoding: gzip\r\n\r\n`, 400],
    ['two hosts', `${line}host: b\r\ncontent-length: 2\r\n\r\n{}`, 400],
    ['no host', 'POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}', 400],
    ['a method that nobody knows', 'BREW /coffee HTTP/1.1\r\nhost: a\r\n\r\n', 400],
    ['no HTTP at all', '\x16\x03\x01\x02\0\x01', 400],
  ])('%s', async (_, text, status) => {
    faultd.play(good(PAIRS[0] as Pair, false));
    const { reply, client } = await sendRaw(text);
    expect(reply.status).toBe(status);
    expect(reply.headers['x-sluice-request-id']).toMatch(/^[\w-]{36}$/);
    if (reply.headers['connection'] === 'close') await client.closed();
    expect(faultd.served).toHaveLength(0);
    client.leave();
  });

  test('100 headers are', async () => {
    const pair = PAIRS[0] as Pair;
    faultd.play(good(pair, false));
    const headers = Object.fromEntries(Array.from({ length: 97 }, (_, i) => [`x${i}`, 'y']));
    const { reply, client } = await sendRaw(
      post(pair, JSON.stringify(questionOf(pair.client, modelOf(pair), false).body), headers),
    );
    expect(reply.status).toBe(200);
    client.leave();
  });
});

describe('slow requests', () => {
  test('headers that do not come', async () => {
    const { reply, client } = await sendRaw('POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\n');
    expect(reply.status).toBe(408);
    await client.closed();
  });

  test('a body that does not come', async () => {
    const { reply, client } = await sendRaw(askText({ client: 'openai-chat', model: 'm', stream: true }).slice(0, -5));
    expect(reply.status).toBe(408);
    await client.closed();
    await eventually(() => gateway.services.streams.count === 0);
  });

  test('an idle connection is closed', async () => {
    const { client } = await sendRaw(requestText('GET', '/health/live'));
    await client.closed(3000);
  });
});

test('a hundred requests at once on one connection are answered in their order', async () => {
  const pair = PAIRS[0] as Pair;
  faultd.play(good(pair, false));
  const client = await RawClient.open(gateway.url);
  const texts = Array.from({ length: 100 }, (_, i) =>
    i % 2 === 0
      ? askText({ client: pair.client, model: modelOf(pair), stream: false })
      : requestText('GET', `/v1/models/nobody-${i}`),
  );
  client.send(texts.join(''));
  const statuses: number[] = [];
  await eventually(() => {
    statuses.length = 0;
    let rest: Buffer = client.received;
    for (let reply = parseReply(rest); reply?.isWhole; reply = parseReply(rest)) {
      statuses.push(reply.status);
      rest = reply.rest;
    }
    return statuses.length === 100;
  }, 10_000);
  expect(statuses).toEqual(Array.from({ length: 100 }, (_, i) => (i % 2 === 0 ? 200 : 404)));
  client.leave();
});

describe('paths and methods', () => {
  const body = JSON.stringify(questionOf('openai-chat', 'pass-openai-chat/m', false).body);

  test.each([
    ['POST', '//v1//chat/completions', 200],
    ['POST', 'http://somebody.example/v1/chat/completions', 200],
    ['POST', '/v1/chat/completions?x=y', 200],
    ['POST', '/V1/CHAT/COMPLETIONS', 200],
    ['GET', '/v1/chat/completions', 405],
    ['HEAD', '/v1/chat/completions', 405],
    ['OPTIONS', '/v1/chat/completions', 405],
    ['PUT', '/v1/messages', 405],
    ['PROPFIND', '/v1/responses', 405],
    ['DELETE', '/v1/models', 405],
    ['POST', '/v1/x/%2e%2e/%2e%2e/etc', 400],
    ['POST', '/v1/x/..%2fetc', 200],
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

  test.each(['/', '/health/live', '/health/ready', '/metrics', '//health//live'])('GET %s is a page of our own', async (path) => {
    for (const method of ['GET', 'HEAD']) {
      const { reply, client } = await sendRaw(`${method} ${path} HTTP/1.0\r\nhost: 127.0.0.1\r\n\r\n`);
      expect(reply).toMatchObject({ status: 200, headers: { 'x-sluice-request-id': expect.stringMatching(/^[\w-]{36}$/) } });
      expect(reply.body.length > 0).toBe(method === 'GET');
      client.leave();
    }
  });

  test('HTTP/1.0 is answered without chunks', async () => {
    const pair = PAIRS[0] as Pair;
    faultd.play(good(pair, true));
    const { reply } = await sendRaw(
      askText({ client: pair.client, model: modelOf(pair), stream: true }).replace('HTTP/1.1', 'HTTP/1.0'),
    );
    expect(reply.headers['transfer-encoding']).toBeUndefined();
    expect(reply.body.toString()).toMatch(/data: \[DONE\]\n\n$/);
  });
});
