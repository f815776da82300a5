import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectAnswered, expectRefused } from './check.ts';
import { errorOf, framesOf, wholeOf } from './dialects.ts';
import { Faultd } from './faultd.ts';
import { chunk, head, LAST_CHUNK, streamHead } from './http.ts';
import { modelOf, PAIRS, type Pair, providersAt, waysOf } from './pairs.ts';
import { RawClient, requestText } from './raw-client.ts';
import { ask, askText, type Started, startGateway } from './start.ts';

// Headers of upstreams that are not ASCII, and JSON behind a byte order mark: unusual, and no reason to fail.

let faultd: Faultd;
let gateway: Started;

beforeAll(async () => {
  faultd = await Faultd.start();
  gateway = await startGateway({ config: { providers: providersAt(faultd), limits: { retries_per_provider: 0 } } });
});

afterAll(async () => {
  await gateway.close();
  await faultd.stop();
});

/** Header values as bytes. */
const VALUES: readonly (readonly [what: string, value: Buffer])[] = [
  ['Latin-1', Buffer.from('attachment; filename="Übersicht é.pdf"', 'latin1')],
  ['UTF-8', Buffer.from('attachment; filename="Übersicht 報告 \u{1F600}.pdf"', 'utf8')],
  ['every byte that HTTP allows', Buffer.from(Array.from({ length: 128 }, (_, i) => 0x80 + i))],
];

const withHeader = (response: string, name: string, value: Buffer): Buffer => {
  const at = response.indexOf('\r\n') + 2;
  return Buffer.concat([Buffer.from(`${response.slice(0, at)}${name}: `), value, Buffer.from(`\r\n${response.slice(at)}`)]);
};

describe.each(VALUES)('a header in %s', (_, value) => {
  test.each([
    ['with a length', head(200, { 'content-type': 'application/pdf', 'content-length': '5' }), 'hello'],
    ['in chunks', head(200, { 'content-type': 'application/pdf', 'transfer-encoding': 'chunked' }), '5\r\nhello\r\n0\r\n\r\n'],
  ])('of a passed-through download %s arrives unchanged', async (_way, response, body) => {
    faultd.play([{ send: withHeader(response, 'content-disposition', value) }, { send: body }]);
    const client = await RawClient.open(gateway.url);
    const reply = await client.send(requestText('GET', '/v1/files/file-1/content')).reply();
    client.leave();
    expect({ status: reply.status, body: reply.body.toString() }).toEqual({ status: 200, body: 'hello' });
    expect(Buffer.from(reply.headers['content-disposition'] ?? '', 'latin1')).toEqual(value);
  });

  test.each(waysOf(PAIRS))('of a conversation does not fail it: $name', async ({ pair, stream }) => {
    const type = stream ? 'text/event-stream' : 'application/json';
    const body = stream ? framesOf(pair.upstream).join('') : wholeOf(pair.upstream);
    const response = head(200, { 'content-type': type, 'content-length': String(Buffer.byteLength(body)) });
    for (const name of ['content-disposition', 'x-request-id', 'request-id']) {
      faultd.play([{ send: withHeader(response, name, value) }, { send: body }]);
      expectAnswered(pair, stream, await ask(gateway.url, { client: pair.client, model: modelOf(pair), stream }));
    }
  });

  test.each(waysOf(PAIRS))('of an error does not change it: $name', async ({ pair, stream }) => {
    const { body } = errorOf(pair.upstream, { code: 'INVALID_INPUT', message: 'not like this', http_status: 400 });
    const response = head(400, { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) });
    faultd.play([{ send: withHeader(response, 'x-request-id', value) }, { send: body }]);
    const reply = await ask(gateway.url, { client: pair.client, model: modelOf(pair), stream });
    expectRefused(pair.client, reply, 400, 'not like this');
  });
});

