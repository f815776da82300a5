import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectRefused } from './check.ts';
import { questionOf } from './dialects.ts';
import { Faultd } from './faultd.ts';
import { parseReply, type Reply } from './http.ts';
import { modelOf, PAIRS, type Pair, providersAt, waysOf } from './pairs.ts';
import { RawClient, requestText } from './raw-client.ts';
import { good } from './scripts.ts';
import { ask, askText, eventually, type Started, startGateway } from './start.ts';
import { TestClock } from './test-clock.ts';

// docs/reliability.md, Clients: requests that are too large, too slow, not JSON, or not HTTP.

const clock = new TestClock();
let faultd: Faultd;
let gateway: Started;

const LIMIT = 256 * 1024;
/** How long a client may go on sending after its request was refused. */
const LINGER_MS = 1000;
const COUNTS = {
  ...{ messages: 50, tools: 40, content_parts: 80, calls_per_message: 20 },
  ...{ metadata_keys: 10, top_level_keys: 60, object_keys: 30 },
};

beforeAll(async () => {
  faultd = await Faultd.start();
  gateway = await startGateway({
    clock,
    config: {
      providers: providersAt(faultd),
      limits: { request_bytes: '256KiB', header_timeout: '300ms', request_timeout: '600ms', keep_alive: '500ms', ...COUNTS },
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

const PART = { type: 'text', text: 'hi' };
const CALL = { type: 'tool_use', id: 'c', name: 'f', input: {}, functionCall: { name: 'f', args: {} } };
const keysOf = (n: number): object => Object.fromEntries(Array.from({ length: n }, (_, i) => [`key_${i}`, 'v']));

/** One message with these parts, where the protocol has its messages. */
function messagesWith(question: object, parts: object[]): object {
  const name = ['messages', 'input', 'contents'].find((field) => Object.hasOwn(question, field)) ?? '';
  return { [name]: [{ role: 'assistant', content: parts, parts }] };
}

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
  ])('a body that is %s is rejected with 400', async (_, body) => {
    faultd.play(good(pair, false));
    const bytes = Buffer.from(body);
    const headed = post(pair, '', { 'content-type': 'application/json', 'content-length': String(bytes.length) });
    const { reply, client } = await sendRaw(headed, bytes);
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
  ])('%s is accepted as data', async (_, body) => {
    faultd.play(good(pair, false));
    const { reply, client } = await sendRaw(post(pair, body));
    expect(reply.status).toBe(200);
    expect(({} as Record<string, unknown>)['x']).toBeUndefined();
    // Passed through to the letter, but for the name of the model.
    expect(faultd.served[0]?.body).toBe(body.replace(`"${modelOf(pair)}"`, '"m"'));
    client.leave();
  });

  test('duplicate keys are sent once', async () => {
    if (pair.client === 'gemini') return; // its model stands in the path
    faultd.play(good(pair, false));
    const body = JSON.stringify(question).replace('{', '{"model":"another",').replace('"model":"pass', '"mod\\u0065l":"pass');
    const { reply, client } = await sendRaw(post(pair, body));
    expect(reply.status).toBe(200);
    expect(faultd.served[0]?.body.match(/"mod/g)).toHaveLength(1);
    expect(JSON.parse(faultd.served[0]?.body ?? '')).toMatchObject({ model: 'm' });
    client.leave();
  });

  test('more messages than allowed are rejected with 400', async () => {
    const name = ['messages', 'input', 'contents'].find((field) => Object.hasOwn(question, field)) ?? '';
    const list = (length: number): object[] =>
      Array.from({ length }, () => ({ role: 'user', content: 'hi', parts: [{ text: 'hi' }] }));
    for (const stream of [true, false]) {
      faultd.play(good(pair, stream));
      const asking = { client: pair.client, model: modelOf(pair), stream };
      expect((await ask(gateway.url, { ...asking, body: { [name]: list(50) } })).status).toBe(200);
      const reply = await ask(gateway.url, { ...asking, body: { [name]: list(51) } });
      expectRefused(pair.client, reply, 400, `${name}: 51 entries; the limit is 50 (limits.messages)`);
    }
  });

  test.each([
    { limit: 'tools', most: 40, body: (n: number) => ({ tools: Array.from({ length: n }, () => ({ name: 'f' })) }) },
    {
      limit: 'content_parts',
      most: 80,
      body: (n: number) =>
        messagesWith(
          question,
          Array.from({ length: n }, () => PART),
        ),
    },
    {
      limit: 'calls_per_message',
      most: 20,
      body: (n: number) =>
        messagesWith(
          question,
          Array.from({ length: n }, () => CALL),
        ),
    },
    { limit: 'metadata_keys', most: 10, body: (n: number) => ({ metadata: keysOf(n) }) },
    { limit: 'top_level_keys', most: 60, body: keysOf },
    { limit: 'object_keys', most: 30, body: (n: number) => ({ logit_bias: keysOf(n) }) },
  ])('one more than limits.$limit is rejected before anything is sent', async ({ limit, most, body }) => {
    faultd.play(good(pair, false));
    const asking = { client: pair.client, model: modelOf(pair), stream: false };
    const reply = await ask(gateway.url, { ...asking, body: body(most + 1) });
    expectRefused(pair.client, reply, 400, new RegExp(`: \\d+ [a-z ]+; the limit is ${most} \\(limits\\.${limit}\\)`));
    expect(faultd.served).toHaveLength(0);
  });

  describe('a body that is too large', () => {
    test.each([LIMIT - 1, LIMIT])('%i bytes are accepted', async (length) => {
      faultd.play(good(pair, false));
      const text = withField('""');
      const { reply, client } = await sendRaw(post(pair, text.replace('"x":""', `"x":"${'y'.repeat(length - text.length)}"`)));
      expect(reply.status).toBe(200);
      client.leave();
    });

    test('is rejected by its content-length before it is sent', async () => {
      const { reply, client } = await sendRaw(post(pair, '', { 'content-length': String(LIMIT + 1), expect: '100-continue' }));
      expectRefused(pair.client, reply, 413);
      expect(client.received.toString()).not.toContain('100 Continue');
      expect(reply.headers['connection']).toBe('close');
      await clock.after(LINGER_MS, client.closed());
    });

    test('is rejected while it is sent, and the client gets the error', async () => {
      const client = await RawClient.open(gateway.url);
      client.send(post(pair, '', { 'transfer-encoding': 'chunked' }));
      for (let i = 0; i < 64; i++) client.send(`10000\r\n${'x'.repeat(0x10000)}\r\n`);
      const reply = await client.reply();
      expectRefused(pair.client, reply, 413);
      await clock.after(LINGER_MS, client.closed());
    });

    test('is accepted after "Expect: 100-continue" if it is small enough', async () => {
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

describe('invalid requests', () => {
  const line = 'POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n';
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
    ['two hosts', `${line}host: localhost\r\ncontent-length: 2\r\n\r\n{}`, 400],
    ['no host', 'POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}', 400],
    ['a method that nobody knows', 'BREW /coffee HTTP/1.1\r\nhost: localhost\r\n\r\n', 400],
    ['no HTTP at all', '\x16\x03\x01\x02\0\x01', 400],
  ])('%s', async (_, text, status) => {
    faultd.play(good(PAIRS[0] as Pair, false));
    const { reply, client } = await sendRaw(text);
    expect(reply.status).toBe(status);
    expect(reply.headers['x-sluice-request-id']).toMatch(/^[\w-]{36}$/);
    if (reply.headers['connection'] === 'close') await clock.until(client.closed());
    expect(faultd.served).toHaveLength(0);
    client.leave();
  });

  test('100 headers are accepted', async () => {
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

describe.each(FOUR)('parser limits are reported in the protocol of the client: $client', (pair) => {
  const { path, body } = questionOf(pair.client, modelOf(pair), true);
  const padded = (bytes: number): string => {
    const bare = requestText('POST', path, { x: '' }, JSON.stringify(body));
    // The headers alone count, without the first line and the blank one.
    const used = bare.slice(0, bare.indexOf('\r\n\r\n')).length - bare.indexOf('\r\n');
    return bare.replace('x: ', `x: ${'y'.repeat(bytes - used)}`);
  };

  test('headers above header_bytes are rejected with 431', async () => {
    faultd.play(good(pair, true));
    const { reply, client } = await sendRaw(padded(16 * 1024 - 200));
    expect(reply.status).toBe(200);
    client.leave();
    const refused = await sendRaw(padded(16 * 1024 + 200));
    expectRefused(pair.client, refused.reply, 431, 'too large');
    await refused.client.closed();
    expect(faultd.served).toHaveLength(1);
  });

  test('more headers than header_count are rejected with 431', async () => {
    const headers = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`x${i}`, 'y']));
    const { reply, client } = await sendRaw(requestText('POST', path, headers, JSON.stringify(body)));
    expectRefused(pair.client, reply, 431, 'more than 100 headers');
    client.leave();
  });

  test('a body that does not arrive times out with 408', async () => {
    for (const stream of [true, false]) {
      const { reply, client } = await sendRaw(askText({ client: pair.client, model: modelOf(pair), stream }).slice(0, -5));
      expectRefused(pair.client, reply, 408, 'timed out waiting for the request');
      await clock.after(LINGER_MS, client.closed());
      await eventually(() => gateway.services.streams.count === 0);
      expect(await gateway.ended(reply.headers['x-sluice-request-id'])).toMatchObject({ status: 408, ending: 'refused' });
    }
  });

  test('an invalid chunked body is rejected', async () => {
    const { reply, client } = await sendRaw(`${post(pair, '', { 'transfer-encoding': 'chunked' })}5\r\n{"a":\r\nXYZ\r\n`);
    expectRefused(pair.client, reply, 400, 'not a valid HTTP request');
    await clock.after(LINGER_MS, client.closed());
  });

  test('with a short content-length, the rest is not a valid request', async () => {
    faultd.play(good(pair, false));
    const text = JSON.stringify(questionOf(pair.client, modelOf(pair), false).body);
    const lying = post(pair, '', { 'content-type': 'application/json', 'content-length': String(text.length - 9) });
    const { reply, client } = await sendRaw(lying + text);
    expectRefused(pair.client, reply, 400);
    await client.closed();
    expect(faultd.served).toHaveLength(0);
  });
});

describe('slow requests', () => {
  test('headers that do not arrive time out with 408', async () => {
    const { reply, client } = await sendRaw('POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n');
    expectRefused('openai-chat', reply, 408, 'timed out waiting for the request');
    await client.closed();
  });

  test('a request_timeout below header_timeout holds for headers as well', async () => {
    const quick = await startGateway({ config: { providers: providersAt(faultd), limits: { request_timeout: '200ms' } } });
    const client = await RawClient.open(quick.url);
    client.send('POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n');
    expectRefused('openai-chat', await client.reply(), 408, 'timed out waiting for the request');
    await client.closed();
    await quick.close();
  });

  test('an idle connection is closed', async () => {
    const { client } = await sendRaw(requestText('GET', '/health/live'));
    await client.closed(3000);
  });
});

test.each(waysOf(FOUR.slice(0, 3)))('a hundred pipelined requests are served in order: $name', async ({ pair, stream }) => {
  faultd.play(good(pair, stream));
  const client = await RawClient.open(gateway.url);
  const texts = Array.from({ length: 100 }, (_, i) =>
    i % 2 === 0 ? askText({ client: pair.client, model: modelOf(pair), stream }) : requestText('GET', `/v1/models/nobody-${i}`),
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
  }, 30_000);
  expect(statuses).toEqual(Array.from({ length: 100 }, (_, i) => (i % 2 === 0 ? 200 : 404)));
  client.leave();
});
