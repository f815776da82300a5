import { inspect } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { redactPatterns } from '../../src/config/secret-patterns.ts';
import { Secret, SecretRegistry } from '../../src/config/secrets.ts';
import { createAddressRedact, createRedact } from '../../src/observe/redact.ts';

const VALUE = 'c4nary+Se/cret "quoted"';
const secret = new Secret(VALUE);

describe('a secret', () => {
  test.each([
    ['String', String(secret)],
    ['template', `${secret}`],
    ['concatenation', ` ${secret}`.trim()],
    ['JSON', JSON.stringify({ secret })],
    ['inspect', inspect({ nested: [secret] }, { showHidden: true, depth: 9 })],
    ['spread', JSON.stringify({ ...secret })],
    ['error', new Error(`bad ${secret}`).stack ?? ''],
    ['keys', Object.getOwnPropertyNames(secret).join()],
    ['structured clone', inspect(structuredClone({ ...secret }))],
  ])('is not in its %s', (_, text) => expect(text).not.toContain('c4nary'));

  test('returns its value', () => expect(secret.reveal()).toBe(VALUE));
});

const registry = new SecretRegistry();
registry.add(secret);
registry.add(new Secret('none'));

describe('live secrets', () => {
  test.each([
    ['raw', VALUE],
    ['in a URL', encodeURIComponent(VALUE)],
    ['in JSON', JSON.stringify({ key: VALUE })],
    ['in hex', Buffer.from(VALUE).toString('hex')],
    ['in HEX', Buffer.from(VALUE).toString('hex').toUpperCase()],
    ['in base64', Buffer.from(VALUE).toString('base64')],
    ['in base64url', Buffer.from(VALUE).toString('base64url')],
    ['in base64, after one byte', Buffer.from(`a${VALUE}b`).toString('base64')],
    ['in base64, after two bytes', Buffer.from(`ab${VALUE}`).toString('base64')],
    ['in basic authorization', Buffer.from(`user:${VALUE}`).toString('base64')],
  ])('are redacted %s', (_, text) => {
    const clean = registry.redact(`before ${text} after`);
    expect(clean).toContain('***');
    expect(clean).toMatch(/^before .* after$/s);
    // Only what a neighbouring byte has a share in may be left.
    const left = clean.replace('before ', '').replace(' after', '').replaceAll('***', '');
    expect(left.length).toBeLessThan(text.length / 2);
    for (let at = 0; at + 8 <= VALUE.length; at++) expect(clean).not.toContain(VALUE.slice(at, at + 8));
  });

  test('a placeholder redacts nothing', () => expect(registry.redact('there are none')).toBe('there are none'));

  test('any value, in any text', () => {
    const value = fc.string({ minLength: 8, maxLength: 40, unit: 'binary' }).filter((text) => !/^\**$/.test(text));
    fc.assert(
      fc.property(value, fc.string(), fc.string(), (text, before, after) => {
        const one = new SecretRegistry();
        one.add(new Secret(text));
        expect(one.redact(`${before}${text}${after}`)).not.toContain(text);
        expect(one.redact(JSON.stringify({ before, text }))).not.toContain(JSON.stringify(text).slice(1, -1));
      }),
    );
  });

  test('a secret that is a prefix of another leaves no tail', () => {
    const two = new SecretRegistry();
    two.add(new Secret('abcdefgh'));
    two.add(new Secret('abcdefghijkl'));
    expect(two.redact('abcdefghijkl')).toBe('***');
  });
});

describe('texts that look like secrets', () => {
  test.each([
    ['sk-proj-abc123DEF456', '***'],
    ['key sk-ant-api03-abcdefgh_ijk.', 'key ***.'],
    ['AIzaSyA1234567890abcdefghijklmnop', '***'],
    ['gsk_abcdefghijklmnop1234', '***'],
    ['authorization: Bearer abc.def-123_xyz', 'authorization: Bearer ***'],
    ['{"Authorization":"bearer AbCdEfGhIj"}', '{"Authorization":"bearer ***"}'],
    ['Basic dXNlcjpwYXNzd29yZA==', 'Basic ***'],
    ['GET /v1beta/models?key=abc123&alt=sse', 'GET /v1beta/models?key=***&alt=sse'],
    ['?alt=sse&access_token=abc', '?alt=sse&access_token=***'],
    ['x-api-key: abcdef123', 'x-api-key: ***'],
    ['{"x-goog-api-key":"abcdef123"}', '{"x-goog-api-key":"***"}'],
    ['{"api_key": "abcdef123"}', '{"api_key": "***"}'],
    ['https://user:hunter2@example.com/x', 'https://***@example.com/x'],
    // Words are not secrets: clients match what an upstream says.
    ['Bearer authentication is required', 'Bearer authentication is required'],
    ['use Authorization: Bearer, x-api-key or x-goog-api-key', 'use Authorization: Bearer, x-api-key or x-goog-api-key'],
    ['the sk- prefix', 'the sk- prefix'],
    ['risk-assessment-model', 'risk-assessment-model'],
    ['Incorrect API key provided', 'Incorrect API key provided'],
    ['api_key: must be text', 'api_key: must be text'],
    ['mail me@example.com', 'mail me@example.com'],
  ])('%s', (text, clean) => expect(redactPatterns(text)).toBe(clean));

  test.each(['sk-', 'AIza', 'Bearer ', '?key=', '://', 'x-api-key: ', 'a@', ' \t', 'Basic a', '"api_key":"'])(
    'a megabyte of %j takes linear time',
    (piece) => {
      const text = piece.repeat(Math.ceil(1e6 / piece.length));
      // In quadratic time, this would outlast the test's own limit.
      expect(redactPatterns(text)).toBeTypeOf('string');
      expect(redactPatterns(`${piece}${'a'.repeat(1e6)}`)).toBeTypeOf('string');
    },
  );
});

describe('upstream texts', () => {
  const redact = createAddressRedact(createRedact(new SecretRegistry()));

  test.each([
    ['key sk-proj-****wxyz is wrong', 'key *** is wrong'],
    ['key ****wxyz is wrong', 'key *** is wrong'],
    ['******wxyz', '***'],
    ['a line: ***** and **bold**', 'a line: ***** and **bold**'],
  ])('shows no partly redacted key: %s', (text, clean) => expect(redact(text)).toBe(clean));

  test.each(['*', '***', 'a', 'a***', '-*', '10.', '127.0.0.1 ', 'fd00:', '[::', 'a.', 'a.local.', 'ip-1', 'http://a'])(
    'is redacted in linear time: a megabyte of %j',
    (piece) => {
      const text = piece.repeat(Math.ceil(1e6 / piece.length));
      // In quadratic time, this would outlast the test's own limit.
      expect(redact(`${text} ***`)).toBeTypeOf('string');
    },
  );
});
