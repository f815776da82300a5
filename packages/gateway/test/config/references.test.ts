import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { needs } from '../../../../test/needs/needs.ts';
import { listSecretVariables, loadConfig } from '../../src/config/load.ts';
import { type GatewayState, resolveConfig } from '../../src/config/resolve.ts';
import { isReference, readFileReference, SecretRegistry } from '../../src/config/secrets.ts';
import { LiveConfig, readConfig } from '../../src/config/watch.ts';

// Secrets by reference: env:NAME, file:PATH and NAME_FILE; and secrets in files that others can read.

const root = mkdtempSync(join(tmpdir(), 'sluice-references-'));
afterAll(() => rmSync(root, { recursive: true }));

let folder = '';
let count = 0;
beforeEach(() => {
  folder = join(root, String(count++));
  mkdirSync(folder);
});

const put = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text, { mode: 0o600 });
  return join(folder, name);
};

const SECRET = 'canary-secret-0123456789';
const PROVIDER = { protocol: 'openai-chat', base_url: 'https://x.example/v1' };

/** Every setting that accepts a secret, and what became of it. */
const SETTINGS: Readonly<
  Record<string, { config: (secret: string) => object; read: (state: GatewayState) => string | undefined }>
> = {
  'providers.x.api_key': {
    config: (api_key) => ({ providers: { x: { ...PROVIDER, api_key } } }),
    read: (state) => state.providerFor('x')?.key?.reveal(),
  },
  'providers.x.headers.authorization': {
    config: (authorization) => ({ providers: { x: { ...PROVIDER, headers: { authorization } } } }),
    read: (state) => state.providerFor('x')?.headers['authorization']?.reveal(),
  },
  'auth.keys[0]': { config: (key) => ({ auth: { keys: [key] } }), read: ({ keys }) => keys[0]?.key.reveal() },
  'auth.keys[0].key': {
    config: (key) => ({ auth: { keys: [{ name: 'alice', key }] } }),
    read: ({ keys }) => keys[0]?.key.reveal(),
  },
  'providers.x.api_keys[0]': {
    config: (key) => ({ providers: { x: { ...PROVIDER, api_keys: [key, 'another-key-0123456789'] } } }),
    read: (state) => state.providerFor('x')?.key?.reveal(),
  },
  'admin.key': { config: (key) => ({ admin: { key } }), read: ({ adminKey }) => adminKey?.reveal() },
  'metrics.key': { config: (key) => ({ metrics: { key } }), read: ({ metricsKey }) => metricsKey?.reveal() },
};

const resolve = (config: object, env: Record<string, string> = {}): GatewayState => {
  const secrets = new SecretRegistry();
  return resolveConfig(loadConfig(join(folder, 'sluice.json'), JSON.stringify(config), env), { env, secrets });
};

test.each([
  ['file:/run/secrets/x', '/run/secrets/x'],
  ['file:///run/secrets/x', '/run/secrets/x'],
  ['file:relative/x', 'relative/x'],
  ['file:/with space/x', '/with space/x'],
  ['file:C:\\secrets\\key', 'C:\\secrets\\key'],
  ['file:C:/secrets/key', 'C:/secrets/key'],
  ['file:/C:/secrets/key', 'C:/secrets/key'],
  ['file:///C:/secrets/key', 'C:/secrets/key'],
  ['file:///c:\\Users\\Ann Lee\\key', 'c:\\Users\\Ann Lee\\key'],
  ['file:\\\\server\\share\\key', '\\\\server\\share\\key'],
  ['file:/c:x', '/c:x'],
  ['file:', undefined],
  ['file: ', undefined],
  ['profile:/x', undefined],
])('%j refers to %j', (text, path) => {
  expect(readFileReference(text)).toBe(path);
  expect(isReference(text)).toBe(path !== undefined);
});

describe.each(Object.entries(SETTINGS))('%s', (name, { config, read }) => {
  test.each(['env:A_SECRET', 'env.A_SECRET', 'os.environ/A_SECRET', `\${A_SECRET}`])('%s', (reference) => {
    expect(read(resolve(config(reference), { A_SECRET: SECRET }))).toBe(SECRET);
    expect(() => resolve(config(reference))).toThrow('the environment variable A_SECRET is not set');
  });

  test('file: with an absolute path, a URL, and a path beside the configuration', () => {
    const path = put('secret', `${SECRET}\n`);
    for (const reference of [`file:${path}`, `file://${path}`, 'file:secret', 'file:./secret'])
      expect(read(resolve(config(reference)))).toBe(SECRET);
  });

  test.each<[string, string, string]>([
    ['is missing', '', 'cannot be read (ENOENT)'],
    ['is empty', '\n', 'is empty'],
    ['is too large', SECRET.repeat(10_000), 'must be a file of at most 64 KiB'],
  ])('a file that %s is an error that names the setting and the path, not the content', (_, text, reason) => {
    if (text !== '') put('secret', text);
    const attempt = (): unknown => resolve(config('file:secret'));
    expect(attempt).toThrow(`${join(folder, 'secret')} ${reason}`);
    expect(attempt).toThrow(name);
    expect(attempt).not.toThrow(SECRET);
  });
});

