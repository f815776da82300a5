import { Writable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ClientConnection } from '../../src/exchange/client-connection.ts';
import {
  IdempotentResponses,
  type KeyedResponse,
  MAX_ENTRIES,
  MAX_RESPONSE_SHARE,
} from '../../src/exchange/idempotent-responses.ts';
import { LogReader, type ResponseLog, SharedResponse } from '../../src/exchange/response-log.ts';
import { TestClock } from './test-clock.ts';

// One response for several clients, in any order of events.

/** A client that takes bytes only when the test lets it. */
class FakeResponse extends Writable {
  headersSent = false;
  readonly #taken: Buffer[] = [];
  #waiting: (() => void)[] = [];
  isReading = true;

  constructor() {
    super({ highWaterMark: 64 });
  }

  get body(): Buffer {
    return Buffer.concat(this.#taken);
  }

  get isComplete(): boolean {
    return this.writableFinished;
  }

  writeHead(): this {
    this.headersSent = true;
    return this;
  }

  flushHeaders(): void {}

  setTimeout(): this {
    return this;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#taken.push(chunk);
    if (this.isReading) done();
    else this.#waiting.push(done);
  }

  read(isReading: boolean): void {
    this.isReading = isReading;
    if (isReading) for (const done of this.#waiting.splice(0)) done();
  }
}

interface Client {
  response: FakeResponse;
  reader: LogReader;
}

function attach(log: ResponseLog, isFirst: boolean): Client {
  const response = new FakeResponse();
  const connection = new ClientConnection(response as never); // what a reader uses of a response
  const reader = new LogReader(log, {
    connection,
    isFirst,
    stallMs: 1000,
    buildHeaders: () => ({}),
    onStall: () => undefined,
  });
  return { response, reader };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

type Step =
  | { do: 'write'; bytes: number }
  | { do: 'join' }
  | { do: 'start' | 'pause' | 'resume' | 'leave'; client: number }
  | { do: 'forget' }
  | { do: 'turn' };

const client = fc.nat({ max: 4 });

const steps = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant('write' as const), bytes: fc.integer({ min: 0, max: 300 }) }) },
    { weight: 2, arbitrary: fc.constant<Step>({ do: 'join' }) },
    {
      weight: 4,
      arbitrary: fc.record({ do: fc.constantFrom('start' as const, 'pause' as const, 'resume' as const), client }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('leave' as const), client }) },
    { weight: 1, arbitrary: fc.constant<Step>({ do: 'forget' }) },
    { weight: 2, arbitrary: fc.constant<Step>({ do: 'turn' }) },
  ),
  { maxLength: 40 },
);

/** One response, its clients, and what was written. */
class Play {
  readonly store: IdempotentResponses;
  readonly #entry: KeyedResponse;
  readonly #shared: SharedResponse;
  readonly #clients: Client[] = [];
  readonly #written: Buffer[] = [];
  readonly #left = new Set<Client>();

  constructor(maxBytes: number) {
    this.store = new IdempotentResponses({ ttlMs: 1000, maxBytes: maxBytes / MAX_RESPONSE_SHARE }, new TestClock());
    this.#entry = this.store.begin({ name: 'n', caller: 'c', fingerprint: 'f', requestId: 'r', facts: () => ({}) });
    const shared = new SharedResponse(this.log, 64);
    this.#shared = shared;
    this.log.onAbandoned = (isStalled) => shared.abandon(isStalled);
    this.#clients.push(attach(this.log, true));
    this.#clients[0]?.reader.start();
    shared.writeHead(200, {});
  }

  get log(): ResponseLog {
    return this.#entry.log;
  }

  take(step: Step): void {
    const at = 'client' in step ? this.#clients[step.client] : undefined;
    if (step.do === 'write') this.#write(step.bytes);
    else if (step.do === 'join') this.#join();
    else if (step.do === 'forget') this.log.forget();
    else if (at) this.#act(step.do, at);
  }

  #write(bytes: number): void {
    if (this.#shared.destroyed) return;
    const chunk = Buffer.alloc(bytes, this.#written.length);
    this.#written.push(chunk);
    this.#shared.write(chunk);
  }

  #join(): void {
    if (this.log.isComplete && !this.#shared.destroyed) this.#clients.push(attach(this.log, false));
  }

  #act(act: Step['do'], at: Client): void {
    if (act === 'start') at.reader.start();
    else if (act === 'leave') {
      this.#left.add(at);
      at.response.destroy();
    } else at.response.read(act === 'resume');
  }

