import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { ConfigError } from '../../src/config/problems.ts';
import { resolveConfig } from '../../src/config/resolve.ts';
import { parseOptions } from '../../src/config/schema.ts';
import { SecretRegistry } from '../../src/config/secrets.ts';

const read = (value: unknown) => {
  const result = parseOptions({ limits_store: value });
  return 'options' in result
    ? result.options.limits_store
    : result.issues.map(({ path, message }) => `${path.join('.')} ${message}`);
};

test.each([
  ['redis://10.0.0.5', { nodes: 1, prefix: 'sluice:', timeoutMs: 50, connectTimeoutMs: 200 }],
  ['store', { url: 'store', timeoutMs: 250, connectTimeoutMs: 1000 }],
  [
    { url: 'store', expected_nodes: 3, timeout: '1s' },
    { url: 'store', nodes: 3, timeoutMs: 1000 },
  ],
  ['memory', { url: 'memory' }],
  [
    { url: 'rediss://u:p@host:6380/2', expected_nodes: 4, prefix: 'b:', timeout: '1s' },
    { nodes: 4, prefix: 'b:', timeoutMs: 1000 },
  ],
])('%j is read', (value, expected) => expect(read(value)).toMatchObject(expected));

test.each([
  ['http://host', 'must be redis://'],
  ['redis://', 'must be redis://'],
  ['postgres://host/limits', 'must be redis://'],
  ['redis://host/name', 'must be redis://'],
  [6379, 'limits_store'],
  [{ url: 'redis://host', expected_nodes: 0 }, 'limits_store.expected_nodes'],
  [{ url: 'redis://host', prefix: 'a b' }, 'must have 1 to 64'],
  [{ url: 'redis://host', password: 'x' }, 'limits_store'],
])('%j is rejected', (value, message) => expect(String(read(value))).toContain(message));

const STORE = 'store: postgres://sluice@db/sluice';

test.each([
  ['limits_store: redis://host', 'redis'],
  [`${STORE}\nlimits_store: redis://host`, 'redis'],
  [STORE, 'postgres'],
  [`${STORE}\nlimits_store: { url: store, expected_nodes: 3 }`, 'postgres'],
  [`${STORE}\nlimits_store: memory`, undefined],
  ['limits_store: memory', undefined],
  ['log: { level: info }', undefined],
])('%j: the server is %s', (text, server) => {
  const { limitsStore } = resolveConfig(loadConfig('/etc/sluice.yaml', text, {}), { env: {}, secrets: new SecretRegistry() });
  expect(limitsStore?.server).toBe(server);
});

test('limits in the store need one', () => {
  const source = loadConfig('/etc/sluice.yaml', 'limits_store: store', {});
  expect(() => resolveConfig(source, { env: {}, secrets: new SecretRegistry() })).toThrow('set store: postgres://');
});

describe('the password', () => {
  const PASSWORD = 'canary-0123456789';
  const resolve = (text: string, secrets = new SecretRegistry()) => {
    const env = { REDIS: `redis://:${PASSWORD}@host` };
    return resolveConfig(loadConfig('/etc/sluice.yaml', text, env), { env, secrets });
  };

  test('may come from a variable, and is masked everywhere', () => {
    const secrets = new SecretRegistry();
    const { limitsStore } = resolve('limits_store: env:REDIS\n', secrets);
    expect(limitsStore?.url.reveal()).toContain(PASSWORD);
    expect(inspect(limitsStore, { depth: 9 }) + JSON.stringify(limitsStore)).not.toContain('canary');
    expect(secrets.redactKnown(`WRONGPASS ${PASSWORD}`)).not.toContain('canary');
  });

  test('is not in the error of an invalid URL', () => {
    for (const text of [`limits_store: http://:${PASSWORD}@host`, `limits_store: { url: "http://:${PASSWORD}@host" }`]) {
      expect(() => resolve(`${text}\n`)).toThrow(ConfigError);
      expect(() => resolve(`${text}\n`)).not.toThrow(/canary/);
    }
  });
});
