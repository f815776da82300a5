import { mkdir, mkdtemp, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { quietFor } from '../../../../test/wait.ts';
import type { GatewayState } from '../../src/config/resolve.ts';
import { SecretRegistry } from '../../src/config/secrets.ts';
import { LiveConfig, readConfig, type WatchOptions } from '../../src/config/watch.ts';

let folder: string;
let file: string;
let live: LiveConfig | undefined;
let reloads: GatewayState[];
let restarts: (readonly string[])[];
let refusals: string[];

const port = (number: number): string => `listen: { port: ${number} }\n`;

async function open(options: Partial<WatchOptions> = {}): Promise<LiveConfig> {
  live = await LiveConfig.open({
    file,
    env: {},
    secrets: new SecretRegistry(),
    onReload: (state, restart) => {
      reloads.push(state);
      restarts.push(restart);
    },
    onRefused: ({ message }) => refusals.push(message),
    quietMs: 20,
    pollMs: 50,
    stableMs: 10,
    ...options,
  });
  return live;
}

/** Five times as long as it takes to notice a change. */
const settled = (): Promise<void> => quietFor(250);

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-'));
  file = join(folder, 'sluice.yaml');
  await writeFile(file, port(1));
  [reloads, restarts, refusals] = [[], [], []];
});

afterEach(async () => {
  live?.close();
  live = undefined;
  await rm(folder, { recursive: true });
});

/** The ways in which a file comes to be another one. */
const EDITORS: [string, (text: string) => Promise<void>][] = [
  ['writes in place', (text) => writeFile(file, text)],
  [
    'writes beside it and renames',
    async (text) => {
      await writeFile(`${file}.tmp`, text);
      await rename(`${file}.tmp`, file);
    },
  ],
  [
    'moves the old one away first',
    async (text) => {
      await rename(file, `${file}~`);
      await writeFile(file, text);
    },
  ],
  [
    'removes it first',
    async (text) => {
      await unlink(file);
      await writeFile(file, text);
    },
  ],
  [
    'empties it first',
    async (text) => {
      await writeFile(file, '');
      await writeFile(file, text);
    },
  ],
];

test.each(EDITORS)('an editor that %s', async (_, edit) => {
  const config = await open();
  const before = config.current;
  await edit(port(2));
  await vi.waitFor(() => expect(config.current.listen.port).toBe(2), { timeout: 30_000 });
  // Who holds the old state keeps it.
  expect(before.listen.port).toBe(1);
  expect(reloads).toEqual([config.current]);
  await edit(port(3));
  await vi.waitFor(() => expect(config.current.listen.port).toBe(3), { timeout: 30_000 });
});

test('a Kubernetes volume, a replaced symlink to a symlink, is reloaded', async () => {
  const place = async (name: string, number: number): Promise<void> => {
    await mkdir(join(folder, name));
    await writeFile(join(folder, name, 'sluice.yaml'), port(number));
    await symlink(name, join(folder, '..data_tmp'));
    await rename(join(folder, '..data_tmp'), join(folder, '..data'));
  };
  await place('..1', 1);
  await unlink(file);
  await symlink(join('..data', 'sluice.yaml'), file);
  const config = await open();
  await place('..2', 2);
  await vi.waitFor(() => expect(config.current.listen.port).toBe(2), { timeout: 30_000 });
});

test.each([
  ['syntax', 'listen: [', 'the [ before is not closed'],
  ['an unknown key', 'listn: {}', 'did you mean "listen"?'],
  ['a variable', `listen: { host: \${NOPE} }`, 'NOPE is not set'],
  ['open to the world', 'listen: { host: 0.0.0.0 }', 'is reachable from other machines'],
  ['emptied', '', 'has no settings'],
  ['not text', '\u0000\u0001', 'must be a map of settings'],
])('an invalid file (%s) is rejected once, the old configuration stays, a valid file replaces it', async (_, bad, reason) => {
  const config = await open();
  const before = config.current;
  await writeFile(file, bad);
  await vi.waitFor(() => expect(refusals).toHaveLength(1), { timeout: 30_000 });
  expect(refusals[0]).toContain(reason);
  await settled();
  expect(refusals).toHaveLength(1);
  expect(config.current).toBe(before);
  expect(reloads).toEqual([]);
  await writeFile(file, port(2));
  await vi.waitFor(() => expect(config.current.listen.port).toBe(2), { timeout: 30_000 });
});

