import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { viewCapture } from '../../src/admin/views.ts';
import type { Capture } from '../../src/capture/capture.ts';
import { deriveClientBytes } from '../../src/capture/derive.ts';
import { InspectError, inspect } from '../../src/capture/inspect/inspect.ts';
import { parseCapture } from '../../src/capture/json.ts';
import { cutAfter, errorFrames, errorOf, framesOf, wholeOf } from '../gateway/dialects.ts';
import { Faultd, type Script } from '../gateway/faultd.ts';
import { chunk, head, LAST_CHUNK, type Reply, streamHead, whole } from '../gateway/http.ts';
import { KEY, modelOf, modelsWithSpare, PAIRS, type Pair, providersAt, sparedModelOf, waysOf } from '../gateway/pairs.ts';
import { RawClient, requestText } from '../gateway/raw-client.ts';
import { askText, eventually } from '../gateway/start.ts';
import { TestClock } from '../gateway/test-clock.ts';
import { type Capturing, startCapturing } from './start.ts';

// The client's bytes are a function of the capture, in every way in which an exchange can end.

const clock = new TestClock();
let faultd: Faultd;
let spare: Faultd;
let gateway: Capturing;
/** Differs at every read, so that a conversion cannot be repeated without the recorded times. */
let wallClock = Date.parse('2026-11-17T00:00:00Z');

beforeAll(async () => {
  faultd = await Faultd.start(clock);
  spare = await Faultd.start(clock);
  gateway = await startCapturing({
    clock,
    secrets: [KEY],
    wallClock: () => (wallClock += 1000),
    config: {
      providers: providersAt(faultd, spare),
      models: modelsWithSpare(),
      limits: {
        retries_per_provider: 0,
        idle_timeout: '150ms',
        first_event_timeout: '150ms',
        response_timeout: '150ms',
        hold: '50ms',
        heartbeat: '20ms',
      },
    },
  });
});

afterAll(async () => {
  await gateway.close();
  await faultd.stop();
  await spare.stop();
});

const failed = { code: 'UPSTREAM_ERROR', message: 'out of memory on 10.0.0.7', http_status: 500 } as const;

const refused =
  (status: number) =>
  ({ upstream }: Pair): Script => [
    { send: whole(status, errorOf(upstream, { ...failed, http_status: status }).body, { 'retry-after': '20' }) },
  ];

const begun = ({ upstream }: Pair): Script => [
  { send: streamHead() },
  { send: chunk(cutAfter(upstream, 'two').before.join('')) },
];

const finished = ({ upstream }: Pair): Script => [
  { send: chunk(cutAfter(upstream, 'two').after.join('')) },
  { send: LAST_CHUNK },
];

const SCRIPTS: Readonly<Record<string, (pair: Pair) => Script>> = {
  'a stream': (pair) => [...begun(pair), ...finished(pair)],
  'a stream in pieces': ({ upstream }) => [
    { send: streamHead() },
    { split: chunk(framesOf(upstream).join('')), size: 100 },
    { send: LAST_CHUNK },
  ],
  'a whole response': ({ upstream }) => [{ send: whole(200, wholeOf(upstream)) }],
  'a stream with heartbeats': (pair) => [...begun(pair), { wait: 90 }, ...finished(pair)],
  'a stream after silence': (pair) => [{ wait: 90 }, ...begun(pair), ...finished(pair)],
  'status 400': refused(400),
  'status 401': refused(401),
  'status 429': refused(429),
  'status 500': refused(500),
  'an error after silence': (pair) => [{ wait: 90 }, ...refused(500)(pair)],
  'an error in place of content': ({ upstream }) => [
    { send: streamHead() },
    { send: chunk(errorFrames(upstream, failed)) },
    { send: LAST_CHUNK },
  ],
  'an error after content': (pair) => [...begun(pair), { send: chunk(errorFrames(pair.upstream, failed)) }, { send: LAST_CHUNK }],
  'a cut stream': (pair) => [...begun(pair), { send: LAST_CHUNK }],
  'a reset': (pair) => [...begun(pair), { reset: true }],
  silence: () => [{ hang: true }],
  'silence after content': (pair) => [...begun(pair), { hang: true }],
  'no JSON after content': (pair) => [...begun(pair), { send: chunk('data: {broken\n\n') }, { send: LAST_CHUNK }],
  'a page': () => [{ send: whole(200, '<html>busy</html>', { 'content-type': 'text/html' }) }],
  'an error page': () => [{ send: whole(502, '<html>bad</html>', { 'content-type': 'text/html' }) }],
  'a redirect': () => [{ send: head(302, { location: 'http://example.com/', 'content-length': '0' }) }],
  'an empty stream': () => [{ send: streamHead() }, { send: LAST_CHUNK }],
};

