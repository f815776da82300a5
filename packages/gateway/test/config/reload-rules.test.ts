import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { GatewayState } from '../../src/config/resolve.ts';
import { SecretRegistry } from '../../src/config/secrets.ts';
import { LiveConfig, type WatchOptions } from '../../src/config/watch.ts';

// What a reload may not do: remove authentication or providers because the file is damaged.

let folder: string;
let file: string;
let live: LiveConfig | undefined;
let reloads: GatewayState[];
let refusals: string[];

const port = (number: number): string => `listen: { port: ${number} }\n`;

/** The file is read only when a test says so. */
async function open(options: Partial<WatchOptions> = {}): Promise<LiveConfig> {
  live = await LiveConfig.open({
    file,
    env: {},
    secrets: new SecretRegistry(),
    onReload: (state) => reloads.push(state),
    onRefused: ({ message }) => refusals.push(message),
    quietMs: 60_000,
    pollMs: 60_000,
    stableMs: 1,
    ...options,
  });
  return live;
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-'));
  file = join(folder, 'sluice.yaml');
  [reloads, refusals] = [[], []];
});

afterEach(async () => {
  live?.close();
  live = undefined;
  await rm(folder, { recursive: true });
});

const KEYS = 'auth: { keys: [client-key-0123456789] }\n';
const PROVIDER = 'providers: { local: { protocol: openai-chat, base_url: http://127.0.0.1:9/v1 } }\n';
const PUBLIC = 'listen: { host: 0.0.0.0 }\n';
const RESET = 'reset: true\n';
const NO_KEYS = 'auth.keys: the reload would remove all client keys';
const NO_PROVIDER = 'providers: the reload would remove the last provider';

/** Opens a file, replaces it and reloads; the reason of a rejection, or undefined. */
async function replace(before: string, after: string, options: Partial<WatchOptions> = {}): Promise<string | undefined> {
  await writeFile(file, before, { mode: 0o600 });
  const config = await open(options);
  const state = config.current;
  await writeFile(file, after, { mode: 0o600 });
  await config.reload();
  expect(config.current === state).toBe(refusals.length === 1);
  return refusals[0];
}

describe('removing the keys or the providers', () => {
  interface Removal {
    name: string;
    before: string;
    after: string;
    env?: WatchOptions['env'];
    /** Undefined: the reload is accepted. */
    reason?: string;
  }

  const REMOVALS: Removal[] = [
    { name: 'all client keys', before: KEYS + PROVIDER, after: PROVIDER, reason: NO_KEYS },
    {
      name: 'the keys of the file where the environment has others',
      before: KEYS + PROVIDER,
      after: PROVIDER,
      env: { SLUICE_KEYS: 'another-key-0123456789' },
      reason: NO_KEYS,
    },
    {
      name: 'the admin key',
      before: `admin: { key: an-admin-key }\n${PROVIDER}`,
      after: PROVIDER,
      reason: 'the reload would remove the admin key',
    },
    { name: 'the only provider', before: KEYS + PROVIDER, after: KEYS, reason: NO_PROVIDER },
    { name: 'the only provider of an empty section', before: PROVIDER, after: 'providers: {}\n', reason: NO_PROVIDER },
    {
      name: 'the only provider of the file where the environment has others',
      before: PROVIDER,
      after: port(1),
      env: { OPENAI_API_KEY: 'key-of-openai' },
      reason: NO_PROVIDER,
    },
    {
      name: 'the only provider of the environment, switched off',
      before: port(1),
      after: 'providers: { groq: false }\n',
      env: { GROQ_API_KEY: 'key-of-groq' },
      reason: NO_PROVIDER,
    },
    { name: 'one key of two', before: 'auth: { keys: [first-key, second-key] }', after: 'auth: { keys: [second-key] }' },
    {
      name: 'one provider of two',
      before: 'providers: { openai: { api_key: a }, groq: { api_key: b } }',
      after: 'providers: { groq: { api_key: b } }',
    },
    { name: 'keys where there were none', before: PROVIDER, after: `${PROVIDER}log: { level: warn }\n` },
    { name: 'providers where there were none', before: port(1), after: port(2) },
  ];

  test.each(REMOVALS.filter(({ reason }) => reason !== undefined))(
    '$name is rejected',
    async ({ before, after, env = {}, reason }) => expect(await replace(before, after, { env })).toContain(reason),
  );

  test.each(REMOVALS.filter(({ reason }) => reason !== undefined))('$name is accepted with reset: true', async (row) => {
    expect(await replace(row.before, RESET + row.after, { env: row.env ?? {} })).toBeUndefined();
    expect(reloads[0]?.warnings.map(({ message }) => message)).toContainEqual(expect.stringContaining('"reset: true"'));
  });

  test.each(REMOVALS.filter(({ reason }) => reason === undefined))('$name is accepted', async ({ before, after }) =>
    expect(await replace(before, after)).toBeUndefined(),
  );

  test('both at once is rejected with both reasons', async () => {
    const reason = await replace(KEYS + PROVIDER, port(1));
    expect(reason).toContain(NO_KEYS);
    expect(reason).toContain(NO_PROVIDER);
    expect(reason).toContain('"reset: true"');
  });

  test('reset: false confirms nothing', async () =>
    expect(await replace(KEYS + PROVIDER, `reset: false\n${PROVIDER}`)).toContain(NO_KEYS));

  test('reset: true alone is a configuration: everything is removed', async () => {
    expect(await replace(KEYS + PROVIDER, RESET)).toBeUndefined();
    expect(reloads[0]?.keys).toEqual([]);
  });

  test('reset: true has no effect at start but a warning', async () => {
    await writeFile(file, RESET + KEYS + PROVIDER, { mode: 0o600 });
    const { current } = await open();
    expect(current.keys).toHaveLength(1);
    expect(current.warnings.map(({ message }) => message)).toEqual([expect.stringContaining('"reset: true"')]);
  });
});