test('a missing file is reported, and its successor is loaded', async () => {
  const config = await open();
  await unlink(file);
  await vi.waitFor(() => expect(refusals).toHaveLength(1), { timeout: 30_000 });
  expect(refusals[0]).toContain('ENOENT');
  expect(config.current.listen.port).toBe(1);
  await writeFile(file, port(2));
  await vi.waitFor(() => expect(config.current.listen.port).toBe(2), { timeout: 30_000 });
});

test('an invalid file that becomes valid again is reported', async () => {
  const config = await open();
  await writeFile(file, 'bad: 1');
  await vi.waitFor(() => expect(refusals).toHaveLength(1), { timeout: 30_000 });
  await writeFile(file, port(1));
  await vi.waitFor(() => expect(reloads).toHaveLength(1), { timeout: 30_000 });
  expect(config.current.listen.port).toBe(1);
});

test('an unchanged file triggers no reload', async () => {
  const config = await open();
  const before = config.current;
  await writeFile(file, port(1));
  await writeFile(join(folder, 'neighbour'), 'x');
  await settled();
  expect(config.current).toBe(before);
  expect(reloads).toEqual([]);
});

test('a folder in which other files keep changing does not prevent a reload', async () => {
  const config = await open({ quietMs: 50, pollMs: 60_000 });
  await writeFile(file, port(2));
  await vi.waitFor(
    async () => {
      await writeFile(join(folder, 'neighbour'), String(Math.random()));
      expect(config.current.listen.port).toBe(2);
    },
    { timeout: 30_000, interval: 5 },
  );
});

test('reload (SIGHUP) reads the file at once, changed or not', async () => {
  const config = await open({ pollMs: 60_000, quietMs: 60_000 });
  const before = config.current;
  await config.reload();
  expect(config.current).not.toBe(before);
  await writeFile(file, port(2));
  await config.reload();
  expect(config.current.listen.port).toBe(2);
  await writeFile(file, 'bad: 1');
  await config.reload();
  expect(config.current.listen.port).toBe(2);
  expect(refusals).toHaveLength(1);
  expect(reloads).toHaveLength(2);
});

test('reloads run one after another', async () => {
  const config = await open({ pollMs: 60_000, quietMs: 60_000 });
  await writeFile(file, port(2));
  const first = config.reload();
  await vi.waitFor(() => expect(reloads).toHaveLength(1), { timeout: 30_000 });
  await writeFile(file, port(3));
  await Promise.all([first, config.reload(), config.reload()]);
  expect(reloads.map(({ listen }) => listen.port)).toEqual([2, 3]);
  expect(config.current).toBe(reloads[1]);
});

test('a callback that throws does not stop the watcher', async () => {
  const config = await open({
    onReload: () => {
      throw new Error('listener');
    },
  });
  await writeFile(file, port(2));
  await vi.waitFor(() => expect(config.current.listen.port).toBe(2), { timeout: 30_000 });
  await writeFile(file, port(3));
  await vi.waitFor(() => expect(config.current.listen.port).toBe(3), { timeout: 30_000 });
});

test('changes that need a restart are reported as long as they wait for it', async () => {
  const config = await open({ pollMs: 60_000, quietMs: 60_000 });
  for (const text of [
    'models: { a: demo/x }\nlisten: { port: 1 }',
    port(2),
    `${port(2)}limits: { drain: 1s }\nlog: { level: debug }`,
    `${port(2)}affinity: 7m\n`,
    port(1),
  ]) {
    await writeFile(file, text);
    await config.reload();
  }
  expect(restarts).toEqual([[], ['listen'], ['listen', 'limits', 'log'], ['listen'], []]);
});

test('secrets of both configurations are redacted', async () => {
  const secrets = new SecretRegistry();
  await writeFile(file, 'providers: { groq: { api_key: first-secret } }');
  const config = await open({ secrets });
  await writeFile(file, 'providers: { groq: { api_key: second-secret } }');
  await config.reload();
  expect(secrets.redact('first-secret second-secret')).toBe('*** ***');
});

test('a closed watcher reads nothing', async () => {
  const config = await open();
  config.close();
  await writeFile(file, port(2));
  await settled();
  expect(config.current.listen.port).toBe(1);
  expect(reloads).toEqual([]);
});

test('an invalid file prevents the start', async () => {
  await writeFile(file, 'bad: 1');
  await expect(open()).rejects.toThrow('unknown key "bad"');
  await expect(readConfig(join(folder, 'absent'), { env: {}, secrets: new SecretRegistry() })).rejects.toThrow('ENOENT');
});