async function request(text: string): Promise<Reply> {
  const client = await RawClient.open(gateway.url);
  const reply = await clock.until(client.send(text).reply());
  client.leave();
  return reply;
}

async function readCapture({ headers }: Reply): Promise<Capture> {
  const id = headers['x-sluice-request-id'] ?? '';
  await gateway.ended(id);
  await gateway.captures.settled();
  const capture = await gateway.captures.get(id);
  if (!capture) throw new Error(`no capture of ${id}`);
  return capture;
}

test.each(Object.entries(SCRIPTS))('%s', async (_, script) => {
  for (const { pair, stream, name } of waysOf(PAIRS)) {
    faultd.play(script(pair));
    const reply = await request(askText({ client: pair.client, model: modelOf(pair), stream }));
    const capture = await readCapture(reply);
    expect(Buffer.from(capture.response?.body ?? []).toString(), name).toBe(reply.body.toString());
    const derived = deriveClientBytes(capture);
    const shown = derived.is === 'unknown' ? derived.reason : Buffer.from(derived.bytes).toString();
    expect({ name, is: derived.is, shown }).toEqual({ name, is: 'equal', shown });
    expect(derived, name).toMatchObject({ isPrefix: false });
    expect(inspectJson(capture), name).not.toBe('different');
  }
});

/** The capture as the console reads it: the comparison of the inspector, or why there is nothing to inspect. */
function inspectJson(capture: Capture): string {
  const read = parseCapture(JSON.parse(JSON.stringify(viewCapture(capture))));
  expect(deriveClientBytes(read)).toEqual(deriveClientBytes(capture));
  try {
    const { comparison, client } = inspect({ is: 'capture', name: '', capture: read });
    if (comparison.is === 'equal') expect(Buffer.from(client.bytes).equals(pickContent(capture))).toBe(true);
    return comparison.is;
  } catch (error) {
    expect(error).toBeInstanceOf(InspectError);
    return 'nothing to inspect';
  }
}

const pickContent = (capture: Capture): Uint8Array => {
  const derived = deriveClientBytes(capture);
  return derived.is === 'unknown' ? new Uint8Array() : derived.bytes;
};

test('a stream with content is compared by the inspector, and its frames have times', async () => {
  const pair = { client: 'anthropic-messages', upstream: 'openai-chat' } as const;
  const script = SCRIPTS['a stream with heartbeats'];
  const chosen = waysOf(PAIRS).find(
    (way) => way.stream && way.pair.client === pair.client && way.pair.upstream === pair.upstream,
  );
  if (!script || !chosen) throw new Error('no such pair');
  faultd.play(script(chosen.pair));
  const capture = await readCapture(await request(askText({ client: pair.client, model: modelOf(chosen.pair), stream: true })));
  const { comparison, client, upstream, events } = inspect({ is: 'capture', name: '', capture });
  expect(comparison).toEqual({ is: 'equal', isPrefix: false });
  expect(client.heartbeats.length).toBeGreaterThan(0);
  expect(client.frames.at(-1)?.ms).toBeGreaterThanOrEqual(90);
  expect(upstream.frames.at(-1)?.events).toBeLessThanOrEqual(events.length);
});

test('the times that a conversion reads are in the capture', async () => {
  faultd.play([{ send: streamHead() }, { send: chunk(framesOf('anthropic-messages').join('')) }, { send: LAST_CHUNK }]);
  const text = askText({ client: 'openai-responses', model: 'mend-anthropic-messages/m', stream: true });
  const capture = await readCapture(await request(text));
  const [attempt] = capture.attempts;
  expect(attempt?.clock).toHaveLength(2);
  const withoutTimes = { ...capture, attempts: capture.attempts.map((one) => ({ ...one, clock: [] })) };
  expect(deriveClientBytes(withoutTimes)).toMatchObject({ is: 'different' });
});

