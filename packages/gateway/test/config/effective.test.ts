import { describe, expect, test } from 'vitest';
import { listSettings, type Setting } from '../../src/config/effective.ts';
import { ReloadHistory } from '../../src/config/reloads.ts';
import { stateOf } from './world.ts';

interface World {
  yaml?: string;
  env?: Record<string, string>;
  flags?: Record<string, string>;
}

function list({ yaml, env = {}, flags = {} }: World): Map<string, Setting> {
  const state = stateOf({ yaml, env });
  const { settings } = listSettings({
    text: yaml ?? null,
    shared: null,
    env,
    state,
    flags: new Map(Object.entries(flags)),
    folder: null,
  });
  return new Map(settings.map((setting) => [setting.path, setting]));
}

const PROVIDER = 'protocol: openai-chat, base_url: "http://127.0.0.1:9/v1"';

describe('the origin of a setting', () => {
  test.each<[string, World, string, Partial<Setting>]>([
    ['the file', { yaml: 'log:\n  level: debug\n' }, 'log.level', { value: 'debug', origin: 'file', line: 2 }],
    ['a default', { yaml: 'log: { level: debug }' }, 'listen.port', { value: '4141', origin: 'default', line: null }],
    ['a default of a limit', {}, 'limits.total_timeout', { value: '30m', origin: 'default' }],
    ['a default of a section', {}, 'idempotency.ttl', { value: '24h', origin: 'default' }],
    [
      'the command line',
      { yaml: 'listen: { port: 1 }', flags: { 'listen.port': '2' } },
      'listen.port',
      { value: '2', origin: 'flag' },
    ],
    [
      'a variable',
      { yaml: `listen: { port: "\${PORT}" }`, env: { PORT: '4200' } },
      'listen.port',
      { value: '4200', origin: 'environment', reference: `\${PORT}` },
    ],
    [
      'a list',
      { yaml: 'trusted_proxies: [10.0.0.0/8, "::1"]' },
      'trusted_proxies',
      { value: '["10.0.0.0/8","::1"]', origin: 'file' },
    ],
    [
      'a variable of a provider',
      { env: { GROQ_API_KEY: 'gsk_canary-0123456789abcdef' } },
      'providers.groq.api_key',
      { value: null, origin: 'environment', reference: 'env:GROQ_API_KEY' },
    ],
    ['the table of providers', { env: { GROQ_API_KEY: 'x' } }, 'providers.groq.base_url', { origin: 'default' }],
    [
      'an address of the environment',
      { env: { OLLAMA_HOST: '127.0.0.1:9' } },
      'providers.ollama.base_url',
      { origin: 'environment', reference: 'env:OLLAMA_HOST' },
    ],
    ['the admin key', { env: { SLUICE_ADMIN_KEY: 'canary' } }, 'admin.key', { value: null, reference: 'env:SLUICE_ADMIN_KEY' }],
    ['the folder of data', {}, 'data', { value: 'memory', origin: 'default' }],
  ])('%s', (_, world, path, expected) => expect(list(world).get(path)).toMatchObject(expected));

  test('a section that the file replaces has no defaults', () => {
    const settings = list({ yaml: 'idempotency: off' });
    expect(settings.get('idempotency')?.value).toBe('off');
    expect(settings.has('idempotency.ttl')).toBe(false);
  });
});

describe('secrets', () => {
  const CANARY = 'canary-0123456789abcdef';

  test.each([
    [`providers: { a: { ${PROVIDER}, api_key: ${CANARY} } }`, 'providers.a.api_key'],
    [`providers: { a: { ${PROVIDER}, api_keys: [${CANARY}, other-key-0123456789] } }`, 'providers.a.api_keys[0]'],
    [`providers: { a: { ${PROVIDER}, headers: { x-team: ${CANARY} } } }`, 'providers.a.headers.x-team'],
    [`providers: { a: { ${PROVIDER}, headers: { x-team: "Basic ${CANARY} \${USER_NAME}" } } }`, 'providers.a.headers.x-team'],
    [`providers: { a: { ${PROVIDER}, organization: ${CANARY} } }`, 'providers.a.organization'],
    [`providers: { a: { ${PROVIDER}, proxy: "http://u:${CANARY}@proxy.example:1" } }`, 'providers.a.proxy'],
    [`auth: { keys: [${CANARY}] }`, 'auth.keys[0]'],
    [`auth: { keys: [{ name: alice, key: ${CANARY} }] }`, 'auth.keys[0].key'],
    [`admin: { key: ${CANARY} }`, 'admin.key'],
    [`metrics: { key: ${CANARY} }`, 'metrics.key'],
    [
      `{ models: { a: demo/hello }, rules: [{ when: { header: { x-user: ${CANARY} } }, use: a }] }`,
      'rules[0].when.header.x-user',
    ],
  ])('%s is hidden', (yaml, path) => {
    const settings = list({ yaml, env: { USER_NAME: CANARY } });
    expect(settings.get(path)).toMatchObject({ value: null });
    expect(JSON.stringify([...settings])).not.toContain(CANARY);
  });

  test('references to secrets are shown as they are written, never resolved', () => {
    const yaml = `providers: { a: { ${PROVIDER}, api_key: env:MINE, headers: { x-a: "Bearer \${TOKEN}" } } }`;
    const settings = list({ yaml, env: { MINE: CANARY, TOKEN: CANARY } });
    expect(settings.get('providers.a.api_key')).toMatchObject({ value: null, reference: 'env:MINE', origin: 'environment' });
    expect(settings.get('providers.a.headers.x-a')).toMatchObject({ value: null, reference: `\${TOKEN}` });
    expect(JSON.stringify([...settings])).not.toContain(CANARY);
  });

  test('a long part of the path of an address is hidden', () => {
    const yaml = `providers: { a: { protocol: openai-chat, base_url: "https://gateway.example/${CANARY}/v1" } }`;
    expect(list({ yaml }).get('providers.a.base_url')?.value).toBe('https://gateway.example/…');
  });
});

test('the history of reloads is bounded, newest first, and without secrets', () => {
  let now = 0;
  const history = new ReloadHistory(() => now);
  for (now = 1; now <= 60; now++) history.add('file', now % 2 ? {} : { reason: 'sk-canary0123456789 is wrong' });
  expect(history.list()).toHaveLength(50);
  expect(history.list()[0]).toEqual({ at: 60, by: 'file', reason: '*** is wrong', restart: [], warnings: 0 });
  expect(history.list()[1]).not.toHaveProperty('reason');
});
