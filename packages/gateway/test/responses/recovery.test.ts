import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Continuer } from '../failover/continuer.ts';
import { ANSWER, framesOf, TEXT as HEDGED } from '../gateway/dialects.ts';
import { Faultd, type Script } from '../gateway/faultd.ts';
import { chunk, LAST_CHUNK, streamHead } from '../gateway/http.ts';
import { eventually, type Started, startGateway } from '../gateway/start.ts';
import { TestClock } from '../gateway/test-clock.ts';
import { PROTOCOLS, startUpstream, type Upstream } from './upstreams.ts';
import { Client, readId } from './websocket-client.ts';

// What is stored of a response is what its client received, also when two upstreams made it or raced for it.

interface Stored {
  id: string;
  output: { type: string; content?: { text: string }[] }[];
}

const readText = ({ output }: Stored): string => output.flatMap(({ content = [] }) => content.map(({ text }) => text)).join('');

async function post(url: string, body: object): Promise<string> {
  const response = await fetch(`${url}/v1/responses`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return response.text();
}

const readCompleted = (stream: string): Stored => {
  const [, data = '{}'] = /^event: response\.completed\ndata: (.*)$/m.exec(stream) ?? [];
  return (JSON.parse(data) as { response: Stored }).response; // asserted by the caller
};

describe('a response that another upstream continues', () => {
  const TEXT = 'The quick brown fox jumps over the lazy dog, and then it sleeps until noon.';
  let first: Continuer;
  let second: Continuer;
  let later: Upstream;
  let gateway: Started;

  beforeAll(async () => {
    first = await Continuer.start();
    second = await Continuer.start();
    later = await startUpstream('openai-chat');
    gateway = await startGateway({
      config: {
        providers: {
          later: { protocol: 'openai-chat', base_url: later.url, api_key: 'k' },
          ...Object.fromEntries(
            PROTOCOLS.flatMap((protocol) => [
              [`first-${protocol}`, { protocol, base_url: first.urlOf(protocol), api_key: 'k' }],
              [`second-${protocol}`, { protocol, base_url: second.urlOf(protocol), api_key: 'k' }],
            ]),
          ),
        },
        models: Object.fromEntries(
          PAIRS.map(({ upstream, fallback }) => [
            `${upstream}-then-${fallback}`,
            [`first-${upstream}/m`, `second-${fallback}/m`],
          ]),
        ),
        recovery: { on_break: 'continue' },
      },
    });
  });

  afterAll(async () => {
    await gateway.close();
    await first.stop();
    await second.stop();
    later.close();
  });

  const PAIRS = PROTOCOLS.flatMap((upstream) => PROTOCOLS.map((fallback) => ({ upstream, fallback })));

  const WAYS: Record<string, (model: string) => Promise<Stored>> = {
    'over HTTP': async (model) => readCompleted(await post(gateway.url, { model, input: 'the question', stream: true })),
    'over WebSocket': async (model) => {
      const client = await Client.open(gateway.url);
      const id = readId(await client.turn({ model, input: 'the question' }));
      client.socket.terminate();
      return read(id);
    },
    'in the background': async (model) => {
      const { id } = JSON.parse(await post(gateway.url, { model, input: 'the question', background: true })) as Stored; // asserted below
      await eventually(() => gateway.kept?.find('response', id, '')?.events?.isEnded);
      return read(id);
    },
  };

  const read = async (id: string): Promise<Stored> => {
    const response = await fetch(`${gateway.url}/v1/responses/${id}`);
    return (await response.json()) as Stored; // asserted by the caller
  };

  test.each(PAIRS.flatMap((pair) => Object.keys(WAYS).map((way) => ({ ...pair, way }))))(
    'is stored whole and once $way: $upstream, then $fallback',
    async ({ upstream, fallback, way }) => {
      const frames = framesOf(upstream, { ...ANSWER, content: [{ type: 'text', text: TEXT }] }).join('');
      first.plan = { text: TEXT, manner: 'continue', cutAt: Math.floor(Buffer.byteLength(frames) * 0.6) };
      second.plan = { text: TEXT, manner: 'continue' };
      first.asked = [];
      second.asked = [];
      const made = await WAYS[way]?.(`${upstream}-then-${fallback}`);
      expect(second.asked.length).toBeGreaterThan(0);
      expect(made && readText(made)).toBe(TEXT);
      expect(readText(await read(made?.id ?? ''))).toBe(TEXT);
      await post(gateway.url, { model: 'later/m', input: 'go on', previous_response_id: made?.id });
      const sent = later.got.at(-1) ?? '';
      expect(sent.split(TEXT)).toHaveLength(2);
      expect(sent).toContain('the question');
    },
  );
});

describe('a response that two upstreams raced for', () => {
  const clock = new TestClock();
  let slow: Faultd;
  let fast: Faultd;
  let later: Upstream;
  let gateway: Started;

  beforeAll(async () => {
    slow = await Faultd.start(clock);
    fast = await Faultd.start(clock);
    later = await startUpstream('gemini');
    gateway = await startGateway({
      clock,
      config: {
        providers: {
          one: { protocol: 'openai-responses', base_url: `${slow.url}/v1`, api_key: 'k' },
          two: { protocol: 'anthropic-messages', base_url: fast.url, api_key: 'k' },
          later: { protocol: 'gemini', base_url: later.url, api_key: 'k' },
        },
        models: { m: ['one/m', 'two/m'] },
        recovery: { hedge_after: '2000ms' },
        limits: { first_event_timeout: '1h', response_timeout: '1h', hold: '1h' },
      },
    });
  });

  afterAll(async () => {
    await gateway.close();
    await slow.stop();
    await fast.stop();
    later.close();
  });

  const answer = (protocol: 'openai-responses' | 'anthropic-messages', ms: number): Script => [
    { send: streamHead() },
    { wait: ms },
    { send: chunk(framesOf(protocol).join('')) },
    { send: LAST_CHUNK },
  ];

  test.each<[name: string, slowMs: number, fastMs: number]>([
    ['the second', 60_000, 10],
    ['the first, after all', 3000, 60_000],
  ])('is stored once, as that of the winner: %s', async (_name, slowMs, fastMs) => {
    slow.play(answer('openai-responses', slowMs));
    fast.play(answer('anthropic-messages', fastMs));
    const size = gateway.kept?.size ?? 0;
    const made = readCompleted(await clock.until(post(gateway.url, { model: 'm', input: 'the question', stream: true })));
    expect(readText(made)).toBe(HEDGED);
    expect(gateway.kept?.size).toBe(size + 1);
    await clock.until(post(gateway.url, { model: 'later/m', input: 'go on', previous_response_id: made.id }));
    const sent = later.got.at(-1) ?? '';
    expect(sent).toContain('the question');
    expect(sent.split(JSON.stringify(HEDGED).slice(1, -1))).toHaveLength(2);
  });
});