  /** The response ends, or is cut off; then all clients read. Returns whether it is complete. */
  async end(isBroken: boolean): Promise<boolean> {
    const isEnded = !isBroken && !this.#shared.destroyed;
    if (isEnded) this.#shared.end();
    else this.#shared.destroy();
    for (const { response, reader } of this.#clients) {
      reader.start();
      response.read(true);
    }
    for (let i = 0; i < 20; i++) await turn();
    this.store.finish(this.#entry, { status: 200, ending: isEnded ? 'answered' : 'client_aborted' });
    return isEnded;
  }

  check(isEnded: boolean): void {
    const whole = Buffer.concat(this.#written);
    for (const one of this.#clients) {
      const { response } = one;
      expect(whole.subarray(0, response.body.length).equals(response.body)).toBe(true);
      // The responses are far below the lag that would cut a client off.
      expect(response.isComplete).toBe(isEnded && !this.#left.has(one));
      if (response.isComplete) expect(response.body.equals(whole)).toBe(true);
      expect(response.closed).toBe(true);
    }
    expect(this.store.bytes).toBe(this.log.size);
    expect(this.store.bytes > 0).toBe(isEnded && this.log.isComplete && whole.length + this.#written.length > 0);
  }
}

describe('a log', () => {
  test('clients that stay get the whole response, others a prefix, and no memory is left', async () => {
    await fc.assert(
      fc.asyncProperty(steps, fc.integer({ min: 100, max: 4000 }), fc.boolean(), async (list, maxBytes, isBroken) => {
        const play = new Play(maxBytes);
        for (const step of list) {
          play.take(step);
          await turn();
          expect(play.store.bytes).toBe(play.log.size);
        }
        play.check(await play.end(isBroken));
      }),
      { numRuns: 150 },
    );
  });
});

describe('the store', () => {
  const begin = (store: IdempotentResponses, name: string, caller = 'c') =>
    store.begin({ name, caller, fingerprint: 'f', requestId: name, facts: () => ({}) });

  async function save(store: IdempotentResponses, name: string, bytes: number, caller = 'c'): Promise<void> {
    const entry = begin(store, name, caller);
    const shared = new SharedResponse(entry.log, 1024);
    entry.log.onAbandoned = () => undefined;
    shared.writeHead(200, {});
    shared.end(Buffer.alloc(bytes));
    await turn();
    store.finish(entry, { status: 200, ending: 'answered' });
  }

  test('the caller with the most bytes gives up its oldest response; its key stays known', async () => {
    const store = new IdempotentResponses({ ttlMs: 1000, maxBytes: 10_000 }, new TestClock());
    await save(store, 'small', 100, 'a');
    for (let i = 0; i < 12; i++) await save(store, `large-${i}`, 1000, 'b');
    expect(store.bytes).toBeLessThanOrEqual(10_000);
    expect(store.find('small')?.state).toBe('stored');
    expect(store.find('large-0')?.state).toBe('dropped');
    expect(store.find('large-11')?.state).toBe('stored');
  });

  test('the number of keys is bounded: the oldest of the caller with the most is forgotten', async () => {
    const store = new IdempotentResponses({ ttlMs: 1000, maxBytes: 10_000 }, new TestClock());
    await save(store, 'small', 1, 'a');
    const end = { status: 200, ending: 'answered' as const };
    for (let i = 0; i < MAX_ENTRIES + 10; i++) store.finish(begin(store, `n-${i}`, 'b'), end);
    expect(store.count).toBe(MAX_ENTRIES);
    expect([store.find('small')?.state, store.find('n-0'), store.find('n-20')?.state]).toEqual(['stored', undefined, 'stored']);
  });

  test.each([
    ['an error status', { status: 400, ending: 'refused' as const }],
    [
      'an error in the stream',
      { status: 200, ending: 'upstream_error' as const, error: { code: 'UPSTREAM_ERROR' as const, message: 'x' } },
    ],
    ['a client that left', { status: 499, ending: 'client_aborted' as const }],
  ])('%s is not stored', (_, end) => {
    const store = new IdempotentResponses({ ttlMs: 1000, maxBytes: 10_000 }, new TestClock());
    store.finish(begin(store, 'n'), end);
    expect([store.find('n'), store.count]).toEqual([undefined, 0]);
  });
});
