import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Clock, REAL_CLOCK } from '../../src/http/clock.ts';
import { openJournal, removeJournal } from '../../src/responses/journal.ts';
import { createResponseEntry } from '../../src/responses/request-state.ts';
import { ResponseStore } from '../../src/responses/store.ts';
import { createField, createTurn, type Turn } from '../../src/responses/turns.ts';
import { TestClock } from '../gateway/test-clock.ts';

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

async function open(place: string, clock: Clock = REAL_CLOCK) {
  const store = new ResponseStore({ ttlMs: 1e9, maxBytes: 1e8, maxBytesPerKey: 1e8 }, clock);
  const failures: string[] = [];
  const onFailure = (reason: string): void => void failures.push(reason);
  const onRecovered = (): void => void failures.push('recovered');
  const options = { folder: place, retentionMs: 1e9, clock, wallClock: Date.now, onFailure, onRecovered };
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

const fill = (): void => {
  disk.onStep = (step) => {
    if (step === 'before append') throw new Error('no space left');
  };
};

const empty = (): void => {
  disk.onStep = () => undefined;
};

test('what could not be written is written as soon as the disk has room, though nothing else changes', async () => {
  const clock = new TestClock();
  const { store, journal, failures } = await open(folder, clock);
  const { saved } = add(store, 'one', 10);
  await saved;
  fill();
  await add(store, 'two', 10).saved;
  await journal.flush();
  // At once, after 1 s, and 2 s later.
  expect(failures).toHaveLength(2);
  await clock.advance(1000);
  await journal.flush();
  expect(failures).toHaveLength(3);
  empty();
  await clock.advance(1999);
  await journal.flush();
  expect(failures).toHaveLength(3);
  await clock.advance(1);
  await journal.flush();
  expect(failures.at(-1)).toBe('recovered');
  cpSync(folder, join(copies, 'now'), { recursive: true });
  const next = await open(join(copies, 'now'));
  expect(list(next.store)).toEqual(['one', 'two']);
  await next.journal.close();
  await journal.close();
});

test('what follows a turn that could not be written is there after a crash, with that turn', async () => {
  const { store, journal } = await open(folder, new TestClock());
  const one = add(store, 'one', 10);
  await one.saved;
  fill();
  const two = add(store, 'two', 10, one.turn);
  await two.saved;
  await journal.flush();
  empty();
  const three = add(store, 'three', 10, two.turn);
  await three.saved;
  await add(store, 'four', 10, three.turn).saved;
  cpSync(folder, join(copies, 'now'), { recursive: true });
  const next = await open(join(copies, 'now'));
  const kept = next.store.find('response', 'four', 'a')?.turn;
  expect([kept, kept?.parent, kept?.parent?.parent].map((turn) => turn?.key)).toEqual(['turn_four', 'turn_three', 'turn_two']);
  expect(list(next.store)).toEqual(expect.arrayContaining(['one', 'three', 'four']));
  await next.journal.close();
  await journal.close();
});

test('what could not be written is written before the gateway stops', async () => {
  const { store, journal } = await open(folder, new TestClock());
  fill();
  await add(store, 'one', 10).saved;
  await journal.flush();
  empty();
  await journal.close();
  const next = await open(folder);
  expect(list(next.store)).toEqual(['one']);
  await next.journal.close();
});

test('what the file has is not written to it again', async () => {
  const { store, journal } = await open(folder);
  const fields = [createField('tools', JSON.stringify('x'.repeat(10_000)))];
  const first = createTurn({ key: 'turn_1', parent: undefined, input: '[]', body: '{}', fields, ids: [], holder: '' });
  await store.put(createResponseEntry({ id: 'r1', caller: 'a', holder: '', body: '', turn: first }));
  const second = createTurn({ key: 'turn_2', parent: first, input: '[]', body: '{}', fields, ids: [], holder: '' });
  await store.put(createResponseEntry({ id: 'r2', caller: 'a', holder: '', body: '', turn: second }));
  await journal.close();
  expect((await stat(join(folder, 'responses.jsonl'))).size).toBeLessThan(12_000);
  const next = await open(folder);
  expect(next.store.find('response', 'r2', 'a')?.turn).toMatchObject({ fields, parent: { key: 'turn_1', fields } });
  expect(next.store.bytesOf('a')).toBe(store.bytesOf('a'));
  await next.journal.close();
});

describe('two gateways with one folder', () => {
  test('do not write the same file', async () => {
    const { store, journal } = await open(folder);
    await add(store, 'one', 10).saved;
    await expect(open(folder)).rejects.toThrow(/another gateway keeps its responses in the data folder/);
    await removeJournal(folder);
    await add(store, 'two', 10).saved;
    await journal.close();
    const next = await open(folder);
    expect(list(next.store)).toEqual(['one', 'two']);
    await next.journal.close();
    await removeJournal(folder);
    expect(existsSync(join(folder, 'responses.jsonl'))).toBe(false);
  });

  test('of which one was killed: the other starts', async () => {
    const code = `
      const { DatabaseSync } = require('@photostructure/sqlite');
      const db = new DatabaseSync(${JSON.stringify(join(folder, 'responses.lock'))});
      db.exec('BEGIN EXCLUSIVE');
      process.stdout.write('locked');
      setInterval(() => {}, 1e6);`;
    const child = spawn(process.execPath, ['-e', code], { cwd: import.meta.dirname });
    await once(child.stdout, 'data');
    await expect(open(folder)).rejects.toThrow(/another gateway/);
    child.kill('SIGKILL');
    await once(child, 'exit');
    await (await open(folder)).journal.close();
  });
});
