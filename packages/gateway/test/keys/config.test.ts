import { describe, expect, test } from 'vitest';
import { SecretRegistry } from '../../src/config/secrets.ts';
import { createKeyText } from '../../src/keys/key-text.ts';
import { stateOf } from '../config/world.ts';

const callers = (yaml: string, env = {}) => stateOf({ yaml, env }).keys.map(({ caller }) => caller);

describe('auth.keys', () => {
  test('texts have the names of their places, maps their own', () => {
    const yaml = `auth: { keys: [a, { name: alice, key: "\${KEY}", models: [gpt-*] }, b, { key: c }] }`;
    expect(callers(yaml, { KEY: 'of-alice' }).map(({ name }) => name)).toEqual(['key-1', 'alice', 'key-3', 'key-4']);
  });

  test('a key without a name has the same id in every place, and one that does not show the key', () => {
    const [first, second, third] = callers('auth: { keys: [one, two, { key: three, name: alice }] }');
    const [moved, named] = callers('auth: { keys: [two, { key: three, name: alice }] }');
    expect(moved).toMatchObject({ id: second?.id, name: 'key-1' });
    expect([third?.id, named?.id]).toEqual(['alice', 'alice']);
    expect(first?.id).toMatch(/^cfg-[0-9a-f]{16}$/);
    expect(first?.id).not.toBe(second?.id);
    expect(stateOf({ env: { SLUICE_KEYS: 'zero,two' } }).keys[1]?.caller.id).toBe(second?.id);
  });

  test('a map sets all that a key allows', () => {
    const [caller] = callers(`
auth:
  keys:
    - name: alice
      key: k
      models: [gpt-*, openai/*]
      budget: [20usd/month, 2usd/day]
      rpm: 60
      tpm: 100k
      concurrency: 8
      expires: 2027-01-31
      ip: 10.0.0.0/8
      tags: [team=a]
`);
    expect(caller).toEqual({
      id: 'alice',
      name: 'alice',
      tags: ['team=a'],
      policy: {
        models: ['gpt-*', 'openai/*'],
        budgets: [
          { micros: 20_000_000, period: 'month' },
          { micros: 2_000_000, period: 'day' },
        ],
        requestsPerMinute: 60,
        tokensPerMinute: 100_000,
        concurrency: 8,
        expiresAt: Date.parse('2027-01-31T00:00Z'),
        addresses: ['10.0.0.0/8'],
      },
    });
  });

  test.each([
    ['a name twice', '[{ name: a, key: x }, { name: a, key: y }]', 'has the name "a" of entry 1; names must differ'],
    ['the name of a place', '[{ name: key-2, key: x }, y]', 'has the name "key-2" of entry 1'],
    ['a key twice', '[{ name: a, key: x }, { name: b, key: x }]', 'is the same key as entry 1'],
    ['a bad name', '[{ name: "a b", key: x }]', 'auth.keys[0].name: must have 1 to 64 letters'],
    ['no key', '[{ name: a }]', 'auth.keys[0]'],
    ['a key with spaces', '[{ name: a, key: "x y" }]', 'auth.keys[0].key: must be printable ASCII'],
    ['a text with spaces', '["x y"]', 'must be printable ASCII'],
    ['a bad budget', '[{ key: x, budget: 20 eur }]', 'auth.keys[0].budget: must be an amount and a period'],
    ['a bad address', '[{ key: x, ip: [localhost] }]', 'auth.keys[0].ip: must be an address or a range'],
    [
      'a duration, which the file cannot count from',
      '[{ key: x, expires: 90d }]',
      'auth.keys[0].expires: must be a time such as',
    ],
    ['an unknown setting', '[{ key: x, modles: a }]', 'modles'],
    ['several at once', '[{ key: x, rpm: 0, tpm: y }]', 'auth.keys[0].tpm: must be a whole number'],
  ])('%s is refused', (_, keys, message) => {
    expect(() => stateOf({ yaml: `auth: { keys: ${keys} }` })).toThrow(message);
  });

  test('keys of the environment have the names of their places', () => {
    const { keys } = stateOf({ env: { SLUICE_KEYS: 'a,b,a' } });
    expect(keys.map(({ caller }) => caller.name)).toEqual(['key-1', 'key-2']);
  });
});

describe('redaction', () => {
  test('a client key is masked wherever it is, though the process does not know it', () => {
    const { text } = createKeyText();
    const secrets = new SecretRegistry();
    for (const sample of [text, `key=${text}&a`, `{"key":"${text}"}`, `Bearer ${text}`, `x${text}`.slice(1), `"${text}x"`])
      expect(secrets.redact(sample)).not.toContain(text.slice(24, 60));
    expect(secrets.redact(`no ${text} here`)).toBe('no *** here');
  });

  test.each(['sluice_console', 'sluice_requests_total', `sluice_${'a'.repeat(16)}`])('%s is not a key', (text) =>
    expect(new SecretRegistry().redact(text)).toBe(text),
  );
});
