import { copyFileSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openStore } from '../../src/store/index.ts';
import { listFiles } from '../../src/store/sqlite/folder.ts';
import { countDroppedPages } from '../../src/store/sqlite/write-ahead-log.ts';
import { createFolder } from './ledger-fixture.ts';

const ROWS = 30;

/** The files that a gateway which is killed leaves behind. */
async function leaveUnclean(): Promise<{ folder: string; wal: string }> {
  const running = createFolder();
  const folder = createFolder();
  const store = await openStore({ folder: running, ballastBytes: 0 });
  for (let i = 0; i < ROWS; i++) {
    await store.openExchange({ id: `e${String(i).padStart(3, '0')}`, ts: i });
    await store.flush();
  }
  for (const suffix of ['', '-wal'])
    copyFileSync(`${listFiles(running).database}${suffix}`, `${listFiles(folder).database}${suffix}`);
  await store.close();
  return { folder, wal: `${listFiles(folder).database}-wal` };
}

const flip =
  (from: number, every = 3) =>
  (file: string) => {
    const bytes = readFileSync(file);
    for (let at = from; at < bytes.length; at += every) bytes[at] = ~(bytes[at] ?? 0) & 0xff;
    writeFileSync(file, bytes);
  };

/** Opens the folder as the next gateway does. Returns how many rows it has, and what it says of its log. */
async function reopen(folder: string): Promise<{ rows: number; dropped: number[] }> {
  const dropped: number[] = [];
  const store = await openStore({ folder, ballastBytes: 0, onDroppedPages: (pages) => dropped.push(pages) });
  const { exchanges } = await store.list({ limit: 100 });
  await store.close();
  return { rows: exchanges.length, dropped };
}

test('a log that is not damaged loses no row, and nothing is reported', async () => {
  const { folder } = await leaveUnclean();
  expect(await reopen(folder)).toEqual({ rows: ROWS, dropped: [] });
  // The end in order leaves no log.
  expect(await reopen(folder)).toEqual({ rows: ROWS, dropped: [] });
});

test.each([
  ['everywhere', flip(40)],
  ['in its header', flip(8, 1 << 30)],
  ['in its middle', (file: string) => flip(Math.floor(statSync(file).size / 2), 1 << 30)(file)],
])('rows that a log damaged %s has lost are reported', async (_, damage) => {
  const { folder, wal } = await leaveUnclean();
  damage(wal);
  const { rows, dropped } = await reopen(folder);
  expect(rows).toBeLessThan(ROWS);
  expect(dropped).toHaveLength(1);
  expect(dropped[0]).toBeGreaterThan(0);
});

test('the page that a killed process was writing is no loss', async () => {
  const { wal } = await leaveUnclean();
  const bytes = readFileSync(wal);
  // The head of a page is written before the page.
  writeFileSync(wal, bytes.fill(0, bytes.length - bytes.readUInt32BE(8)));
  expect(countDroppedPages(wal)).toBe(0);
});

test('pages from before the log began again are no loss', async () => {
  const folder = createFolder();
  const store = await openStore({ folder, ballastBytes: 0 });
  const wal = `${listFiles(folder).database}-wal`;
  // Many checkpoints: each begins the log again over the pages of the one before.
  for (let i = 0; i < 3000; i++) void store.openExchange({ id: `e${i}`, ts: i, user_agent: 'x'.repeat(150) });
  await store.flush();
  const copy = join(createFolder(), 'sluice.db-wal');
  copyFileSync(wal, copy);
  expect(countDroppedPages(copy)).toBe(0);
  await store.close();
});

test.each([0, 1, 31, 32, 40])('a log of %d bytes has no page', async (bytes) => {
  const { wal } = await leaveUnclean();
  truncateSync(wal, bytes);
  expect(countDroppedPages(wal)).toBe(0);
});

test('there is no log after an end in order', () => {
  expect(countDroppedPages(join(createFolder(), 'sluice.db-wal'))).toBe(0);
});
