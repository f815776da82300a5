import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Clock, Timer } from '../../src/http/clock.ts';
import { openJournal } from '../../src/responses/journal.ts';
import { createResponseEntry } from '../../src/responses/request-state.ts';
import { ResponseStore, type Stored } from '../../src/responses/store.ts';
import { createTurn, type Turn } from '../../src/responses/turns.ts';

// What is kept on disk is there after a restart, also after a crash in the middle of a write.

let folder: string;
let now: number;
const failures: string[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-responses-'));
  now = 1_000_000;
});

afterEach(() => rm(folder, { recursive: true }));

const DAY = 86_400_000;

/** Runs when the test says so. */
let runTimer: () => void = () => undefined;

const setRepeating: Clock['setRepeating'] = (run) => {
  runTimer = run;
  const timer: Timer = { close: () => undefined, refresh: () => undefined, unref: () => timer };
  return timer;
};

async function open(retentionMs = 30 * DAY, slackBytes = 1e6) {
  const store = new ResponseStore({ ttlMs: retentionMs, maxBytes: 1e7, maxBytesPerKey: 1e6 }, { now: () => now });
  const journal = await openJournal(store, {
    folder,
    retentionMs,
    clock: { now: () => now, setTimer: setRepeating, setRepeating },
    wallClock: () => now,
    onFailure: (reason) => failures.push(reason),
    slackBytes,
  });
  return { store, journal };
}

function add(store: ResponseStore, id: string, text: string, parent?: Turn): { turn: Turn; saved: Promise<void> | undefined } {
  const body = JSON.stringify({ id, output: [{ type: 'message', id: `msg_${id}`, role: 'assistant', content: [] }] });
  const turn = createTurn({
    key: `turn_${id}`,
    parent,
    input: JSON.stringify([{ role: 'user', content: text }]),
    body,
    ids: [`in_${id}`, `msg_${id}`],
    holder: 'h',
  });
  return { turn, saved: store.put(createResponseEntry({ id, caller: 'a', holder: 'h', body: '', turn })) };
}

const summarize = (store: ResponseStore): unknown[] =>
  [...store.entries].map(({ kind, id, caller }: Stored) => `${kind} ${id} ${caller}`);

test('responses, conversations and objects are there after a restart', async () => {
  const first = await open();
  const one = add(first.store, 'resp_1', 'one');
  await one.saved;
  const two = add(first.store, 'resp_2', 'two', one.turn);
  const common = { caller: 'a', bytes: 0, usedAt: 0, isPinned: false };
  await first.store.put({
    ...common,
    kind: 'conversation',
    id: 'conv_1',
    createdAt: 5,
    metadata: { k: 'v' },
    head: two.turn,
    deleted: new Set(['in_resp_1']),
  });
  await first.store.put({ ...common, kind: 'object', id: 'file_1', provider: 'p' });
  await first.journal.close();
  const second = await open();
  expect(summarize(second.store)).toEqual(summarize(first.store));
  const turn = second.store.find('response', 'resp_2', 'a')?.turn;
  expect(turn).toMatchObject({
    input: two.turn.input,
    body: two.turn.body,
    ids: two.turn.ids,
    holder: 'h',
    parent: { key: 'turn_resp_1' },
  });
  expect(second.store.find('conversation', 'conv_1', 'a')).toMatchObject({
    metadata: { k: 'v' },
    createdAt: 5,
    head: turn,
    deleted: new Set(['in_resp_1']),
  });
  expect(second.store.find('object', 'file_1', 'a')).toMatchObject({ provider: 'p' });
  expect((await stat(join(folder, 'responses.jsonl'))).mode & 0o777).toBe(0o600);
  await second.journal.close();
});

test('what was removed is gone, and its bytes leave the file at the next start', async () => {
  const first = await open();
  await add(first.store, 'resp_1', 'private text').saved;
  await add(first.store, 'resp_2', 'other').saved;
  const [entry] = first.store.entries;
  if (entry) first.store.remove(entry);
  await first.journal.close();
  const second = await open();
  expect(summarize(second.store)).toEqual(['response resp_2 a']);
  await second.journal.close();
  expect(await readFile(join(folder, 'responses.jsonl'), 'utf8')).not.toContain('private text');
});

test('the age of a response is the same after many restarts', async () => {
  const first = await open(DAY);
  await add(first.store, 'resp_1', 'old').saved;
  await first.journal.close();
  for (let i = 0; i < 4; i++) {
    now += DAY / 5;
    const { store, journal } = await open(DAY);
    expect(summarize(store)).toEqual(['response resp_1 a']);
    await journal.close();
  }
  now += DAY / 5 + 1;
  expect(summarize((await open(DAY)).store)).toEqual([]);
});