describe('other endpoints', () => {
  const EMBEDDINGS = {
    object: 'list',
    model: 'm',
    data: [{ object: 'embedding', index: 0, embedding: [0.5] }],
    usage: { prompt_tokens: 1, total_tokens: 1 },
  };
  const embed = (path: string, body: object): string => requestText('POST', path, {}, JSON.stringify(body));
  const gemini = { content: { parts: [{ text: 'hi' }] } };
  const openai = { model: 'pass-openai-chat/m', input: 'hi' };

  test.each([
    { name: 'a forwarded response', text: requestText('GET', '/v1/files', {}), send: whole(200, '{"data":[]}') },
    {
      name: 'forwarded bytes',
      text: requestText('GET', '/v1/files/f/content', {}),
      send: whole(200, Buffer.from([0, 255, 128, 10])),
    },
    {
      name: 'a forwarded error',
      text: requestText('GET', '/v1/files', {}),
      send: whole(404, '{"error":{"message":"no","type":"x"}}'),
    },
    { name: 'embeddings', text: embed('/v1/embeddings', openai), send: whole(200, JSON.stringify(EMBEDDINGS)) },
    {
      name: 'embeddings of another protocol',
      text: embed('/v1beta/models/mend-openai-chat%2Fm:embedContent', gemini),
      send: whole(200, JSON.stringify(EMBEDDINGS)),
    },
    {
      name: 'a failed embedding',
      text: embed('/v1/embeddings', openai),
      send: whole(400, '{"error":{"message":"no","type":"x"}}'),
    },
    { name: 'an unknown model', text: askText({ client: 'gemini', model: 'unknown', stream: true }), send: '' },
  ])('$name', async ({ text, send }) => {
    faultd.play([{ send }]);
    const reply = await request(text);
    const capture = await readCapture(reply);
    expect(Buffer.from(capture.response?.body ?? []).equals(reply.body)).toBe(true);
    expect(deriveClientBytes(capture)).toMatchObject({ is: 'equal', isPrefix: false });
  });

  test('an estimate of the gateway has no upstream', async () => {
    const { path, body } = {
      path: '/v1/messages/count_tokens',
      body: { model: 'mend-openai-chat/m', messages: [{ role: 'user', content: 'hi' }] },
    };
    const capture = await readCapture(await request(requestText('POST', path, {}, JSON.stringify(body))));
    expect(capture.attempts).toEqual([]);
    expect(deriveClientBytes(capture)).toEqual({ is: 'unknown', reason: 'the gateway responded without an upstream' });
  });
});

test('a second upstream', async () => {
  for (const { pair, stream, name } of waysOf(PAIRS)) {
    faultd.play(refused(500)(pair));
    spare.play(SCRIPTS['a stream']?.(pair) ?? []);
    if (!stream) spare.play([{ send: whole(200, wholeOf(pair.upstream)) }]);
    const capture = await readCapture(await request(askText({ client: pair.client, model: sparedModelOf(pair), stream })));
    expect(capture.attempts.map(({ outcome }) => outcome)).toEqual(['failed', 'answered']);
    expect(deriveClientBytes(capture), name).toMatchObject({ is: 'equal', isPrefix: false });
  }
});

test('a client that leaves', async () => {
  for (const pair of PAIRS) {
    faultd.play([...begun(pair), { hang: true }]);
    const client = await RawClient.open(gateway.url);
    client.send(askText({ client: pair.client, model: modelOf(pair), stream: true }));
    const id = await eventually(() => /x-sluice-request-id: (\S+)/.exec(client.received.toString())?.[1]);
    await eventually(() => client.received.toString().includes('two'));
    client.reset();
    await gateway.ended(id);
    await gateway.captures.settled();
    const capture = await gateway.captures.get(id);
    expect(capture?.ending).toBe('client_aborted');
    expect(capture && deriveClientBytes(capture), pair.name).toMatchObject({ is: 'equal' });
  }
});

test('a changed byte of the upstream is found', async () => {
  const [pair] = PAIRS.filter(({ isPassing }) => !isPassing);
  if (!pair) throw new Error('no pair');
  faultd.play(SCRIPTS['a stream']?.(pair) ?? []);
  const capture = await readCapture(await request(askText({ client: pair.client, model: modelOf(pair), stream: true })));
  const [attempt] = capture.attempts;
  const { response } = attempt ?? {};
  if (!attempt || !response) throw new Error('no response');
  const body = Buffer.from(Buffer.from(response.body).toString().replace('two', 'TWO'));
  const changed = { ...capture, attempts: [{ ...attempt, response: { ...response, body } }] };
  const at = Buffer.from(capture.response?.body ?? []).indexOf('two');
  expect(deriveClientBytes(changed)).toMatchObject({ is: 'different', at });
});