describe('a file without settings', () => {
  const EMPTY = [
    '',
    '\n',
    '# a comment\n',
    '---\n',
    '--- # a comment\n...\n',
    'null\n',
    '~\n',
    '{}\n',
    '{ }',
    'models:\n',
    '$schema: x\n',
  ];

  test.each(EMPTY)('%j is rejected by a reload', async (text) =>
    expect(await replace(port(1), text, { env: { OPENAI_API_KEY: 'key-of-openai' } })).toContain('has no settings'),
  );

  test.each(EMPTY)('%j is rejected at start', async (text) => {
    await writeFile(file, text, { mode: 0o600 });
    await expect(open()).rejects.toThrow('has no settings');
  });
});

describe('exposure is checked against the bound address', () => {
  test.each<[string, string, Partial<WatchOptions>, string?]>([
    ['the new file names a loopback address', 'listen: { host: 127.0.0.1 }\n', {}, 'the bound address 0.0.0.0'],
    ['the new file names no address', '', {}, 'the bound address 0.0.0.0'],
    ['the new file names the same address', PUBLIC, {}, 'listen.host: 0.0.0.0 is reachable from other machines'],
    ['the command line names the address', '', { listen: { host: '0.0.0.0' } }, 'is reachable from other machines'],
    ['the environment has a short key', '', { env: { SLUICE_KEYS: 'short' } }, 'at least 16 characters'],
    ['the environment has a key', '', { env: { SLUICE_KEYS: 'another-key-0123456789' } }],
  ])('keys are removed with reset: true and %s', async (_, listen, options, reason) => {
    const rejection = await replace(PUBLIC + KEYS + PROVIDER, RESET + listen + PROVIDER, options);
    if (reason === undefined) expect(rejection).toBeUndefined();
    else expect(rejection).toContain(reason);
  });

  test('keys that are too short for the bound address are rejected', async () =>
    expect(await replace(PUBLIC + KEYS + PROVIDER, `auth: { keys: [short] }\n${PROVIDER}`)).toContain('at least 16 characters'));

  test.each([
    ['0.0.0.0', false],
    ['::', false],
    ['192.0.2.1', false],
    ['127.0.0.1', true],
    ['::1', true],
    ['::ffff:127.0.0.1', true],
  ])('the listener reports %s: keys may be removed with reset: true: %s', async (address, isAccepted) => {
    await writeFile(file, KEYS + PROVIDER, { mode: 0o600 });
    const config = await open();
    config.setBoundAddress(address);
    await writeFile(file, RESET + PROVIDER, { mode: 0o600 });
    await config.reload();
    expect(reloads).toHaveLength(isAccepted ? 1 : 0);
  });
});

describe('a truncated file', () => {
  const WHOLE = `# The gateway.\n${port(1)}auth:\n  keys:\n    - client-key-0123456789\nproviders:
  first: { protocol: openai-chat, base_url: http://127.0.0.1:9/v1 }
  second:\n    protocol: openai-chat\n    base_url: http://127.0.0.1:9/v1\nmodels:\n  fast: first/a\n  slow: second/b\n`;

  test('at any byte never loses the keys or the providers, and is rejected in the middle of a line', async () => {
    await writeFile(file, WHOLE, { mode: 0o600 });
    const config = await open({ stableMs: 0 });
    for (let length = 0; length < WHOLE.length; length++) {
      await writeFile(file, WHOLE.slice(0, length), { mode: 0o600 });
      await config.reload();
      expect(config.current.keys, `${length}`).toHaveLength(1);
      expect(config.current.providers.has('first'), `${length}`).toBe(true);
      if (reloads.length > 0) expect(WHOLE[length - 1], `${length}`).toBe('\n');
      reloads.length = 0;
      await writeFile(file, WHOLE, { mode: 0o600 });
      await config.reload();
      reloads.length = 0;
    }
  });

  test.each([
    ['a longer file', PROVIDER, `${PROVIDER}log: { level: info }`],
    ['a file that never had one', PROVIDER.trimEnd(), `${port(2)}${PROVIDER.trimEnd()}`],
    ['JSON', `{ "providers": {}, "listen": { "port": 1 } }\n`, '{ "listen": { "port": 2 } }'],
  ])('is not suspected because of a missing last newline: %s', async (_, before, after) =>
    expect(await replace(before, after)).toBeUndefined(),
  );
});
