/** A gateway with a ledger between raw clients and scripted upstreams, and the upstreams' own log to compare the ledger with. */
import type { CanonicalUsage, ProtocolId } from '@sluice/core';
import { expect } from 'vitest';
import type { Services } from '../../src/exchange/types.ts';
import { REAL_CLOCK } from '../../src/http/clock.ts';
import { createKeeping } from '../../src/server/records.ts';
import { type ExchangeDetail, openStore, type Store } from '../../src/store/index.ts';
import { RetryBudget } from '../../src/upstream/retry.ts';
import { ANSWER, framesOf, wholeOf } from '../gateway/dialects.ts';
import { Faultd, type Script, type Served } from '../gateway/faultd.ts';
import { chunk, LAST_CHUNK, streamHead, whole } from '../gateway/http.ts';
import { modelsWithSpare, type Pair, providersAt } from '../gateway/pairs.ts';
import { eventually, type Started, startGateway } from '../gateway/start.ts';

const PROTOCOLS: readonly ProtocolId[] = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'];

/** Every client with every upstream, and each protocol also passed on unchanged. */
export const ALL_PAIRS: readonly Pair[] = PROTOCOLS.flatMap((client) =>
  PROTOCOLS.flatMap((upstream) =>
    (client === upstream ? [true, false] : [false]).map((isPassing) => ({
      client,
      upstream,
      isPassing,
      name: `${client} ${isPassing ? '=' : '<-'} ${upstream}`,
    })),
  ),
);

/** What an upstream has done for one request, by its own account. */
export interface Logged {
  upstream: 'first' | 'second';
  status?: number;
  usage?: CanonicalUsage;
}

/** Dollars per million tokens: one request costs fractions of a millionth, so that rounding is tested. */
const PRICE = { input: '0.15', output: '0.61' };

/** What tokens cost by that price, computed by other means than the gateway's: in hundredths of millionths. */
const costOf = ({ input_tokens: input, output_tokens: output }: CanonicalUsage): number =>
  Math.floor((15 * input + 61 * output + 50) / 100);

export interface RigOptions {
  limits?: object;
  providers?: (providers: Record<string, object>) => Record<string, object>;
  store?: Store;
  services?: (services: Services) => Services;
}

export class Rig {
  readonly first: Faultd;
  readonly second: Faultd;
  readonly store: Store;
  #gateway: Started | undefined;
  #log: Logged[] = [];
  #known = new Set<string>();
  #count = 0;

  private constructor(first: Faultd, second: Faultd, store: Store) {
    this.first = first;
    this.second = second;
    this.store = store;
  }