describe('the content of a file', () => {
  const read = (text: string): string | undefined => {
    put('secret', text);
    return resolve(SETTINGS['providers.x.headers.authorization']?.config('file:secret') ?? {})
      .providerFor('x')
      ?.headers['authorization']?.reveal();
  };

  test.each([`Bearer ${SECRET}`, `Bearer ${SECRET}\n`, `Bearer ${SECRET}\r\n`])('%j loses one newline at its end', (text) =>
    expect(read(text)).toBe(`Bearer ${SECRET}`),
  );

  test('more lines are rejected', () => expect(() => read(`${SECRET}\n\n`)).toThrow('must be one line of printable ASCII'));

  test('is text and not a reference to something else', () => {
    put('secret', 'env:PATH');
    expect(resolve({ admin: { key: 'file:secret' } }).adminKey?.reveal()).toBe('env:PATH');
  });

  test('is read through links, as Kubernetes mounts it', () => {
    mkdirSync(join(folder, '..data-1'));
    put('..data-1/key', `${SECRET}\n`);
    symlinkSync('..data-1', join(folder, '..data'));
    symlinkSync('..data/key', join(folder, 'key'));
    expect(resolve({ admin: { key: 'file:key' } }).adminKey?.reveal()).toBe(SECRET);
  });

  test('the address of a database may be in a file', () => {
    put('address', `postgres://user:${SECRET}@db.example/sluice\n`);
    expect(resolve({ store: 'file:address' }).store?.url.reveal()).toBe(`postgres://user:${SECRET}@db.example/sluice`);
  });

  test('a folder is rejected', () => expect(() => resolve({ admin: { key: 'file:.' } })).toThrow('must be a file'));

  test('other settings cannot refer to files', () => {
    const path = put('secret', SECRET);
    expect(() => resolve({ log: { level: `file:${path}` } })).toThrow('log.level: must be one of');
    expect(() => resolve({ listen: { host: `file:${path}` } })).not.toThrow(SECRET);
  });

  test('is redacted', () => {
    const secrets = new SecretRegistry();
    put('secret', SECRET);
    const source = loadConfig(join(folder, 'sluice.json'), JSON.stringify({ admin: { key: 'file:secret' } }), {});
    resolveConfig(source, { env: {}, secrets });
    expect(secrets.redact(`x ${SECRET} y`)).toBe('x *** y');
  });
});

describe('variables that name a file', () => {
  const readFile = (env: Record<string, string>, config = 'log: { level: warn }\n'): Promise<GatewayState> =>
    readConfig(put('sluice.yaml', config), { env, secrets: new SecretRegistry() });

  test('OPENAI_API_KEY_FILE, SLUICE_KEYS_FILE and SLUICE_ADMIN_KEY_FILE', async () => {
    const state = await readFile({
      OPENAI_API_KEY_FILE: put('openai', `sk-${SECRET}\n`),
      SLUICE_KEYS_FILE: put('keys', 'client-one-0123456789,client-two-0123456789\n'),
      SLUICE_ADMIN_KEY_FILE: put('admin', SECRET),
    });
    expect(state.providerFor('openai')?.key?.reveal()).toBe(`sk-${SECRET}`);
    expect(state.keys.map(({ key }) => key.reveal())).toEqual(['client-one-0123456789', 'client-two-0123456789']);
    expect(state.adminKey?.reveal()).toBe(SECRET);
  });

  test('a reference to the variable finds the file', async () => {
    const state = await readFile({ OPENAI_API_KEY_FILE: put('openai', SECRET) }, `admin: { key: "\${OPENAI_API_KEY}" }\n`);
    expect(state.adminKey?.reveal()).toBe(SECRET);
  });

  test('a file that cannot be read and a variable that is set twice are errors', async () => {
    await expect(readFile({ OPENAI_API_KEY_FILE: '/nowhere/key' })).rejects.toThrow(
      'OPENAI_API_KEY_FILE: /nowhere/key cannot be read (ENOENT)',
    );
    const both = { OPENAI_API_KEY: 'x', OPENAI_API_KEY_FILE: put('openai', SECRET) };
    await expect(readFile(both)).rejects.toThrow('OPENAI_API_KEY and OPENAI_API_KEY_FILE are both set; unset one');
  });

  test('other variables are not read', async () => {
    const state = await readFile({ SOME_TOKEN_FILE: '/nowhere', HOME_FILE: '/nowhere' });
    expect(state.warnings).toEqual([]);
  });
});

