import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { openStore } from '../../src/store/index.ts';
import { findDefaultFolder } from '../../src/store/location.ts';
import {
  createBallast,
  FolderLock,
  findHolder,
  freeBallast,
  listFiles,
  prepareFolder,
  readOwner,
} from '../../src/store/sqlite/folder.ts';
import { createFolder } from './ledger-fixture.ts';
import { assertBuilt, runScript } from './processes.ts';

beforeAll(assertBuilt);

describe('the default folder', () => {
  test.each([
    [{ HOME: '/home/u' }, 'linux', '/home/u/.local/share/sluice'],
    [{ HOME: '/home/u', XDG_DATA_HOME: '/data' }, 'linux', '/data/sluice'],
    [{ HOME: '/home/u', XDG_DATA_HOME: 'relative' }, 'linux', '/home/u/.local/share/sluice'],
    [{ HOME: '/home/u', XDG_DATA_HOME: '' }, 'linux', '/home/u/.local/share/sluice'],
    [{ XDG_DATA_HOME: '/data' }, 'linux', '/data/sluice'],
    [{ XDG_DATA_HOME: 'relative' }, 'linux', 'memory'],
    [{ HOME: '' }, 'linux', 'memory'],
    [{ HOME: '/home/u', XDG_DATA_HOME: '/data' }, 'darwin', '/data/sluice'],
    [{ HOME: '/home/u' }, 'darwin', '/home/u/Library/Application Support/sluice'],
    [{ LOCALAPPDATA: 'C:\\Users\\u\\AppData\\Local' }, 'win32', 'C:\\Users\\u\\AppData\\Local\\sluice'],
    [{ HOME: '/c/Users/u', USERPROFILE: 'C:\\Users\\u' }, 'win32', 'C:\\Users\\u\\AppData\\Local\\sluice'],
    [{ XDG_DATA_HOME: 'D:\\data', LOCALAPPDATA: 'C:\\local' }, 'win32', 'D:\\data\\sluice'],
    [{ HOME: '/c/Users/u' }, 'win32', 'memory'],
  ] as const)('%j on %s is %s', (env, platform, expected) => {
    expect(findDefaultFolder(env, platform)).toBe(expected);
  });
});

describe('files', () => {
  test('a missing folder is created, and only its user can read what is in it', async () => {
    const folder = join(createFolder(), 'a', 'b');
    const store = await openStore({ folder, ballastBytes: 1000 });
    await store.openExchange({ id: '1', ts: 1 });
    await store.list();
    expect((statSync(folder).mode & 0o777).toString(8)).toBe('700');
    const files = readdirSync(folder);
    expect(files).toEqual(expect.arrayContaining(['sluice.db', 'sluice.db-wal', 'owner.lock', 'owner.json', 'ballast']));
    for (const file of files) expect([file, (statSync(join(folder, file)).mode & 0o777).toString(8)]).toEqual([file, '600']);
    await store.close();
  });

  test('the mode of a folder that exists is left alone', () => {
    const folder = createFolder();
    chmodSync(folder, 0o750);
    prepareFolder(folder);
    expect(statSync(folder).mode & 0o777).toBe(0o750);
  });

  test('a folder that cannot be created gives an error to act on', async () => {
    const file = join(createFolder(), 'file');
    writeFileSync(file, '');
    await expect(openStore({ folder: join(file, 'data') })).rejects.toMatchObject({
      code: 'not_writable',
      message: `data folder "${join(file, 'data')}" is not writable (ENOTDIR); change its permissions or set another folder`,
    });
  });

  test('a folder on a read-only file system gives the same error', async () => {
    await expect(openStore({ folder: '/proc/sluice' })).rejects.toMatchObject({ code: 'not_writable' });
  });

  test('a database that is not one gives an error', async () => {
    const folder = createFolder();
    writeFileSync(join(folder, 'sluice.db'), 'x'.repeat(5000));
    await expect(openStore({ folder })).rejects.toMatchObject({ code: 'damaged' });
  });
});

