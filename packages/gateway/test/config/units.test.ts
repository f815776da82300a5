import { expect, test } from 'vitest';
import { readDuration, readSize } from '../../src/config/schema-values.ts';
import { expandReferences, isReference, readEnv } from '../../src/config/secrets.ts';

test.each([
  ['500ms', 500],
  ['5s', 5000],
  ['1.5s', 1500],
  ['2m', 120_000],
  ['1 h', 3_600_000],
  ['30', 30_000],
  ['0s', 0],
  ['5 parsecs', undefined],
  ['-5s', undefined],
  ['', undefined],
  ['5constructor', undefined],
])('%s lasts %s ms', (text, milliseconds) => expect(readDuration(text)).toBe(milliseconds));

test.each([
  ['1024', 1024],
  ['16KiB', 16_384],
  ['32MiB', 33_554_432],
  ['1MB', 1_000_000],
  ['1.5kB', 1500],
  ['2GiB', 2_147_483_648],
  ['16KIB', undefined],
  ['KiB', undefined],
])('%s has %s bytes', (text, bytes) => expect(readSize(text)).toBe(bytes));

const ENV = { KEY: 'value', PADDED: ' value\n', EMPTY: '', BLANK: '  ' };

test.each([
  ['plain', { text: 'plain', isReference: false }],
  [`\${KEY}`, { text: 'value', isReference: true }],
  ['env.KEY', { text: 'value', isReference: true }],
  ['os.environ/KEY', { text: 'value', isReference: true }],
  [`\${PADDED}`, { text: 'value', isReference: true }],
  [`https://\${KEY}.example.com/\${KEY}`, { text: 'https://value.example.com/value', isReference: false }],
  ['$KEY', { text: '$KEY', isReference: false }],
  ['an env.KEY', { text: 'an env.KEY', isReference: false }],
  [`\${NOPE}`, { fault: 'the environment variable NOPE is not set; set it, or change the reference' }],
  ['env.NOPE', { fault: 'the environment variable NOPE is not set; set it, or change the reference' }],
  ['os.environ/NOPE', { fault: 'the environment variable NOPE is not set; set it, or change the reference' }],
  [`a\${NOPE}b\${KEY}`, { fault: 'the environment variable NOPE is not set; set it, or change the reference' }],
  [`\${EMPTY}`, { fault: 'the environment variable EMPTY is not set; set it, or change the reference' }],
  [`\${BLANK}`, { fault: 'the environment variable BLANK is not set; set it, or change the reference' }],
  [`\${toString}`, { fault: 'the environment variable toString is not set; set it, or change the reference' }],
  [`\${sk-live-1}`, { fault: `\${…} must contain the name of an environment variable` }],
  [`\${}`, { fault: `\${…} must contain the name of an environment variable` }],
])('%s', (text, expanded) => expect(expandReferences(text, ENV)).toEqual(expanded));

test.each([
  [`\${KEY}`, true],
  ['env.KEY', true],
  ['os.environ/KEY', true],
  [`\${KEY}x`, false],
  [`\${sk-live}`, false],
  ['key', false],
])('%s is only a reference: %s', (text, is) => expect(isReference(text)).toBe(is));

test('variables are own properties', () => expect(readEnv({}, 'constructor')).toBeUndefined());
