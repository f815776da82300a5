/** The operations of limits as servers run them, held against the functions of the model with the same random histories. */
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { eventually } from '../../../../test/wait.ts';
import { LEASE_MS, RATE_MS } from '../../src/admission/backend.ts';
import {
  begin,
  commit,
  createState,
  end,
  type LimitsState,
  listDue,
  prune,
  raise,
  renew,
  type TakeResult,
  take,
} from '../../src/admission/model.ts';
import { CRASH_MS, type Driver, type Operation, RELOAD_MS } from '../../src/admission/shared/driver.ts';
import { createPrefix, type LimitsServer, SERVERS, type ServerName, stopServers, useServer } from './backends.ts';

afterAll(stopServers);

const KEYS = ['a', 'b', 'c'] as const;

const LIMIT = 1000;

type Step =
  | { do: 'take' | 'take unseen'; slots: boolean; rate: number; keys: readonly string[]; micros: number }
  | { do: 'raise' | 'end' | 'renew' | 'end again'; pick: number; by: number; isLate: boolean }
  | { do: 'correct'; by: number; isOld: boolean }
  | { do: 'admitted elsewhere'; keys: readonly string[]; micros: number }
  | { do: 'load' | 'begin' | 'commit' | 'reload'; key: string; spent: number }
  | { do: 'pass'; ms: number }
  | { do: 'flush' | 'lose scripts' };

const keys = fc.subarray([...KEYS], { minLength: 1 });

const STEP: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constantFrom('take' as const, 'take' as const, 'take' as const, 'take unseen' as const),
      slots: fc.boolean(),
      rate: fc.integer({ min: 0, max: 6 }),
      keys,
      micros: fc.integer({ min: 0, max: 500 }),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constantFrom('raise' as const, 'end' as const, 'end' as const, 'renew' as const, 'end again' as const),
      pick: fc.nat(20),
      by: fc.integer({ min: 0, max: 200 }),
      isLate: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('correct' as const), by: fc.integer({ min: -9, max: 9 }), isOld: fc.boolean() }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('admitted elsewhere' as const), keys, micros: fc.integer({ min: 1, max: 200 }) }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constantFrom('load' as const, 'begin' as const, 'commit' as const, 'reload' as const),
      key: fc.constantFrom(...KEYS),
      spent: fc.integer({ min: 0, max: 400 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('pass' as const),
      ms: fc.constantFrom(1, 1000, RELOAD_MS, LEASE_MS - 1, LEASE_MS, RATE_MS, CRASH_MS),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('flush' as const, 'lose scripts' as const) }) },
);

/** A request that was admitted, and may have ended. */
interface Member {
  readonly id: string;
  readonly keys: readonly string[];
  readonly slots: string | undefined;
  micros: number;
}

/** One server and the model, which are told the same. */
class Twin {
  readonly #driver: Driver;
  readonly #server: LimitsServer;
  #state: LimitsState = createState();
  #epoch = '';
  #now = 1_700_000_000_000;
  #running: Member[] = [];
  #ended: Member[] = [];

  constructor(driver: Driver, server: LimitsServer) {
    this.#driver = driver;
    this.#server = server;
  }