describe('a byte order mark', () => {
  const BOM = Buffer.from([0xef, 0xbb, 0xbf]);
  const marked = (body: string): Buffer => Buffer.concat([BOM, Buffer.from(body)]);
  const sent = (status: number, body: Buffer, type = 'application/json'): Buffer =>
    Buffer.concat([Buffer.from(head(status, { 'content-type': type, 'content-length': String(body.length) })), body]);
  const askPair = (pair: Pair, stream: boolean) => ask(gateway.url, { client: pair.client, model: modelOf(pair), stream });

  test.each(waysOf(PAIRS))('before a whole response is skipped: $name', async ({ pair, stream }) => {
    faultd.play([{ send: sent(200, marked(wholeOf(pair.upstream))) }]);
    const reply = await askPair(pair, stream);
    expectAnswered(pair, stream, reply);
    expect(reply.body.includes(BOM)).toBe(false);
  });

  test.each(waysOf(PAIRS))('before a stream is skipped: $name', async ({ pair, stream }) => {
    faultd.play([{ send: streamHead() }, { send: chunk(marked(framesOf(pair.upstream).join(''))) }, { send: LAST_CHUNK }]);
    expectAnswered(pair, stream, await askPair(pair, stream));
  });

  test.each(waysOf(PAIRS))('before an error is skipped: $name', async ({ pair, stream }) => {
    const { body } = errorOf(pair.upstream, { code: 'INVALID_INPUT', message: 'not like this', http_status: 400 });
    faultd.play([{ send: sent(400, marked(body)) }]);
    const reply = await askPair(pair, stream);
    expectRefused(pair.client, reply, 400, /^not like this$/);
    expect(reply.body.includes(BOM)).toBe(false);
  });

  test('before an error of a passed-through request is skipped, and kept in a download', async () => {
    const client = await RawClient.open(gateway.url);
    faultd.play([{ send: sent(400, marked('{"error":{"message":"not like this","type":"t","code":"c"}}')) }]);
    const refused = await client.send(requestText('GET', '/v1/files/file-1')).reply();
    client.leave();
    expect(JSON.parse(refused.body.toString())).toEqual({ error: { message: 'not like this', type: 't', code: 'c' } });
    const other = await RawClient.open(gateway.url);
    faultd.play([{ send: sent(200, marked('a;b'), 'text/csv') }]);
    const reply = await other.send(requestText('GET', '/v1/files/file-1/content')).reply();
    other.leave();
    expect(reply.body).toEqual(marked('a;b'));
  });

  test.each(['/v1/embeddings', '/v1/rerank'])('before the response of %s is skipped', async (path) => {
    const bodies = {
      '/v1/embeddings':
        '{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]}],"model":"m","usage":{"prompt_tokens":1,"total_tokens":1}}',
      '/v1/rerank': '{"id":"r","results":[{"index":0,"relevance_score":0.5}]}',
    };
    faultd.play([{ send: sent(200, marked(bodies[path as keyof typeof bodies])) }]); // the table has no others
    const client = await RawClient.open(gateway.url);
    const question = { model: 'mend-openai-chat/m', input: 'x', query: 'x', documents: ['y'] };
    const reply = await client.send(requestText('POST', path, {}, JSON.stringify(question))).reply();
    client.leave();
    expect({ status: reply.status, body: reply.body.toString() }).toMatchObject({ status: 200 });
  });

  test.each(waysOf(PAIRS))('before the request of a client is skipped: $name', async ({ pair, stream }) => {
    const body = stream ? framesOf(pair.upstream).join('') : wholeOf(pair.upstream);
    faultd.play([{ send: sent(200, Buffer.from(body), stream ? 'text/event-stream' : 'application/json') }]);
    const [before = '', json = ''] = askText({ client: pair.client, model: modelOf(pair), stream }).split('\r\n\r\n');
    const longer = before.replace(/content-length: (\d+)/, (_, length) => `content-length: ${Number(length) + BOM.length}`);
    const client = await RawClient.open(gateway.url);
    expectAnswered(pair, stream, await client.send(Buffer.concat([Buffer.from(`${longer}\r\n\r\n`), marked(json)])).reply());
    client.leave();
    expect(JSON.parse(faultd.served[0]?.body ?? '')).toBeTypeOf('object');
  });
});
