import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { createNodeIo } from '../src/terminal/io.ts';

const folder = mkdtempSync(join(tmpdir(), 'sluice-'));
afterAll(() => rmSync(folder, { recursive: true }));

const bytes = (text: string) => new TextEncoder().encode(text);

describe('a file of --out', () => {
  const { createFile, makeDirectory } = createNodeIo();

  test('replaces the previous file when it is complete', async () => {
    const path = join(folder, 'a');
    writeFileSync(path, 'before');
    const file = await createFile(path);
    await file.write(bytes('one '));
    await file.write(bytes('two'));
    expect(readFileSync(path, 'utf8')).toBe('before');
    await file.commit();
    expect(readFileSync(path, 'utf8')).toBe('one two');
  });

  test('is readable by its owner only, also if it replaces another', async () => {
    const made = join(folder, 'made');
    await makeDirectory(made);
    expect(statSync(made).mode & 0o777).toBe(0o700);
    const path = join(made, 'open');
    const left = `${path}.${process.pid}.part`; // of a process that had the same number and was killed
    for (const name of [path, left]) writeFileSync(name, 'before', { mode: 0o644 });
    const file = await createFile(path);
    expect(statSync(left).mode & 0o777).toBe(0o600);
    await file.write(bytes('after'));
    await file.commit();
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test('leaves no file when it is abandoned', async () => {
    const deep = join(folder, 'b', 'c');
    await makeDirectory(deep);
    await makeDirectory(deep);
    const file = await createFile(join(deep, 'x'));
    await file.write(bytes('half'));
    await file.discard();
    expect(readdirSync(deep)).toEqual([]);
  });

  test('fails if the directory does not exist', async () => {
    await expect(createFile(join(folder, 'gone', 'x'))).rejects.toMatchObject({ code: 'ENOENT' });
    expect(existsSync(join(folder, 'gone'))).toBe(false);
  });
});

test('a folder is listed recursively without hidden files', async () => {
  const { listFolder, makeDirectory } = createNodeIo();
  const deep = join(folder, 'list', 'z');
  await makeDirectory(deep);
  await makeDirectory(join(folder, 'list', '.git'));
  for (const name of ['list/b', 'list/.hidden', 'list/.git/x', 'list/z/a']) writeFileSync(join(folder, name), '');
  expect(await listFolder(join(folder, 'list'))).toEqual([join(folder, 'list/b'), join(deep, 'a')]);
  expect(await listFolder(join(folder, 'list/b'))).toBeUndefined();
  expect(await listFolder(join(folder, 'gone'))).toBeUndefined();
});

test('work is counted', () => {
  const { cpuTime } = createNodeIo();
  const before = cpuTime();
  for (let at = 0; at < 1e6; at++) JSON.parse('[1]');
  expect(cpuTime()).toBeGreaterThan(before);
});
