import { cpSync, existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { REAL_CLOCK } from '../../src/http/clock.ts';
import { openJournal } from '../../src/responses/journal.ts';
import { createResponseEntry } from '../../src/responses/request-state.ts';
import { createTurn, ResponseStore, type Turn } from '../../src/responses/store.ts';

// The process may end before and after any operation on the files. What was on disk before is there at the next start.

const disk = vi.hoisted(() => ({ onStep: (_step: string): void => undefined, open: new Map<object, string>() }));

vi.mock('node:fs/promises', async (importOriginal) => {
  const real = await importOriginal<typeof import('node:fs/promises')>();
  const around = async <T>(step: string, run: () => Promise<T>): Promise<T> => {
    disk.onStep(`before ${step}`);
    const result = await run();
    disk.onStep(`after ${step}`);
    return result;
  };
  return {
    ...real,
    rename: (from: string, to: string) => around('rename', () => real.rename(from, to)),
    open: async (path: string, flags: string, mode?: number) => {
      const handle = await around('open', () => real.open(path, flags, mode));
      disk.open.set(handle, path);
      const { appendFile, close, datasync } = handle;
      handle.close = async () => {
        await close.call(handle);
        disk.open.delete(handle);
      };
      handle.appendFile = (data) => around('append', () => appendFile.call(handle, data));
      handle.datasync = () => around('sync', () => datasync.call(handle));
      return handle;
    },
  };
});

let folder: string;
let copies: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-crash-'));
  copies = await mkdtemp(join(tmpdir(), 'sluice-copies-'));
});

afterEach(async () => {
  disk.onStep = () => undefined;
  await rm(folder, { recursive: true });
  await rm(copies, { recursive: true });
});

async function open(place: string) {
  const store = new ResponseStore({ ttlMs: 1e9, maxBytes: 1e8, maxBytesPerKey: 1e8 }, REAL_CLOCK);
  const failures: string[] = [];
  const onFailure = (reason: string): void => void failures.push(reason);
  const options = { folder: place, retentionMs: 1e9, clock: REAL_CLOCK, wallClock: Date.now, onFailure };
  return { store, journal: await openJournal(store, options), failures };
}

function add(store: ResponseStore, id: string, size: number, parent?: Turn): { turn: Turn; saved: Promise<void> | undefined } {
  const turn = createTurn({ key: `turn_${id}`, parent, input: 'x'.repeat(size), body: '{}', ids: [], holder: '' });
  return { turn, saved: store.put(createResponseEntry({ id, caller: 'a', holder: '', body: '', turn })) };
}

const list = (store: ResponseStore): string[] => [...store.entries].map(({ id }) => id).sort();

test('a crash at any step of a rewrite loses nothing that was saved, and keeps nothing that was removed before', async () => {
  const { store, journal, failures } = await open(folder);
  // Three slices and more.
  const turns: Turn[] = [];
  for (let i = 0; i < 8; i++) {
    const { turn, saved } = add(store, `old_${i}`, 500_000, turns[0]);
    turns.push(turn);
    await saved;
  }
  const removed = store.find('response', 'old_7', 'a');
  if (removed) store.remove(removed);
  await journal.flush();

  const steps: { step: string; at: string; saved: string[]; gone: string[] }[] = [];
  const saved = list(store);
  const gone = ['old_7'];
  let count = 0;
  disk.onStep = (step) => {
    const at = join(copies, String(steps.length));
    cpSync(folder, at, { recursive: true });
    steps.push({ step, at, saved: [...saved], gone: [...gone] });
    // Other requests change the store at every step.
    if (count >= 12) return;
    const id = `new_${count++}`;
    void add(store, id, 10, turns[count % turns.length]).saved?.then(() => saved.push(id));
    const old = count === 5 ? store.find('response', 'old_1', 'a') : undefined;
    if (old) {
      saved.splice(saved.indexOf('old_1'), 1);
      store.remove(old);
    }
  };
  journal.sweep();
  await journal.flush();
  disk.onStep = () => undefined;
  expect(failures).toEqual([]);
  const after = list(store);
  expect(after).toHaveLength(6 + 12);
  await journal.close();

  expect(steps.map(({ step }) => step)).toEqual(expect.arrayContaining(['before rename', 'after rename', 'before append']));
  expect(steps.length).toBeGreaterThan(20);
  for (const { step, at, saved: expected, gone: without } of steps) {
    const copy = await open(at);
    const found = list(copy.store);
    expect(found, step).toEqual(expect.arrayContaining(expected));
    for (const id of without) expect(found, step).not.toContain(id);
    for (const entry of copy.store.entries) expect(entry, step).toMatchObject({ turn: { body: '{}' } });
    await copy.journal.close();
  }
  const last = await open(folder);
  expect(list(last.store)).toEqual(after);
  expect(last.store.find('response', 'new_1', 'a')?.turn?.parent?.key).toBe('turn_old_2');
  await last.journal.close();
});

test('neither file is open while one replaces the other, which Windows would refuse', async () => {
  const { store, journal, failures } = await open(folder);
  await add(store, 'one', 10).saved;
  const one = store.find('response', 'one', 'a');
  if (one) store.remove(one);
  await journal.flush();
  const during: string[][] = [];
  disk.onStep = (step) => {
    if (step.endsWith('rename')) during.push([...disk.open.values()]);
  };
  journal.sweep();
  await journal.flush();
  expect(during).toEqual([[], []]);
  await add(store, 'two', 10).saved;
  await journal.close();
  expect([...disk.open.values()]).toEqual([]);
  expect(failures).toEqual([]);
});

test('a rewrite that fails leaves the file as it was, and changes are written to it', async () => {
  const { store, journal, failures } = await open(folder);
  await add(store, 'one', 10).saved;
  const { saved } = add(store, 'two', 10);
  await saved;
  const two = store.find('response', 'two', 'a');
  if (two) store.remove(two);
  await journal.flush();
  disk.onStep = (step) => {
    if (step === 'before rename') throw new Error('no space left');
  };
  journal.sweep();
  await journal.flush();
  disk.onStep = () => undefined;
  expect(failures).toEqual(['no space left']);
  expect(existsSync(join(folder, 'responses.jsonl.new'))).toBe(false);
  await add(store, 'three', 10).saved;
  await journal.close();
  const next = await open(folder);
  expect(list(next.store)).toEqual(['one', 'three']);
  await next.journal.close();
});

test('what could not be written is written with the next rewrite', async () => {
  const { store, journal, failures } = await open(folder);
  disk.onStep = (step) => {
    if (step === 'before append') throw new Error('no space left');
  };
  const { turn, saved } = add(store, 'one', 10);
  await saved;
  disk.onStep = () => undefined;
  await add(store, 'two', 10, turn).saved;
  expect(failures).toEqual(['no space left']);
  journal.sweep();
  await journal.flush();
  await journal.close();
  const next = await open(folder);
  expect(list(next.store)).toEqual(['one', 'two']);
  await next.journal.close();
});
