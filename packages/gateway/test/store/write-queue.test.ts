import { describe, expect, test } from 'vitest';
import type { Clock, Timer } from '../../src/http/clock.ts';
import { StoreError } from '../../src/store/errors.ts';
import { type SendBatch, WriteQueue } from '../../src/store/write-queue.ts';

const LIMITS = { maxQueuedRows: 10, batchRows: 3, maxBatchRows: 3, batchMs: 20, smallRows: 0 };

/** A clock that only moves by `advance`. */
function createClock(): Clock & { advance: (ms: number) => Promise<void> } {
  let time = 0;
  let timers: { at: number; run: () => void }[] = [];
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const setTimer = (run: () => void, ms: number): Timer => {
    const entry = { at: time + ms, run };
    timers.push(entry);
    const timer: Timer = {
      close: () => {
        timers = timers.filter((other) => other !== entry);
      },
      refresh: () => {},
      unref: () => timer,
    };
    return timer;
  };
  return {
    now: () => time,
    setTimer,
    setRepeating: setTimer,
    advance: async (ms) => {
      await settle();
      time += ms;
      const due = timers.filter(({ at }) => at <= time);
      timers = timers.filter(({ at }) => at > time);
      for (const { run } of due) run();
      await settle();
    },
  };
}

function createQueue(send?: SendBatch<number>, limits = LIMITS) {
  const batches: number[][] = [];
  const clock = createClock();
  const record: SendBatch<number> = async (rows) => {
    batches.push([...rows]);
    return send ? send(rows) : [];
  };
  return { queue: new WriteQueue(record, limits, clock), batches, clock };
}

const pushAll = (queue: WriteQueue<number>, ...rows: number[]): Promise<PromiseSettledResult<void>[]> =>
  Promise.allSettled(rows.map((row) => queue.push(row, false)));

describe('grouping', () => {
  test('rows of one turn are one batch, sent at once after a pause', async () => {
    const { queue, batches, clock } = createQueue();
    void pushAll(queue, 1, 2);
    await clock.advance(0);
    expect(batches).toEqual([[1, 2]]);
  });

  test('rows soon after a batch wait until 20 ms have passed since it', async () => {
    const { queue, batches, clock } = createQueue();
    void pushAll(queue, 1);
    await clock.advance(5);
    void pushAll(queue, 2);
    await clock.advance(5);
    void pushAll(queue, 3);
    await clock.advance(9);
    expect(batches).toEqual([[1]]);
    await clock.advance(1);
    expect(batches).toEqual([[1], [2, 3]]);
  });

  test('rows after a small batch do not wait; rows after another one do', async () => {
    const { queue, batches, clock } = createQueue(undefined, { ...LIMITS, batchRows: 5, maxBatchRows: 5, smallRows: 1 });
    for (const row of [1, 2, 3]) {
      void pushAll(queue, row);
      await clock.advance(1);
    }
    expect(batches).toEqual([[1], [2], [3]]);
    void pushAll(queue, 4, 5);
    await clock.advance(1);
    void pushAll(queue, 6);
    await clock.advance(18);
    expect(batches).toEqual([[1], [2], [3], [4, 5]]);
    await clock.advance(1);
    expect(batches.at(-1)).toEqual([6]);
  });

  test('a full batch does not wait', async () => {
    const { queue, batches, clock } = createQueue();
    void pushAll(queue, 1);
    await clock.advance(1);
    void pushAll(queue, 2, 3);
    await clock.advance(1);
    expect(batches).toEqual([[1]]);
    void pushAll(queue, 4);
    await clock.advance(0);
    expect(batches).toEqual([[1], [2, 3, 4]]);
    await clock.advance(100);
    expect(batches.length, 'the timer of the batch is gone').toBe(2);
  });

  test('what has waited for a batch follows in one larger batch', async () => {
    let finish: (() => void)[] = [];
    const send: SendBatch<number> = () => new Promise((resolve) => finish.push(() => resolve([])));
    const { queue, batches, clock } = createQueue(send, { ...LIMITS, maxBatchRows: 6 });
    void pushAll(queue, 1, 2, 3);
    await clock.advance(0);
    void pushAll(queue, 4, 5, 6, 7, 8, 9, 10);
    for (let turn = 0; turn < 3; turn++) {
      for (const done of finish.splice(0)) done();
      await clock.advance(100);
    }
    expect(batches).toEqual([[1, 2, 3], [4, 5, 6, 7, 8, 9], [10]]);
    finish = [];
  });

  test('one batch is under way at a time, and rows keep their order', async () => {
    let finish: (() => void)[] = [];
    const { queue, batches, clock } = createQueue(() => new Promise((resolve) => finish.push(() => resolve([]))));
    const written = pushAll(queue, 1, 2, 3, 4, 5, 6, 7);
    await clock.advance(100);
    expect(batches).toEqual([[1, 2, 3]]);
    for (let turn = 0; turn < 3; turn++) {
      for (const done of finish.splice(0)) done();
      await clock.advance(100);
    }
    await written;
    expect(batches).toEqual([[1, 2, 3], [4, 5, 6], [7]]);
    finish = [];
  });
});