describe('ownership', () => {
  const OWN = `const store = await openStore({ folder: args[0], boot: 'other-boot', ballastBytes: 0 });
    await store.openExchange({ id: 'theirs', ts: 1 }); console.log('ready'); setInterval(() => {}, 1000);`;

  test('a second gateway is refused by name, and takes over when the first is dead', async () => {
    const folder = createFolder();
    const other = runScript(OWN, folder);
    await other.printed('ready');
    const refusal = `data folder "${folder}" is in use by process ${other.child.pid} on host`;
    await expect(openStore({ folder })).rejects.toThrow(refusal);
    await expect(openStore({ folder })).rejects.toMatchObject({
      code: 'owned',
      message: expect.stringContaining('boot other-boot, last heartbeat'),
    });
    other.child.kill('SIGKILL');
    await other.ended;
    expect(readOwner(folder)?.boot, 'the dead owner left its file').toBe('other-boot');
    const store = await openStore({ folder, ballastBytes: 0 });
    expect(readOwner(folder)?.boot).toBe(store.boot);
    expect(store.status().crashed_exchanges).toBe(1);
    await store.close();
    expect(readOwner(folder)).toBeUndefined();
  });

  test('a frozen owner keeps its folder, because it may go on', async () => {
    const folder = createFolder();
    const other = runScript(OWN, folder);
    await other.printed('ready');
    other.child.kill('SIGSTOP');
    const old = { ...readOwner(folder), heartbeat_ts: 0 };
    writeFileSync(join(folder, 'owner.json'), JSON.stringify(old));
    await expect(openStore({ folder })).rejects.toMatchObject({ code: 'owned' });
    other.child.kill('SIGKILL');
    await other.ended;
  });

  test('two stores of one process cannot share a folder', async () => {
    const folder = createFolder();
    const store = await openStore({ folder, ballastBytes: 0 });
    await expect(openStore({ folder })).rejects.toMatchObject({ code: 'owned' });
    await store.close();
    await (await openStore({ folder, ballastBytes: 0 })).close();
  });

  test('the heartbeat is renewed', () => {
    const folder = createFolder();
    prepareFolder(folder);
    const lock = FolderLock.take(folder, 'me', 1000);
    lock.beat(2000);
    expect(readOwner(folder)).toMatchObject({ boot: 'me', pid: process.pid, started_ts: 1000, heartbeat_ts: 2000 });
    lock.release();
  });

  test.each<[string, (folder: string) => void, object]>([
    ['a folder that does not exist', (folder) => rmSync(folder, { recursive: true }), { state: 'free' }],
    ['an empty folder', () => undefined, { state: 'free' }],
    ['a folder that was used', (folder) => FolderLock.take(folder, 'me', 0).release(), { state: 'free' }],
    ['a lock with other content', (folder) => writeFileSync(listFiles(folder).lock, 'x'.repeat(100_000)), { state: 'free' }],
    ['a lock that is a folder', (folder) => mkdirSync(listFiles(folder).lock), { state: 'unknown', code: 'not a file' }],
    [
      'the file of a dead owner',
      (folder) => writeFileSync(listFiles(folder).owner, JSON.stringify({ boot: 'b', pid: process.pid })),
      { state: 'free' },
    ],
  ])('the holder of %s', (_, prepare, expected) => {
    const folder = createFolder();
    prepare(folder);
    expect(findHolder(folder)).toEqual(expected);
  });

  test('the holder of a locked folder has its address after it was announced, also beside a reader', () => {
    const folder = createFolder();
    const lock = FolderLock.take(folder, 'me', 1000);
    expect(findHolder(folder)).toMatchObject({ state: 'held', owner: { boot: 'me', pid: process.pid } });
    lock.announce('http://127.0.0.1:5000', 2000);
    expect(findHolder(folder)).toMatchObject({ state: 'held', owner: { url: 'http://127.0.0.1:5000', heartbeat_ts: 2000 } });
    expect(() => FolderLock.take(folder, 'other', 3000), 'looking does not end the lock').toThrow('is in use by process');
    lock.release();
    expect(findHolder(folder)).toEqual({ state: 'free' });
  });

  test.each(['', '{', 'null', '{"boot":1}'])('a damaged owner file is ignored: %s', (text) => {
    const folder = createFolder();
    writeFileSync(join(folder, 'owner.json'), text);
    expect(readOwner(folder)).toBeUndefined();
  });
});

describe('ballast', () => {
  test('is written in full, freed once and created again', () => {
    const folder = createFolder();
    expect(createBallast(folder, 3_000_000)).toBe(true);
    expect(statSync(join(folder, 'ballast')).size).toBe(3_000_000);
    expect(statSync(join(folder, 'ballast')).blocks * 512, 'it really takes the space').toBeGreaterThanOrEqual(3_000_000);
    expect([freeBallast(folder), freeBallast(folder), createBallast(folder, 10)]).toEqual([true, false, true]);
    expect(readFileSync(join(folder, 'ballast')).length).toBe(10);
  });

  test('is not written when it would take a large part of the free space', () => {
    const folder = createFolder();
    mkdirSync(folder, { recursive: true });
    expect(createBallast(folder, 1e15)).toBe(false);
  });
});