  async #call(operation: Operation, request: object): Promise<unknown[]> {
    const text = JSON.stringify({ ...request, prefix: this.#driver.prefix, epoch: this.#epoch, now: this.#now, timeout: 5000 });
    const reply = await eventually(async () => {
      const [status, , ...rest] = (await this.#driver.send(operation, text)) as unknown[]; // as the client reads it
      return (
        status !== 'again' && [status, ...rest.map((part) => (typeof part === 'string' && part !== '' ? toNumber(part) : part))]
      );
    });
    return reply;
  }

  /** The only node begins an epoch, and may use it some time later. */
  async join(): Promise<void> {
    this.#epoch = randomUUID();
    await this.#call('join', { node: 'n', run: 'r', nodes: 1 });
    this.#now += 1000;
  }

  async play(step: Step, index: number): Promise<void> {
    switch (step.do) {
      case 'take':
      case 'take unseen':
        return this.#take(step, `m${index}`);
      case 'raise':
      case 'end':
      case 'renew':
      case 'end again':
        return this.#useMember(step);
      case 'correct':
        return this.#correct(step);
      case 'admitted elsewhere': {
        const member = { id: `m${index}`, keys: step.keys, slots: undefined, micros: step.micros };
        this.#running.push(member);
        return this.#renew(member);
      }
      case 'pass':
        return this.#pass(step.ms);
      case 'flush':
        await this.#server.flush();
        expect(await this.#call('read', { keys: KEYS })).toEqual(['epoch']);
        this.#state = createState();
        // Running requests are reserved again, as a node does.
        await this.join();
        for (const member of this.#running) await this.#renew(member);
        return;
      case 'lose scripts':
        return void (await this.#server.loseScripts?.());
      default:
        return this.#load(step);
    }
  }

  async #take({ do: action, slots, rate, keys: wanted, micros }: Extract<Step, { rate: number }>, member: string): Promise<void> {
    const request = {
      member,
      slots: slots ? 'k' : undefined,
      rates: rate > 0 ? [{ counter: 'r', amount: rate, limit: 20 }] : [],
      micros,
      keys: wanted,
      limits: wanted.map(() => LIMIT),
    };
    const expected = take(this.#state, { ...request, slotLimit: 3 }, this.#now);
    const reply = await this.#call('take', { ...request, node: 'n', slot_limit: 3 });
    expect(reply).toEqual(this.#describe(expected, wanted));
    if (action === 'take unseen') return this.#giveBack(member, request.slots);
    if (expected.status === 'taken') this.#running.push({ id: member, keys: wanted, slots: request.slots, micros });
  }

  /** A reply was lost: what it may have taken is given back. */
  async #giveBack(member: string, slots: string | undefined): Promise<void> {
    const ending = { member, slots, corrections: [], charged: 0, keys: [] };
    end(this.#state, ending, this.#now);
    expect(await this.#call('end', { endings: [ending] })).toEqual(['taken']);
  }

  #describe(result: TakeResult, wanted: readonly string[]): unknown[] {
    if (result.status === 'load') return ['load', ...result.missing];
    const rates = result.rates.flatMap(({ period, used }) => [period, used]);
    if (result.status === 'short') return ['short', ...rates, result.index, result.spent, result.reserved];
    const views = wanted.flatMap((key) => {
      const { spent = 0, reserved = 0 } = this.#state.windows.get(key) ?? {};
      return [spent, reserved];
    });
    return [result.status, ...rates, ...(result.status === 'taken' ? views : [])];
  }

  async #useMember({ do: action, pick, by, isLate }: Extract<Step, { pick: number }>): Promise<void> {
    const members = action === 'end again' ? this.#ended : this.#running;
    const member = members[pick % Math.max(1, members.length)];
    if (!member) return;
    if (action === 'renew') return this.#renew(member);
    if (action === 'raise') {
      const request = { member: member.id, micros: member.micros + by, keys: member.keys, limits: member.keys.map(() => LIMIT) };
      const expected = raise(this.#state, request);
      expect(await this.#call('raise', request)).toEqual([expected]);
      if (expected === 'taken') member.micros += by;
      return;
    }
    const late = isLate || undefined;
    const ending = { member: member.id, slots: member.slots, corrections: [], charged: by, keys: member.keys, late };
    end(this.#state, ending, this.#now);
    expect(await this.#call('end', { endings: [ending] })).toEqual(['taken']);
    if (action === 'end') {
      this.#running = this.#running.filter((one) => one !== member);
      this.#ended.push(member);
    }
  }

  async #renew({ id: member, slots, micros, keys: held }: Member): Promise<void> {
    const lease = { member, slots, micros, keys: held };
    renew(this.#state, lease, this.#now);
    expect(await this.#call('renew', { node: 'n', leases: [lease] })).toEqual(['taken']);
  }

  async #correct({ by, isOld }: Extract<Step, { do: 'correct' }>): Promise<void> {
    const counter = this.#state.counters.get('r');
    // A correction follows a claim, in a minute of the counter.
    if (!counter) return;
    const corrections = [{ counter: 'r', period: isOld ? counter.start - RATE_MS : counter.start, by }];
    const ending = { member: 'corrected', corrections, keys: [] };
    end(this.#state, ending, this.#now);
    expect(await this.#call('end', { endings: [ending] })).toEqual(['taken']);
  }

  /** Time passes. Leases that have ended are removed by the beats of all nodes, and their requests are forgotten. */
  async #pass(ms: number): Promise<void> {
    this.#now += ms;
    prune(this.#state, this.#now);
    const due = listDue(this.#state, this.#now);
    const [status, nodes, ...listed] = await this.#call('beat', { node: 'n' });
    expect([status, nodes]).toEqual(['taken', 1]);
    expect([...listed].sort()).toEqual([...due].sort());
    if (ms >= LEASE_MS) [this.#running, this.#ended] = [[], []];
    else if (ms > 1) for (const member of this.#running) await this.#renew(member);
  }

  async #load({ do: action, key, spent }: Extract<Step, { key: string }>): Promise<void> {
    if (action !== 'commit') {
      begin(this.#state, key);
      expect(await this.#call('begin', { keys: [key] })).toEqual(['taken']);
    }
    if (action === 'begin') return;
    const isAgain = action !== 'load';
    commit(this.#state, { key, spent, isAgain }, this.#now);
    expect(await this.#call('commit', { keys: [key], spent: [spent], again: isAgain || undefined })).toEqual(['taken']);
  }

  async check(): Promise<void> {
    const expected = KEYS.flatMap((key) => {
      const { isLoaded = false, spent = 0, reserved = 0 } = this.#state.windows.get(key) ?? {};
      return [Number(isLoaded), spent, reserved];
    });
    expect(await this.#call('read', { keys: KEYS })).toEqual(['taken', ...expected]);
  }
}

/** Of other histories nothing is seen. */
async function connect(server: LimitsServer): Promise<Driver> {
  const silent = (): void => undefined;
  const events = { onReady: silent, onLost: silent, onError: silent };
  const driver = server.createDriver({ prefix: createPrefix(), connectTimeoutMs: 5000 }, events);
  driver.connect();
  await eventually(() => driver.isReady);
  return driver;
}

/** Ids stay texts. */
const toNumber = (text: string): unknown => (/^-?\d+$/.test(text) ? Number(text) : text);

describe.each(Object.keys(SERVERS) as ServerName[])('%s', (name) => {
  describe('runs', SERVERS[name].options, () => {
    test('every operation as the model does', { timeout: 240_000 }, async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(STEP, { maxLength: 50 }), async (steps) => {
          const server = await useServer(name);
          const driver = await connect(server);
          try {
            const twin = new Twin(driver, server);
            await twin.join();
            for (const [index, step] of steps.entries()) {
              await twin.play(step, index);
              await twin.check();
            }
          } finally {
            await driver.close();
          }
        }),
        { numRuns: 100 },
      );
    });
  });
});