describe('back-pressure', () => {
  test('with the default limit, 10,000 rows wait and the next exchange is refused', async () => {
    const { queue, clock } = createQueue(() => new Promise(() => {}), {
      ...LIMITS,
      maxQueuedRows: 10_000,
      batchRows: 100,
    });
    for (let row = 0; row < 10_000; row++) {
      expect(queue.accepting).toBe(true);
      void queue.push(row, true);
    }
    await clock.advance(0);
    expect(queue.accepting).toBe(false);
    await expect(queue.push(10_000, true)).rejects.toMatchObject({ code: 'full' });
    expect(queue.status.queued_rows).toBe(10_000);
  });

  test('rows of admitted exchanges are still taken, up to twice the limit', async () => {
    const { queue } = createQueue(() => new Promise(() => {}));
    for (let row = 0; row < 20; row++) void queue.push(row, false);
    await expect(queue.push(20, false)).rejects.toBeInstanceOf(StoreError);
    expect(queue.status.queued_rows).toBe(20);
  });

  test('accepts again when rows were written', async () => {
    let finish = (): void => {};
    const { queue, clock } = createQueue(() => new Promise((resolve) => (finish = () => resolve([]))));
    for (let row = 0; row < 10; row++) void queue.push(row, true);
    await clock.advance(0);
    expect(queue.accepting).toBe(false);
    finish();
    await clock.advance(0);
    expect(queue.accepting).toBe(true);
  });
});

describe('failures', () => {
  test('a failed batch is kept, repeated in order and resolved once', async () => {
    let failures = 3;
    const { queue, batches, clock } = createQueue(async () => {
      if (failures-- > 0) throw new Error('disk is full');
      return [];
    });
    const written = pushAll(queue, 1, 2);
    await clock.advance(0);
    expect(queue.status).toMatchObject({ queued_rows: 2, failed_batches: 1, last_error: 'disk is full' });
    void pushAll(queue, 3);
    for (let turn = 0; turn < 5; turn++) await clock.advance(1000);
    expect((await written).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled']);
    expect(batches).toEqual([
      [1, 2],
      [1, 2, 3],
      [1, 2, 3],
      [1, 2, 3],
    ]);
    expect(queue.status).toMatchObject({ queued_rows: 0, failed_batches: 3, last_error: null, written_rows: 3 });
  });

  test('the reason is part of the refusal', async () => {
    const { queue, clock } = createQueue(async () => {
      throw new Error('disk is full');
    });
    for (let row = 0; row < 10; row++) void queue.push(row, true);
    await clock.advance(0);
    await expect(queue.push(10, true)).rejects.toThrow('10 rows wait to be written: disk is full; retry later');
  });

  test('a row that can never be written is rejected alone', async () => {
    const { queue, clock } = createQueue(async () => [{ index: 1, message: 'NOT NULL' }]);
    const written = pushAll(queue, 1, 2, 3);
    await clock.advance(0);
    expect((await written).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(queue.status).toMatchObject({ written_rows: 2, rejected_rows: 1 });
  });
});

describe('closing', () => {
  test('flush resolves when nothing waits', async () => {
    const { queue, clock } = createQueue();
    void pushAll(queue, 1, 2, 3, 4);
    let isFlushed = false;
    const flushed = queue.flush().then(() => {
      isFlushed = true;
    });
    await clock.advance(0);
    expect(isFlushed).toBe(false);
    await clock.advance(20);
    await flushed;
    expect(queue.status).toMatchObject({ queued_rows: 0, written_rows: 4 });
  });

  test('close rejects and counts what waits, and refuses further rows', async () => {
    const { queue, clock } = createQueue(() => new Promise(() => {}));
    const written = pushAll(queue, 1, 2, 3, 4);
    await clock.advance(0);
    expect(queue.close()).toBe(4);
    expect((await written).every(({ status }) => status === 'rejected')).toBe(true);
    await expect(queue.push(5, false)).rejects.toMatchObject({ code: 'closed' });
    expect(queue.accepting).toBe(false);
  });
});