  static async start({
    limits = {},
    providers = (same) => same,
    store,
    services = (same) => same,
  }: RigOptions = {}): Promise<Rig> {
    const rig = new Rig(await Faultd.start(), await Faultd.start(), store ?? (await openStore({ folder: null })));
    rig.#gateway = await startGateway({
      config: {
        providers: providers(providersAt(rig.first, rig.second)),
        models: modelsWithSpare(),
        default_price: PRICE,
        limits,
      },
      services: (made) => {
        const { log, metrics } = made;
        const keeping = createKeeping(rig.store, { durability: 'strict', clock: REAL_CLOCK, log, metrics });
        return services({ ...made, budget: unlimited(), random: () => -0.499, keeping });
      },
    });
    return rig;
  }

  get gateway(): Started {
    if (!this.#gateway) throw new Error('not started');
    return this.#gateway;
  }

  async stop(): Promise<void> {
    await this.gateway.close();
    await this.first.stop();
    await this.second.stop();
    await this.store.close();
  }

  /** Usage that no other response of this rig has. */
  newUsage(): CanonicalUsage {
    this.#count++;
    return { input_tokens: 100 + this.#count, output_tokens: 7 + (this.#count % 13) };
  }

  /** Logs what the upstream did, when the script comes here. */
  note(upstream: Logged['upstream'], entry: Omit<Logged, 'upstream'>): Script[number] {
    return { run: () => void this.#log.push({ upstream, ...entry }) };
  }

  /** A good response, logged. */
  good({ upstream }: { upstream: ProtocolId }, stream: boolean, by: Logged['upstream'] = 'first'): Script {
    const usage = this.newUsage();
    const answer = { ...ANSWER, usage };
    return [
      this.note(by, { status: 200, usage }),
      ...(stream
        ? [{ send: streamHead() }, { send: chunk(framesOf(upstream, answer).join('')) }, { send: LAST_CHUNK }]
        : [{ send: whole(200, wholeOf(upstream, answer)) }]),
    ];
  }

  /** What the upstreams have logged since the last call. */
  takeLog(): Logged[] {
    return this.#log.splice(0);
  }

  /** The rows of exchanges that have ended since the last call, oldest first. */
  async takeRows(): Promise<ExchangeDetail[]> {
    await eventually(() => this.gateway.services.streams.count === 0);
    await this.store.flush();
    const { exchanges } = await this.store.list({ limit: 1000 });
    const fresh = exchanges.filter(({ id }) => !this.#known.has(id)).reverse();
    for (const { id } of fresh) this.#known.add(id);
    const details = await Promise.all(fresh.map(({ id }) => this.store.get(id)));
    return details.flatMap((detail) => detail ?? []);
  }

  /** The row of the only exchange since the last call. */
  async takeRow(): Promise<ExchangeDetail> {
    const rows = await this.takeRows();
    expect(rows.length, 'one request, one row').toBe(1);
    // Checked above.
    return rows[0] as ExchangeDetail;
  }

  /** Requests that the upstreams received. */
  get served(): Served[] {
    return [...this.first.served, ...this.second.served];
  }

  /** Roll-ups equal the sums over all rows. */
  async expectRollups(): Promise<void> {
    const { exchanges } = await this.store.list({ limit: 1000 });
    const rows = await this.store.usage({ by: 'model' });
    const sum = (pick: (row: Record<string, unknown>) => unknown, list: readonly object[]): number =>
      list.reduce((total, row) => total + Number(pick(row as Record<string, unknown>) ?? 0), 0);
    for (const column of ['input_tokens', 'output_tokens', 'cost_micros', 'attempts'])
      expect(
        sum((row) => row[column], rows),
        column,
      ).toBe(sum((row) => row[column], exchanges));
    expect(sum((row) => row['requests'], rows)).toBe(exchanges.length);
  }
}

/** Always enough retries. */
function unlimited(): RetryBudget {
  let now = 0;
  return new RetryBudget(1, () => (now += 1e6));
}

/** How one attempt must have been recorded. */
interface ExpectedAttempt {
  status?: number | null;
  ending: string;
  error?: string | null;
  possiblyBilled?: boolean;
  /** By default what the log says. */
  usage?: CanonicalUsage | null;
  provenance?: string | null;
}

export interface ExpectedExchange {
  status: number;
  ending: string;
  attempts: readonly ExpectedAttempt[];
}

/** Holds a row against what the upstreams logged: one attempt a log entry, tokens as reported, cost exact. */
export function expectRow({ exchange, attempts }: ExchangeDetail, log: readonly Logged[], expected: ExpectedExchange): void {
  const shown = attempts.map(({ ending, http_status }) => `${ending} ${http_status}`);
  expect(shown, 'one row an attempt').toHaveLength(expected.attempts.length);
  const used: CanonicalUsage[] = [];
  for (const [index, want] of expected.attempts.entries()) {
    const attempt = attempts[index];
    const usage = want.usage === undefined ? log[index]?.usage : (want.usage ?? undefined);
    if (usage) used.push(usage);
    expectFields(attempt, `attempt ${index + 1}`, {
      number: index + 1,
      state: 'settled',
      ending: want.ending,
      http_status: want.status === undefined ? (log[index]?.status ?? null) : want.status,
      input_tokens: usage?.input_tokens ?? null,
      output_tokens: usage?.output_tokens ?? null,
      cost_micros: usage ? costOf(usage) : null,
      provenance: want.provenance === undefined ? (usage ? 'reported' : null) : want.provenance,
      ...(want.error !== undefined && { error_code: want.error }),
      possibly_billed: want.possiblyBilled ?? false,
    });
    expectTimes(attempt ?? {});
  }
  const sum = (pick: (usage: CanonicalUsage) => number): number | null =>
    used.length === 0 ? null : used.reduce((total, usage) => total + pick(usage), 0);
  expectFields(exchange, 'exchange', {
    state: 'settled',
    http_status: expected.status,
    ending: expected.ending,
    attempts: expected.attempts.length,
    input_tokens: sum(({ input_tokens }) => input_tokens),
    output_tokens: sum(({ output_tokens }) => output_tokens),
    cost_micros: sum(costOf),
    possibly_billed: expected.attempts.some(({ possiblyBilled }) => possiblyBilled),
  });
  expectTimes(exchange);
}

/** The fields of a row that are expected; the message names those that differ. */
export function expectFields(row: object | undefined, label: string, expected: Record<string, unknown>): void {
  const actual: Record<string, unknown> = Object.fromEntries(Object.entries(row ?? {}).filter(([name]) => name in expected));
  const wrong = Object.keys(expected).filter((name) => actual[name] !== expected[name]);
  const text = wrong.map((name) => `${name} is ${actual[name]} instead of ${expected[name]}`).join(', ');
  expect(actual, `${label}: ${text}`).toEqual(expected);
}

type Times = Partial<Record<'connect_ms' | 'first_byte_ms' | 'first_token_ms' | 'total_ms', number | null>>;

/** No negative time, and each step not before the one before it. */
export function expectTimes({ connect_ms, first_byte_ms, first_token_ms, total_ms }: Times): void {
  const steps = [0, connect_ms, first_byte_ms, first_token_ms, total_ms].filter((ms) => typeof ms === 'number');
  expect(steps).toEqual([...steps].sort((a, b) => a - b));
  expect(total_ms).not.toBeNull();
}
