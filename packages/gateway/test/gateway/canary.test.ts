import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { cutAfter, errorFrames, errorOf, wholeOf } from './dialects.ts';
import { Faultd, type Script } from './faultd.ts';
import { chunk, head, LAST_CHUNK, streamHead, whole } from './http.ts';
import { modelOf, PAIRS, type Pair, providersAt, waysOf } from './pairs.ts';
import { RawClient, requestText } from './raw-client.ts';
import { askText, type Started, startGateway } from './start.ts';
import { TestClock } from './test-clock.ts';

// Secrets do not leave: every failure is driven with upstreams that repeat all they were sent, and every byte that left is searched.

const PROVIDER_KEY = 'sk-proj-canaryOne0123456789abcdefXYZ';
const HEADER_SECRET = 'canary+Two/of=the&header?0123456789';
const CLIENT_KEY = 'canary-three-of-the-client-0123456789';
const SECRETS = [PROVIDER_KEY, HEADER_SECRET, CLIENT_KEY];

const clock = new TestClock();
let faultd: Faultd;
let gateway: Started;
/** Everything that clients read. */
let left = '';

beforeAll(async () => {
  faultd = await Faultd.start(clock);
  const providers = Object.fromEntries(
    Object.entries(providersAt(faultd)).map(([id, settings]) => [
      id,
      { ...settings, api_key: PROVIDER_KEY, headers: { 'x-secret': HEADER_SECRET } },
    ]),
  );
  gateway = await startGateway({
    clock,
    config: {
      providers: {
        ...providers,
        nowhere: { protocol: 'openai-chat', base_url: 'http://canary-host.invalid/v1', api_key: PROVIDER_KEY },
      },
      auth: { keys: [CLIENT_KEY] },
      limits: {
        retries_per_provider: 0,
        idle_timeout: '150ms',
        first_event_timeout: '150ms',
        response_timeout: '150ms',
        hold: '50ms',
      },
    },
  });
});

afterAll(async () => {
  await gateway.close();
  await faultd.stop();
});

/** A secret in every form in which a careless server repeats it. */
const echo = `${SECRETS.flatMap((secret) => [
  secret,
  `Bearer ${secret}`,
  encodeURIComponent(secret),
  Buffer.from(secret).toString('base64'),
  Buffer.from(`x${secret}`).toString('base64'),
  Buffer.from(secret).toString('hex'),
]).join(' ')} sk-proj-********fXYZ http://user:${PROVIDER_KEY}@canary-host.invalid/?key=${PROVIDER_KEY}`;

/** The same in every header that reaches clients. */
const echoHeaders = Object.fromEntries(
  ['x-request-id', 'request-id', 'openai-processing-ms', 'x-ratelimit-limit-requests', 'anthropic-ratelimit-tokens-reset'].map(
    (name) => [name, echo],
  ),
);

const said = { code: 'UPSTREAM_ERROR', message: echo, http_status: 500 } as const;
const status =
  (code: number) =>
  ({ upstream }: Pair): Script => [
    {
      send: whole(code, errorOf(upstream, { ...said, http_status: code }).body, {
        ...echoHeaders,
        'set-cookie': PROVIDER_KEY,
      }),
    },
  ];
const begun = ({ upstream }: Pair): Script => [
  { send: streamHead(echoHeaders) },
  { send: chunk(cutAfter(upstream, 'two').before.join('')) },
];