test.each([
  ['{ admin: { key: env:A }, metrics: { key: file:/nowhere } }', ['A']],
  ['{ store: env:A, limits_store: { url: env:B } }', ['A', 'B']],
])('variables of env: references in %s are removed from the environment of client programs', (text, names) =>
  expect(listSecretVariables('f', text, { A: 'x', B: 'x' })).toEqual(names),
);

describe('a reload', () => {
  async function open(text: string) {
    const file = put('sluice.yaml', text);
    const keys: (string | undefined)[] = [];
    const refused: string[] = [];
    let wake: () => void = () => undefined;
    const config = await LiveConfig.open({
      file,
      env: {},
      secrets: new SecretRegistry(),
      onReload: ({ adminKey }) => {
        keys.push(adminKey?.reveal());
        wake();
      },
      onRefused: ({ message }) => {
        refused.push(message);
        wake();
      },
      quietMs: 1,
      pollMs: 10,
      stableMs: 1,
    });
    const next = () => new Promise<void>((resolve) => (wake = resolve));
    return { config, keys, refused, next };
  }

  test('follows the file of a secret, keeps the last valid one, and finds it again', async () => {
    put('secret', 'first-key-0123456789');
    const { config, keys, refused, next } = await open('admin: { key: "file:secret" }\n');
    let change = next();
    renameSync(put('other', 'second-key-0123456789'), join(folder, 'secret'));
    await change;
    expect(keys.at(-1)).toBe('second-key-0123456789');
    change = next();
    rmSync(join(folder, 'secret'));
    await change;
    expect(refused.at(-1)).toContain(`admin.key: ${join(folder, 'secret')} cannot be read (ENOENT)`);
    expect(config.current.adminKey?.reveal()).toBe('second-key-0123456789');
    change = next();
    put('secret', 'third-key-0123456789');
    await change;
    expect(keys.at(-1)).toBe('third-key-0123456789');
    config.close();
  });
});

describe('a configuration that every user can read', needs('posix'), () => {
  const LITERALS: Readonly<Record<string, string>> = {
    'auth.keys': `auth: { keys: [${SECRET}] }`,
    'admin.key': `admin: { key: ${SECRET} }`,
    'metrics.key': `metrics: { key: ${SECRET} }`,
    'providers.x.api_key': `providers: { x: { protocol: openai-chat, base_url: "https://x.example/v1", api_key: ${SECRET} } }`,
    'providers.x.headers': `providers: { x: { protocol: openai-chat, base_url: "https://x.example/v1", headers: { x-api-key: ${SECRET} } } }`,
    'providers.x.proxy': `providers: { x: { protocol: openai-chat, base_url: "https://x.example/v1", proxy: "http://u:${SECRET}@p:1" } }`,
  };
  const env = { SLUICE_KEYS: 'client-key-0123456789', A: SECRET };

  /** Warnings about the mode of the file. */
  const check = async (text: string, mode: number, host: string): Promise<string[]> => {
    const file = put('sluice.yaml', `${text}\n`);
    chmodSync(file, mode);
    const { warnings } = await readConfig(file, { env, secrets: new SecretRegistry(), listen: { host } });
    return warnings.map(({ message }) => message).filter((message) => message.includes('every user of this machine can read'));
  };

  test.each(Object.entries(LITERALS))(
    '%s: a warning on loopback, an error on other addresses, nothing with mode 600',
    async (name, text) => {
      expect(await check(text, 0o644, '127.0.0.1')).toHaveLength(1);
      const refused = check(text, 0o604, '0.0.0.0');
      await expect(refused).rejects.toThrow(`${name}`);
      await expect(refused).rejects.toThrow('run chmod 600 on the file, or use env:NAME or file:/path');
      await expect(refused).rejects.not.toThrow(SECRET);
      expect(await check(text, 0o640, '0.0.0.0')).toEqual([]);
    },
  );

  test.each([
    'admin: { key: env:A }',
    `admin: { key: "\${A}" }`,
    'admin: { key: file:secret }',
    `providers: { x: { protocol: openai-chat, base_url: "https://x.example/v1", api_key: none, headers: { x-team: research-group, authorization: "Bearer \${A}" } } }`,
    'providers: { x: { protocol: openai-chat, base_url: "https://x.example/v1", proxy: "http://proxy.example:3128" } }',
  ])('%s is no secret', async (text) => {
    put('secret', SECRET);
    expect(await check(text, 0o644, '0.0.0.0')).toEqual([]);
  });
});