describe('a response that is only read', () => {
  const HOUR = 3_600_000;
  const countLines = async (): Promise<number> =>
    (await readFile(join(folder, 'responses.jsonl'), 'utf8')).split('\n').filter((line) => line.includes('"t":"response"'))
      .length;

  test('is kept after a restart for as long as without one', async () => {
    const first = await open(DAY);
    await add(first.store, 'resp_1', 'read').saved;
    await add(first.store, 'resp_2', 'forgotten').saved;
    now += DAY - 1;
    expect(first.store.use('resp_1', 'a')).toBe(true);
    await first.journal.close();
    now += DAY - 1;
    const second = await open(DAY);
    expect(summarize(second.store)).toEqual(['response resp_1 a']);
    // What a restart has read is not new.
    now += 2;
    await second.journal.close();
    const third = await open(DAY);
    expect(summarize(third.store)).toEqual([]);
    await third.journal.close();
  });

  test.each([
    [30 * DAY, HOUR],
    [12 * HOUR, HOUR / 2],
  ])('with a retention of %d ms is written at most every %d ms', async (retentionMs, everyMs) => {
    const { store, journal } = await open(retentionMs);
    await add(store, 'resp_1', 'read').saved;
    for (let second = 0; second < 5000; second++) {
      now += everyMs / 1000;
      store.find('response', 'resp_1', 'a');
      await journal.flush();
    }
    expect(await countLines()).toBe(1 + 5);
    await journal.close();
  });

  test('while it is in progress is not written', async () => {
    const { store, journal } = await open();
    const entry = createResponseEntry({ id: 'resp_1', caller: 'a', holder: '', body: '{}', turn: undefined });
    entry.events = { frames: [], isEnded: false, watch: () => () => undefined, cancel: () => false };
    await store.put(entry);
    now += 2 * HOUR;
    store.find('response', 'resp_1', 'a');
    await journal.flush();
    expect(await countLines()).toBe(0);
    await journal.close();
  });
});

test('what is older than the retention leaves the file while the gateway runs', async () => {
  const { store, journal } = await open(DAY);
  await add(store, 'resp_1', 'private text').saved;
  await add(store, 'resp_2', 'deleted text').saved;
  const deleted = store.find('response', 'resp_2', 'a');
  if (deleted) store.remove(deleted);
  runTimer();
  await journal.flush();
  const file = join(folder, 'responses.jsonl');
  expect(await readFile(file, 'utf8')).toContain('private text');
  expect(await readFile(file, 'utf8')).not.toContain('deleted text');
  now += DAY + 1;
  runTimer();
  await journal.flush();
  expect(await readFile(file, 'utf8')).toBe('');
  await add(store, 'resp_3', 'later').saved;
  await journal.close();
  expect(summarize((await open(DAY)).store)).toEqual(['response resp_3 a']);
});

test('separators of lines in a text do not end a line of the file', async () => {
  const text = 'a\u2028b\u2029c\u0085d\r\ne\rf';
  const first = await open();
  const { turn, saved } = add(first.store, 'resp_1', text);
  await saved;
  await first.journal.close();
  const second = await open();
  expect(second.store.find('response', 'resp_1', 'a')?.turn?.input).toBe(turn.input);
  await second.journal.close();
});

test('the file is bounded under 10,000 changes, and has all that is kept', async () => {
  const { store, journal } = await open(30 * DAY, 50_000);
  let largest = 0;
  for (let i = 0; i < 10_000; i++) {
    const { saved } = add(store, `resp_${i}`, 'x'.repeat(100));
    const old = store.find('response', `resp_${i - 20}`, 'a');
    if (old) store.remove(old);
    if (i % 10 > 0) continue;
    await saved;
    largest = Math.max(largest, (await stat(join(folder, 'responses.jsonl'))).size);
  }
  await journal.flush();
  // Twice the file after a rewrite and 50 kB, and what arrives while it is rewritten.
  expect(largest).toBeLessThan(100_000);
  await journal.close();
  const second = await open();
  expect(summarize(second.store)).toEqual(summarize(store));
  expect(second.store.size).toBe(20);
  await second.journal.close();
});

test('what is older than the retention is gone', async () => {
  const first = await open(DAY);
  await add(first.store, 'resp_1', 'old').saved;
  now += DAY - 1;
  await add(first.store, 'resp_2', 'new').saved;
  await first.journal.close();
  now += 2;
  const second = await open(DAY);
  expect(summarize(second.store)).toEqual(['response resp_2 a']);
  await second.journal.close();
});

describe('a crash', () => {
  test('at any byte of the file leaves all that was complete before', async () => {
    const first = await open();
    await add(first.store, 'resp_1', 'one').saved;
    const whole = (await readFile(join(folder, 'responses.jsonl'))).length;
    await add(first.store, 'resp_2', 'two').saved;
    await first.journal.close();
    const bytes = await readFile(join(folder, 'responses.jsonl'));
    for (let cut = whole; cut < bytes.length; cut += 13) {
      await writeFile(join(folder, 'responses.jsonl'), bytes.subarray(0, cut));
      const { store, journal } = await open();
      expect(summarize(store)).toContain('response resp_1 a');
      await journal.close();
    }
  });

  test('that leaves a conversation without its beginning leaves none of it', async () => {
    const first = await open();
    const one = add(first.store, 'resp_1', 'one');
    await add(first.store, 'resp_2', 'two', one.turn).saved;
    await first.journal.close();
    const file = join(folder, 'responses.jsonl');
    const lines = (await readFile(file, 'utf8')).split('\n').filter((line) => !line.includes('"t":"turn","key":"turn_resp_1"'));
    await writeFile(file, lines.join('\n'));
    const second = await open();
    expect(summarize(second.store)).toEqual([]);
    await second.journal.close();
  });

  test('of the disk is reported, and responses stay in memory', async () => {
    const { store, journal } = await open();
    await journal.close();
    await add(store, 'resp_1', 'one').saved;
    expect(failures).toHaveLength(1);
    expect(store.find('response', 'resp_1', 'a')).toBeDefined();
  });
});
