import { describe, expect, test } from 'vitest';
import { stateOf } from '../config/world.ts';

describe('admin and metrics in the configuration', () => {
  test.each([
    ['admin: { key: from-the-file }', {}, 'from-the-file'],
    ['admin: { key: from-the-file }', { SLUICE_ADMIN_KEY: 'from-the-environment' }, 'from-the-file'],
    ['admin: { key: env.MINE }', { MINE: 'by-reference' }, 'by-reference'],
    ['log: { level: info }', { SLUICE_ADMIN_KEY: ' from-the-environment ' }, 'from-the-environment'],
    ['log: { level: info }', { SLUICE_ADMIN_KEY: '' }, undefined],
  ])('%s with %o', (yaml, env, expected) => {
    const { adminKey } = stateOf({ yaml, env });
    expect(adminKey?.reveal()).toBe(expected);
    expect(JSON.stringify(adminKey) ?? '').not.toContain('from');
  });

  test.each([
    ['metrics: { listen: "127.0.0.1:9464" }', { host: '127.0.0.1', port: 9464 }],
    ['metrics: { listen: "[::1]:0" }', { host: '::1', port: 0 }],
    ['metrics: { listen: "localhost:1" }', { host: 'localhost', port: 1 }],
    ['metrics: { key: x }', undefined],
  ])('%s', (yaml, expected) => expect(stateOf({ yaml }).metricsListen).toEqual(expected));

  test.each([
    ['metrics: { listen: 9464 }', 'must be host:port'],
    ['metrics: { listen: ":9464" }', 'must be host:port'],
    ['metrics: { listen: "::1:9464" }', 'must be host:port'],
    ['metrics: { listen: "a:99999" }', 'must be host:port'],
    ['admin: { keys: [x] }', 'unknown key "keys"; did you mean "key"?'],
    ['admin: { key: "a b" }', 'printable ASCII'],
    ['{ auth: { keys: [same] }, admin: { key: same } }', 'must differ from all other keys'],
    ['{ admin: { key: same }, metrics: { key: same } }', 'must differ from all other keys'],
    ['{ listen: { host: 0.0.0.0 }, auth: { keys: [a-long-client-key-0123] }, admin: { key: short } }', 'at least 16 characters'],
  ])('%s is rejected', (yaml, message) => expect(() => stateOf({ yaml })).toThrow(message));

  test('a key of the environment that no header can carry is rejected', () =>
    expect(() => stateOf({ env: { SLUICE_ADMIN_KEY: 'two words' } })).toThrow('SLUICE_ADMIN_KEY must be printable ASCII'));
});
