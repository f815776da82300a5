import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { type RunOptions, run } from '../../src/server/run.ts';
import { RawClient, requestText } from '../gateway/raw-client.ts';

// A gateway does not start with a configuration that would open a door.

const folder = mkdtempSync(join(tmpdir(), 'sluice-start-'));
afterAll(() => rmSync(folder, { recursive: true }));

const CLIENT = 'client-key-0123456789';
const ADMIN = 'admin-key-0123456789';
const PUBLIC = { host: '0.0.0.0', port: 0 };
const ALL = { listen: PUBLIC, auth: { keys: [CLIENT] } };

interface Start {
  config: object | string;
  env?: Record<string, string>;
  listen?: RunOptions['listen'];
  mode?: number;
}

function start({ config, env = {}, listen = {}, mode = 0o600 }: Start): ReturnType<typeof run> {
  const file = join(folder, 'sluice.yaml');
  rmSync(file, { force: true });
  writeFileSync(file, typeof config === 'string' ? config : JSON.stringify(config), { mode });
  return run({ config: file, folder, env, listen, log: 'silent', data: 'memory' });
}

const REFUSALS: Readonly<Record<string, Start & { reason: string }>> = {
  'a public address without client keys': {
    config: { listen: PUBLIC },
    reason: 'listen.host: 0.0.0.0 is reachable from other machines',
  },
  'the same with IPv6': { config: { listen: { host: '::', port: 0 } }, reason: 'is reachable from other machines' },
  'the same by the command line': {
    config: { log: {} },
    listen: { host: '0.0.0.0', port: 0 },
    reason: 'is reachable from other machines',
  },
  'a public address with an admin key alone': {
    config: { listen: PUBLIC, admin: { key: ADMIN } },
    reason: 'set auth.keys or SLUICE_KEYS',
  },
  'short client keys on a public address': {
    config: { listen: PUBLIC, auth: { keys: ['sk-1234'] } },
    reason: 'client keys must have at least 16 characters',
  },
  'short client keys of the environment': {
    config: { listen: PUBLIC },
    env: { SLUICE_KEYS: `${CLIENT},sk-1234` },
    reason: 'client keys must have at least 16 characters',
  },
  'a short admin key on a public address': {
    config: { ...ALL, admin: { key: 'admin' } },
    reason: 'admin.key: must have at least 16',
  },
  'a short admin key of the environment': {
    config: ALL,
    env: { SLUICE_ADMIN_KEY: 'admin' },
    reason: 'admin.key: must have at least 16',
  },
  'a short metrics key on a public address': {
    config: { ...ALL, metrics: { key: 'x' } },
    reason: 'metrics.key: must have at least 16',
  },
  'an admin key that is a client key': { config: { ...ALL, admin: { key: CLIENT } }, reason: 'must differ from all other keys' },
  'a metrics key that is the admin key': {
    config: { ...ALL, admin: { key: ADMIN }, metrics: { key: ADMIN } },
    reason: 'must differ from all other keys',
  },
  'a secret in a file that everybody can read': { config: ALL, mode: 0o644, reason: 'every user of this machine can read' },
  'a reference to a variable that is not set': { config: { auth: { keys: ['env:ABSENT'] } }, reason: 'ABSENT is not set' },
  'a reference to a file that is not there': {
    config: { auth: { keys: ['file:absent'] } },
    reason: 'absent cannot be read (ENOENT)',
  },
  'an empty list of client keys': { config: { auth: { keys: [] } }, reason: 'auth.keys: must not be empty' },
  'an empty client key': { config: { auth: { keys: [''] } }, reason: 'must be printable ASCII' },
  'an unknown setting': { config: { ...ALL, atuh: { keys: [CLIENT] } }, reason: 'unknown key "atuh"; did you mean "auth"?' },
  'an unknown setting of a section': {
    config: { listen: { hots: '127.0.0.1' } },
    reason: 'unknown key "hots"; did you mean "host"?',
  },
  'a file without settings': { config: '# nothing\n', reason: 'has no settings' },
  'a file with two documents': { config: 'log: {}\n---\nlog: {}\n', reason: 'must contain one YAML document' },
  'a certificate that is not there': {
    config: { listen: { port: 0, tls: { cert: 'absent.pem', key: 'absent.key' } } },
    reason: 'listen.tls.cert:',
  },
  'a certificate without a key': {
    config: { listen: { port: 0, tls: { cert: 'cert.pem' } } },
    reason: 'listen.tls.key: is required',
  },
  'every address as a trusted proxy': { config: { trusted_proxies: ['0.0.0.0/0'] }, reason: 'every client could choose its own' },
  'a name as a trusted proxy': { config: { trusted_proxies: ['proxy.internal'] }, reason: 'must be an address or a range' },
  'a base URL with a password': {
    config: { providers: { x: { protocol: 'openai-chat', base_url: 'http://u:canary-password@x/v1' } } },
    reason: 'must not contain a user or password',
  },
  'a header that would end the request': {
    config: { providers: { x: { protocol: 'openai-chat', base_url: 'http://x/v1', headers: { a: 'b\r\nc: d' } } } },
    reason: 'must be one line of printable ASCII',
  },
};

test.each(Object.entries(REFUSALS))('%s is refused', async (_, { reason, ...options }) => {
  const started = start(options);
  await expect(started).rejects.toThrow(reason);
  await expect(started).rejects.toMatchObject({ name: 'ConfigError' });
  await expect(started).rejects.not.toThrow(new RegExp(`${CLIENT}|${ADMIN}|canary-password`));
});

describe('what starts on a public address', () => {
  const get = async (url: string, path: string, headers: Record<string, string> = {}): Promise<number> => {
    const client = await RawClient.open(url.replace('0.0.0.0', '127.0.0.1'));
    const { status } = await client.send(requestText('GET', path, headers)).reply();
    client.leave();
    return status;
  };

  test('without an admin key, the admin API is closed, also to this machine and to clients', async () => {
    const gateway = await start({ config: ALL });
    try {
      for (const headers of [{}, { 'x-api-key': CLIENT }]) expect(await get(gateway.url, '/admin/v1/config', headers)).toBe(403);
      expect(await get(gateway.url, '/metrics')).toBe(401);
      expect(await get(gateway.url, '/v1/models')).toBe(401);
    } finally {
      await gateway.close(0);
    }
  });

  test.each([
    [{ ...ALL, admin: { key: ADMIN } }, true],
    [{ ...ALL, admin: { key: ADMIN }, trusted_proxies: ['10.0.0.0/8'] }, false],
    [{ ...ALL }, false],
    [{ admin: { key: ADMIN }, listen: { port: 0 } }, false],
  ])('%j: a warning about an admin key without TLS: %s', async (config, isWarned) => {
    const gateway = await start({ config });
    expect(gateway.state.warnings.some(({ message }) => message.includes('unencrypted'))).toBe(isWarned);
    await gateway.close(0);
  });
});
