/** A gateway with two scripted upstreams that respond with texts of their own, limits that may answer late, and a ledger. */
import { expect } from 'vitest';
import type { LimitBackend } from '../../src/admission/backend.ts';
import { MemoryBackend } from '../../src/admission/memory.ts';
import { sleep } from '../../src/http/clock.ts';
import { type Caller, UNLIMITED } from '../../src/keys/caller.ts';
import { createCaller, startGated } from '../admission/start.ts';
import { ANSWER, framesOf, readStream } from '../gateway/dialects.ts';
import { Faultd, type Script, type Served } from '../gateway/faultd.ts';
import { chunk, LAST_CHUNK, type Reply, streamHead, whole } from '../gateway/http.ts';
import { RawClient } from '../gateway/raw-client.ts';
import { ask, askText, eventually, type Started } from '../gateway/start.ts';
import { TestClock } from '../gateway/test-clock.ts';
import { createHeldKeeping, HeldLedger } from '../ledger/held-ledger.ts';

/** The providers of model `m`, in their order, with the texts that only they send. */
export const TEXTS = { one: 'a1 a2 a3 a4 a5 a6.', two: 'b1 b2 b3 b4 b5 b6.' } as const;

export type Name = keyof typeof TEXTS;

/** When the second upstream is requested, too. */
export const HEDGE_MS = 1000;

interface Options {
  recovery?: object;
  limits?: object;
  policy?: Partial<Caller['policy']>;
}

export class TwoUpstreams {
  readonly clock: TestClock;
  readonly ledger = new HeldLedger();
  /** How long the backend of limits takes to raise a reservation. */
  raiseMs = 0;
  readonly one: Faultd;
  readonly two: Faultd;
  #gateway: Started | undefined;

  private constructor(clock: TestClock, one: Faultd, two: Faultd) {
    this.clock = clock;
    this.one = one;
    this.two = two;
  }

  static async start({ recovery = {}, limits = {}, policy = {} }: Options = {}): Promise<TwoUpstreams> {
    const clock = new TestClock();
    const upstreams = new TwoUpstreams(clock, await Faultd.start(clock), await Faultd.start(clock));
    await upstreams.#open({ recovery, limits, policy });
    return upstreams;
  }

  async #open({ recovery, limits, policy }: Required<Options>): Promise<void> {
    const { clock, ledger, one, two } = this;
    this.#gateway = await startGated([createCaller('a', { ...UNLIMITED, ...policy })], {
      clock,
      limitBackend: this.#delayRaises(new MemoryBackend(clock, async () => 0)),
      config: {
        providers: {
          one: { protocol: 'openai-chat', base_url: `${one.url}/v1`, api_key: 'k' },
          two: { protocol: 'anthropic-messages', base_url: two.url, api_key: 'k' },
        },
        models: { m: ['one/m1', 'two/m2'] },
        default_price: { input: '1', output: '1' },
        recovery: { hedge_after: `${HEDGE_MS}ms`, ...recovery },
        limits: { first_event_timeout: '1h', response_timeout: '1h', hold: '1h', ...limits },
      },
      services: (made) => ({ ...made, keeping: createHeldKeeping(ledger, { clock }) }),
    });
  }

  /** The raise takes place in the middle of the round trip. */
  #delayRaises(backend: LimitBackend): LimitBackend {
    return {
      take: (claim) => backend.take(claim),
      raise: async (member, micros) => {
        await sleep(this.clock, this.raiseMs / 2);
        const isRaised = await backend.raise(member, micros);
        await sleep(this.clock, this.raiseMs / 2);
        return isRaised;
      },
      end: (ending) => backend.end(ending),
      renew: (leases) => backend.renew(leases),
      load: (accounts) => backend.load(accounts),
      list: () => backend.list(),
      close: () => backend.close(),
    };
  }

  get gateway(): Started {
    if (!this.#gateway) throw new Error('not started');
    return this.#gateway;
  }

  /** Forgets what happened before. */
  play(one: readonly Script[], two: readonly Script[]): void {
    this.one.play(...one);
    this.two.play(...two);
    this.ledger.reset();
  }

  send(): Promise<Reply> {
    return ask(this.gateway.url, ASKING);
  }

  /** A client that has sent the request, and may leave. */
  async open(): Promise<RawClient> {
    return (await RawClient.open(this.gateway.url)).send(askText(ASKING));
  }

  /** The whole response. Time passes until it is there, and no longer. */
  request(): Promise<Reply> {
    return this.clock.until(this.send());
  }

  get served(): Served[] {
    return [...this.one.served, ...this.two.served];
  }

  /** The rows of ended attempts, in the order of their ends. */
  get attempts(): Record<string, unknown>[] {
    return this.ledger.written.filter(({ write }) => write === 'settleAttempt').map(({ row }) => ({ ...row }));
  }

  /** Everything that the exchange held is given back, without any more time by the test clock. */
  async expectNothingHeld(): Promise<void> {
    const { streams, gate } = this.gateway.services;
    await eventually(() => streams.count === 0, 5000);
    expect(await gate.list([])).toSatisfy((list: { reserved: number }[]) => list.every(({ reserved }) => reserved === 0));
    expect(await this.#readReserved()).toBe(0);
    await eventually(() => this.served.every(({ isDone, isClosed }) => isDone || isClosed), 5000);
    expect(this.ledger.count('settleAttempt')).toBe(this.ledger.count('openAttempt'));
    expect(this.ledger.count('settleExchange')).toBe(1);
    expect(this.ledger.written.at(-1)?.write).toBe('settleExchange');
  }

  async #readReserved(): Promise<number> {
    const text = await this.gateway.services.metrics.text();
    return Number(/^sluice_budget_reserved_usd(?:\{.*\})? (\S+)$/m.exec(text)?.[1]);
  }

  async stop(): Promise<void> {
    await this.#gateway?.close();
    await this.one.stop();
    await this.two.stop();
  }
}

const ASKING = { client: 'openai-chat', model: 'm', stream: true, headers: { authorization: 'Bearer a' } } as const;

/** The frames of the text of an upstream, with a pause after each. */
function listSteps(name: Name, gapMs: number): Script[] {
  const protocol = name === 'one' ? 'openai-chat' : 'anthropic-messages';
  const frames = framesOf(protocol, { ...ANSWER, content: [{ type: 'text', text: TEXTS[name] }] });
  return frames.map((frame) => [{ send: chunk(frame) }, ...(gapMs > 0 ? [{ wait: gapMs }] : [])]);
}

/** A good stream: its first event after `ms`, then one every `gapMs`. */
export const stream = (name: Name, ms: number, gapMs = 0): Script => [
  { send: streamHead() },
  { wait: Math.max(1, ms) },
  ...listSteps(name, gapMs).flat(),
  { send: LAST_CHUNK },
];

/** A stream that is cut after `count` of its events. */
export const cutStream = (name: Name, ms: number, count: number, gapMs = 0): Script => [
  { send: streamHead() },
  { wait: Math.max(1, ms) },
  ...listSteps(name, gapMs).slice(0, count).flat(),
  { wait: 1 },
  { reset: true },
];

/** An error with this status. */
export const refusal = (status: number, ms = 0, headers: Record<string, string> = {}): Script => [
  ...(ms > 0 ? [{ wait: ms }] : []),
  { send: whole(status, JSON.stringify({ error: { type: 'error', message: 'no' } }), headers) },
];

export const readText = (reply: Reply): ReturnType<typeof readStream> => readStream('openai-chat', reply.body);
