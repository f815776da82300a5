import { describe, expect, test } from 'vitest';
import { ConfigError } from '../../src/config/problems.ts';
import { SecretRegistry } from '../../src/config/secrets.ts';
import { createDirectory } from '../../src/server/directory.ts';
import { DemoTransport } from '../../src/upstream/demo.ts';
import { stateOf } from '../config/world.ts';

// How models, providers and rules of the configuration become targets: tiers, shares, keys and addresses.

const YAML = `
providers:
  a: { protocol: openai-chat, base_url: http://a.test/v1, api_keys: [first, second] }
  b: { protocol: openai-chat, base_url: http://b.test/v1, api_key: k }
  c: { protocol: openai-chat, base_urls: [http://c1.test/v1, http://c2.test/v1] }
  d: { protocol: openai-chat, base_urls: [http://d1.test/v1, http://d2.test/v1], api_keys: [x, y] }
models:
  list: [b/x, c/x, b/y]
  pool: { strategy: weighted, targets: [{ target: b/x, weight: 3 }, b/y] }
  implied: [{ target: b/x, weight: 2 }, b/y]
  fast: { strategy: fastest, targets: [b/x, b/y] }
  nested: [pool, b/z]
  divided: { strategy: least_busy, targets: [{ target: pool, weight: 2 }, { target: b/z, weight: 4 }] }
  keys: [a/x, b/x]
  twice: { strategy: cheapest, targets: [b/x, b/x, { target: b/x, weight: 9 }] }
  "any-*": { strategy: weighted, targets: [{ target: b/*, weight: 3 }, b/y] }
`;

const directory = createDirectory(stateOf({ yaml: YAML }), new DemoTransport(0));

const show = (name: string): string[] =>
  directory
    .resolve(name, 'openai-chat')
    .map(({ label, tier, sharing, weight, isShared }) => `${tier} ${label} ${sharing} ${weight}${isShared ? ' shared' : ''}`);

describe('targets of a model name', () => {
  test.each<[string, string[]]>([
    ['b/x', ['0 b/x weighted 1']],
    [
      'list',
      ['0 b/x weighted 1', '1 c/x (address 1) weighted 0.5 shared', '1 c/x (address 2) weighted 0.5 shared', '2 b/y weighted 1'],
    ],
    ['pool', ['0 b/x weighted 3 shared', '0 b/y weighted 1 shared']],
    ['implied', ['0 b/x weighted 2 shared', '0 b/y weighted 1 shared']],
    ['fast', ['0 b/x fastest 1 shared', '0 b/y fastest 1 shared']],
    ['nested', ['0 b/x weighted 3 shared', '0 b/y weighted 1 shared', '1 b/z weighted 1']],
    ['divided', ['0 b/x least_busy 1.5 shared', '0 b/y least_busy 0.5 shared', '0 b/z least_busy 4 shared']],
    ['keys', ['0 a/x (key 1) weighted 0.5 shared', '0 a/x (key 2) weighted 0.5 shared', '1 b/x weighted 1']],
    ['twice', ['0 b/x cheapest 1']],
    ['any-z', ['0 b/any-z weighted 3 shared', '0 b/y weighted 1 shared']],
  ])('%s', (name, targets) => expect(show(name)).toEqual(targets));

  test('every key is used at every address, and goes nowhere else', () => {
    const candidates = directory.resolve('d/m', 'openai-chat');
    expect(candidates.map(({ origin, provider }) => `${origin} ${provider.base_url} ${provider.api_key}`)).toEqual([
      'http://d1.test http://d1.test/v1 x',
      'http://d1.test http://d1.test/v1 y',
      'http://d2.test http://d2.test/v1 x',
      'http://d2.test http://d2.test/v1 y',
    ]);
    expect(new Set(candidates.map(({ key }) => key)).size).toBe(4);
    expect(new Set(candidates.map(({ endpointId }) => endpointId)).size).toBe(4);
  });

  test('keys of breakers do not contain the secret, and stay the same when a reload changes the order of keys', () => {
    const reload = (keys: string): Map<string | undefined, string> => {
      const yaml = `providers: { a: { protocol: openai-chat, base_url: http://a.test/v1, api_keys: [${keys}] } }`;
      const { resolve } = createDirectory(stateOf({ yaml }), new DemoTransport(0));
      return new Map(resolve('a/m', 'openai-chat').map(({ provider, key }) => [provider.api_key, key]));
    };
    const before = reload('first, second');
    const after = reload('third, second, first');
    for (const secret of ['first', 'second']) {
      expect(after.get(secret)).toBe(before.get(secret));
      expect(before.get(secret)).toMatch(/^a\/m#[0-9a-f]{12}$/);
    }
    expect(new Set(after.values()).size).toBe(3);
  });

  test('all keys are redacted, and all private hosts', () => {
    const secrets = new SecretRegistry();
    const yaml =
      'providers: { a: { protocol: openai-chat, base_urls: [http://a1.test/v1, http://a2.test/v1], api_keys: [first-secret-key, second-secret-key] } }';
    const state = stateOf({ yaml, secrets });
    expect(secrets.redact('x first-secret-key second-secret-key')).not.toMatch(/first|second/);
    expect(createDirectory(state, new DemoTransport(0)).privateHosts).toEqual(['a1.test', 'a2.test']);
  });
});

describe('settings that cannot be used', () => {
  const reject = (yaml: string): string[] => {
    try {
      return stateOf({ yaml }).warnings.map(({ message }) => `warning: ${message}`);
    } catch (error) {
      if (error instanceof ConfigError) return error.problems.map(({ path, message }) => `${path.join('.')}: ${message}`);
      throw error;
    }
  };

  const many = (count: number, write: (i: number) => string): string => `[${Array.from({ length: count }, (_, i) => write(i))}]`;

  test.each<[string, string[]]>([
    [
      'providers: { groq: { api_key: a, api_keys: [b] } }',
      ['providers.groq.api_keys: cannot be combined with api_key; use one of them'],
    ],
    [
      'providers: { groq: { api_key: a, base_url: http://x.test, base_urls: [http://y.test] } }',
      ['providers.groq.base_urls: cannot be combined with base_url; use one of them'],
    ],
    [
      `providers: { groq: { base_urls: ${many(9, (i) => `http://h${i}.test`)}, api_keys: ${many(9, (i) => `k${i}`)} } }`,
      ['providers.groq: must have at most 64 combinations of base_urls and api_keys'],
    ],
    [
      'providers: { groq: { api_key: a } }\nrules: [{ when: { tools: true }, use: nowhere/x }]',
      ['rules.0.use: "nowhere/x" must be provider/model or a name of "models"'],
    ],
    [
      'models: { a: demo/echo }\nrules: [{ when: { tools: true }, use: groq/x }]',
      ['warning: no provider of "groq/x" is configured; the rule is skipped'],
    ],
    [
      'models: { a: { strategy: weighted, targets: [demo/echo, nowhere/x] } }',
      ['models.a.targets.1: unknown provider "nowhere"'],
    ],
  ])('%s', (yaml, problems) => expect(reject(yaml)).toEqual(problems));
});
