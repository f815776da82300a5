import type { PathLike } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { SecretRegistry } from '../../src/config/secrets.ts';
import { LiveConfig } from '../../src/config/watch.ts';

/** What the next reads of the file find, instead of what is on disk; the last entry repeats. */
const reads = vi.hoisted(() => ({ next: [] as (string | Error)[], count: 0 }));

vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof import('node:fs/promises')>();
  const readFile = async (path: PathLike): Promise<string> => {
    const found = reads.next.length > 1 ? reads.next.shift() : reads.next[0];
    reads.count++;
    if (found instanceof Error) throw found;
    return found ?? real.readFile(path, 'utf8');
  };
  return { ...real, readFile };
});

const port = (number: number): string => `listen: { port: ${number} }\n`;
const gone = Object.assign(new Error('ENOENT: no such file'), { code: 'ENOENT' });

let folder: string;
let config: LiveConfig;
let ports: number[];
let rejections: string[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-'));
  const file = join(folder, 'sluice.yaml');
  await writeFile(file, port(1));
  [ports, rejections] = [[], []];
  config = await LiveConfig.open({
    file,
    env: {},
    secrets: new SecretRegistry(),
    onReload: ({ listen }) => ports.push(listen.port),
    onRefused: ({ message }) => rejections.push(message),
    quietMs: 60_000,
    pollMs: 60_000,
    stableMs: 1,
  });
});

afterEach(async () => {
  config.close();
  reads.next = [];
  await rm(folder, { recursive: true });
});

test.each<[string, (string | Error)[]]>([
  ['is empty', ['', port(2)]],
  ['is cut', [port(2).slice(0, 9), port(2).slice(0, 12), port(2)]],
  ['has a valid first half', [port(3), `${port(3)}bad`, port(2)]],
  ['is absent', [gone, port(2)]],
  ['comes and goes', [port(3), gone, port(3), '', port(2)]],
])('a file that %s while it is written is used when two reads are equal', async (_, texts) => {
  reads.next = texts;
  await config.reload();
  expect(ports).toEqual([2]);
  expect(rejections).toEqual([]);
});

test('a file that keeps changing is rejected after a bounded number of reads, and used when it stops', async () => {
  reads.next = Array.from({ length: 1000 }, (_, i) => port(i + 2));
  reads.count = 0;
  await config.reload();
  expect(reads.count).toBeLessThan(50);
  expect(rejections).toEqual([expect.stringContaining('keeps changing')]);
  expect(ports).toEqual([]);
  reads.next = [port(2)];
  await config.reload();
  expect(ports).toEqual([2]);
});

test('requests to reload that come while one waits its turn share one read', async () => {
  reads.next = [port(2)];
  const first = config.reload();
  await vi.waitFor(() => expect(reads.count).toBeGreaterThan(0), { timeout: 30_000 });
  await Promise.all([first, ...Array.from({ length: 100 }, () => config.reload())]);
  expect(ports).toEqual([2, 2]);
});
