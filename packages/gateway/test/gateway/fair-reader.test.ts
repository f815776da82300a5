import { describe, expect, test } from 'vitest';
import type { Line, Receiver } from '../../src/upstream/dialer.ts';
import { FairReader, ReadQueue, TURN_BYTES } from '../../src/upstream/fair-reader.ts';

/** An event loop that runs one iteration when the test asks for it; its clock moves by `cost` with every turn. */
function createLoop(cost = 0) {
  const deferred: (() => void)[] = [];
  let now = 0;
  const queue = new ReadQueue({ now: () => now, defer: (run) => void deferred.push(run) });
  const iterate = (): boolean => {
    const due = deferred.splice(0);
    for (const run of due) run();
    return due.length > 0;
  };
  return { queue, iterate, spend: () => (now += cost) };
}

/** A consumer that records what it gets, and an upstream that delivers nothing while it is paused. */
function connect({ queue, spend }: ReturnType<typeof createLoop>, onData: (reader: FairReader) => void = () => undefined) {
  const seen: string[] = [];
  const unread: Uint8Array[] = [];
  let isPaused = false;
  let isHungUp = false;
  const receiver: Receiver = {
    start: (status) => void seen.push(`start ${status}`),
    data: (chunk) => {
      seen.push(`data ${chunk.length}`);
      spend();
      onData(reader);
    },
    end: () => void seen.push('end'),
    fail: (error) => void seen.push(`fail ${error.message}`),
    again: () => void seen.push('again'),
  };
  const deliver = (): void => {
    for (let chunk = unread.shift(); chunk; chunk = isPaused || isHungUp ? undefined : unread.shift()) reader.data(chunk);
  };
  const source: Line = {
    pause: () => {
      isPaused = true;
    },
    resume: () => {
      isPaused = false;
      deliver();
    },
    hangUp: () => {
      isHungUp = true;
    },
  };
  const reader = new FairReader(receiver, queue);
  reader.attach(source);
  const send = (...lengths: number[]): void => {
    unread.push(...lengths.map((length) => new Uint8Array(length)));
    if (!isPaused) deliver();
  };
  return { reader, seen, send, unread, isPaused: () => isPaused, isHungUp: () => isHungUp };
}

/** Two of them use up a turn. */
const chunks = (count: number): number[] => Array.from({ length: count }, () => TURN_BYTES / 2);

describe('a reader of an upstream', () => {
  test('forwards small chunks at once', () => {
    const { reader, seen, send, isPaused } = connect(createLoop());
    reader.start(200, {});
    send(10, 20);
    reader.end();
    expect(seen).toEqual(['start 200', 'data 10', 'data 20', 'end']);
    expect(isPaused()).toBe(false);
  });

  test('pauses its upstream when its turn is used up, until its next turn', () => {
    const loop = createLoop(5);
    const { seen, send, isPaused } = connect(loop);
    send(...chunks(5));
    expect(seen).toHaveLength(2);
    expect(isPaused()).toBe(true);
    loop.iterate();
    expect(seen).toHaveLength(4);
    loop.iterate();
    expect(seen).toHaveLength(5);
    expect(isPaused()).toBe(false);
    expect(loop.iterate()).toBe(false);
  });

  test('counts every chunk as work, regardless of its length', () => {
    const loop = createLoop(5);
    const { seen, send, unread } = connect(loop);
    send(...Array.from({ length: 10_000 }, () => 1));
    const { length } = seen;
    expect(length).toBeLessThan(1000);
    loop.iterate();
    expect(seen.length).toBeLessThanOrEqual(2 * length);
    while (loop.iterate());
    expect(seen).toHaveLength(10_000);
    expect(unread).toHaveLength(0);
  });

  test('delivers nothing while its consumer is paused', () => {
    const loop = createLoop();
    const { reader, seen, send, isPaused } = connect(loop, (one) => one.pause());
    send(...chunks(4));
    expect(seen).toHaveLength(1);
    for (let turns = 2; turns <= 4; turns++) {
      while (loop.iterate());
      expect(isPaused()).toBe(true);
      reader.resume();
      while (loop.iterate());
      expect(seen).toHaveLength(turns);
    }
  });

  test('waits for its turn, although its consumer wants more', () => {
    const loop = createLoop();
    const { reader, seen, send, isPaused } = connect(loop);
    send(...chunks(3));
    reader.pause();
    reader.resume();
    expect(seen).toHaveLength(2);
    expect(isPaused()).toBe(true);
    loop.iterate();
    expect(seen).toHaveLength(3);
  });

  test.each([
    ['ended', (reader: FairReader) => reader.end(), 'end'],
    ['failed', (reader: FairReader) => reader.fail(new Error('reset')), 'fail reset'],
  ])('that has %s reports it at once and takes no further turn', (_, finish, last) => {
    const loop = createLoop();
    const { reader, seen, send, isPaused } = connect(loop);
    send(TURN_BYTES);
    finish(reader);
    expect(seen).toEqual([`data ${TURN_BYTES}`, last]);
    loop.iterate();
    expect(isPaused()).toBe(true);
  });

  test('takes no further turn after it was cancelled', () => {
    const loop = createLoop();
    const { reader, seen, send, isHungUp } = connect(loop);
    send(...chunks(3));
    reader.hangUp();
    while (loop.iterate());
    expect(seen).toHaveLength(2);
    expect(isHungUp()).toBe(true);
  });
});

test('an exception of a consumer ends only its own request', () => {
  const loop = createLoop();
  let calls = 0;
  const failing = connect(loop, () => {
    if (++calls === 3) throw new Error('a bug');
  });
  const other = connect(loop);
  failing.send(...chunks(6));
  other.send(...chunks(6));
  while (loop.iterate());
  expect(failing.seen.slice(2)).toEqual([`data ${TURN_BYTES / 2}`, 'fail a bug']);
  expect(failing.isHungUp()).toBe(true);
  expect(other.seen).toHaveLength(6);
});

describe('readers of several upstreams', () => {
  test('take turns in order of arrival', () => {
    const loop = createLoop(5);
    const flooding = Array.from({ length: 3 }, () => connect(loop));
    for (const { send } of flooding) send(...chunks(8));
    const turns = (): number[] => flooding.map(({ seen }) => seen.length / 2);
    expect(turns()).toEqual([1, 1, 1]);
    loop.iterate();
    expect(turns()).toEqual([2, 1, 1]);
    loop.iterate();
    loop.iterate();
    loop.iterate();
    expect(turns()).toEqual([3, 2, 2]);
  });

  test('share an iteration of the event loop as long as there is time', () => {
    const loop = createLoop(0);
    const flooding = Array.from({ length: 3 }, () => connect(loop));
    for (const { send } of flooding) send(...chunks(8));
    loop.iterate();
    expect(flooding.map(({ unread }) => unread.length)).toEqual([0, 0, 0]);
  });

  test('do not delay one that sends little', () => {
    const loop = createLoop(5);
    const flooding = Array.from({ length: 100 }, () => connect(loop));
    for (const { send } of flooding) send(...chunks(100));
    const { seen, send } = connect(loop);
    for (let i = 1; i <= 20; i++) {
      send(200);
      expect(seen).toHaveLength(i);
      loop.iterate();
    }
  });
});