const FAILURES: Readonly<Record<string, (pair: Pair) => Script>> = {
  'a good answer': (pair) => [
    ...begun(pair),
    { send: chunk(cutAfter(pair.upstream, 'two').after.join('')) },
    { send: LAST_CHUNK },
  ],
  'a good whole answer': ({ upstream }) => [{ send: whole(200, wholeOf(upstream), echoHeaders) }],
  '400': status(400),
  '401': status(401),
  '403': status(403),
  '404': status(404),
  '429': status(429),
  '500': status(500),
  '529': status(529),
  'an error under 200': ({ upstream }) => [{ send: whole(200, errorOf(upstream, said).body) }],
  'a first event that is an error': ({ upstream }) => [
    { send: streamHead() },
    { send: chunk(errorFrames(upstream, said)) },
    { send: LAST_CHUNK },
  ],
  'an error behind silence': ({ upstream }) => [
    { send: streamHead() },
    { wait: 100 },
    { send: chunk(errorFrames(upstream, said)) },
    { send: LAST_CHUNK },
  ],
  'an error in the middle': (pair) => [...begun(pair), { send: chunk(errorFrames(pair.upstream, said)) }, { send: LAST_CHUNK }],
  'an error in pieces': (pair) => [
    ...begun(pair),
    { split: chunk(errorFrames(pair.upstream, said)), size: 700 },
    { send: LAST_CHUNK },
  ],
  'a page': () => [{ send: whole(200, `<html>${echo}</html>`, { 'content-type': 'text/html' }) }],
  'an error page': () => [{ send: whole(502, `<html>${echo}</html>`, { 'content-type': 'text/html' }) }],
  text: () => [{ send: whole(500, echo, { 'content-type': `text/plain; ${PROVIDER_KEY}` }) }],
  'a redirect': () => [{ send: head(302, { location: `http://canary-host.invalid/${PROVIDER_KEY}`, 'content-length': '0' }) }],
  'an event that is no JSON': (pair) => [...begun(pair), { send: chunk(`data: {${echo}\n\n`) }, { send: LAST_CHUNK }],
  'a strange coding': () => [{ send: whole(200, 'x', { 'content-encoding': PROVIDER_KEY }) }],
  'a reset': (pair) => [...begun(pair), { reset: true }],
  silence: () => [{ hang: true }],
  'silence in the middle': (pair) => [...begun(pair), { hang: true }],
  'no HTTP': () => [{ send: `${echo}\r\n\r\n` }, { fin: true }],
};

async function drive(text: string, wait = <T>(reply: Promise<T>) => reply): Promise<void> {
  const client = await RawClient.open(gateway.url);
  await wait(client.send(text).reply());
  left += client.received.toString('latin1');
  client.leave();
}

describe('no secret appears in any output', () => {
  test.each(Object.entries(FAILURES))('%s', async (_, script) => {
    for (const { pair, stream } of waysOf(PAIRS)) {
      faultd.play(script(pair));
      const text = askText({ client: pair.client, model: modelOf(pair), stream, headers: { 'x-api-key': CLIENT_KEY } });
      await drive(text, (reply) => clock.until(reply));
      for (const { headers, body, path } of faultd.served)
        expect(JSON.stringify({ headers, body, path })).not.toContain('canary-three');
    }
  });

  test('internal errors', async () => {
    const key = { 'x-api-key': CLIENT_KEY };
    await drive(askText({ client: 'openai-chat', model: 'nowhere/m', stream: true, headers: key }));
    await drive(askText({ client: 'gemini', model: 'unknown', stream: false, headers: key }));
    await drive(askText({ client: 'gemini', model: 'unknown', stream: false, headers: { 'x-api-key': `${CLIENT_KEY}x` } }));
    await drive(requestText('POST', `/v1beta/models/m:generateContent?key=${CLIENT_KEY}`, {}, '{'));
    await drive(requestText('GET', `/v1/files/${PROVIDER_KEY}?key=${CLIENT_KEY}`, key));
    await drive(requestText('POST', '/v1/messages', key, '{"model": 1}'));
    faultd.play([{ send: whole(200, 'x', { ...echoHeaders, 'content-disposition': echo, 'content-type': echo }) }]);
    await drive(requestText('GET', '/v1/files/f/content', key));
    faultd.play([{ send: whole(404, JSON.stringify({ error: { message: echo } }), echoHeaders) }]);
    await drive(requestText('GET', '/v1/files', key));
    faultd.play([{ send: whole(500, `<html>${echo}</html>`) }]);
    await drive(requestText('GET', '/v1/files', key));
  });

  afterEach(async () => {
    await drive(requestText('GET', '/metrics', { 'x-api-key': CLIENT_KEY }));
    const logged = gateway.lines.join('');
    expect(left.length).toBeGreaterThan(1000);
    expect(gateway.lines.length).toBeGreaterThan(5);
    for (const text of [left, logged]) {
      for (const secret of SECRETS) {
        const bytes = Buffer.from(secret);
        const forms = [
          secret,
          encodeURIComponent(secret),
          JSON.stringify(secret).slice(1, -1),
          bytes.toString('base64').slice(0, 20),
          bytes.toString('hex'),
        ];
        for (const form of forms)
          expect(
            text.includes(form),
            `${form} in …${text.slice(Math.max(0, text.indexOf(form) - 200), text.indexOf(form) + 80)}`,
          ).toBe(false);
      }
      expect(text).not.toMatch(/fXYZ|sk-proj/);
    }
    expect(left).not.toMatch(/canary-host|set-cookie/i);
    expect(left).not.toContain(`:${faultd.port}`);
    expect(left).not.toMatch(/\.[tj]s:\d+|node:internal|\bat \S+ \(/);
    left = '';
  });
});
