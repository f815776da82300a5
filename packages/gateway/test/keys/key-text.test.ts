import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createKeyText, parseKeyId } from '../../src/keys/key-text.ts';

const FORM = /^sluice_[0-9A-Za-z]{16}_[0-9A-Za-z]{43}[0-9A-Za-z]{6}$/;

describe('a key', () => {
  test('has the form of the design, and its id can be read from it', () => {
    for (let i = 0; i < 1000; i++) {
      const { id, text } = createKeyText();
      expect(text).toMatch(FORM);
      expect(parseKeyId(text)).toBe(id);
    }
  });

  test.each([
    ['the smallest secret', Buffer.alloc(32), '0'.repeat(43)],
    ['the largest secret', Buffer.alloc(32, 0xff), undefined],
  ])('%s keeps its length', (_, bytes, secret) => {
    const { text } = createKeyText('0123456789abcdef', () => bytes);
    expect(text).toMatch(FORM);
    if (secret !== undefined) expect(text.slice(24, 67)).toBe(secret);
    expect(parseKeyId(text)).toBe('0123456789abcdef');
  });

  test('20,000 keys have different ids and secrets', () => {
    const keys = Array.from({ length: 20_000 }, () => createKeyText());
    expect(new Set(keys.map(({ id }) => id)).size).toBe(keys.length);
    expect(new Set(keys.map(({ text }) => text.slice(24))).size).toBe(keys.length);
  });

  test('a rotated key keeps its id', () => {
    const { id, text } = createKeyText();
    const next = createKeyText(id);
    expect([next.id, parseKeyId(next.text)]).toEqual([id, id]);
    expect(next.text).not.toBe(text);
  });
});

describe('other texts are refused by their form or checksum', () => {
  const { text } = createKeyText();

  test('a key with any one character changed', () => {
    for (let at = 0; at < text.length; at++)
      for (const other of 'aZ0_') {
        if (text[at] === other) continue;
        expect(parseKeyId(text.slice(0, at) + other + text.slice(at + 1))).toBeUndefined();
      }
  });

  test.each([
    ['empty', ''],
    ['the prefix', 'sluice_'],
    ['a shorter one', text.slice(0, -1)],
    ['a longer one', `${text}0`],
    ['a space before', ` ${text.slice(1)}`],
    ['a line feed at the end', `${text.slice(0, -1)}\n`],
    ['upper case', text.toUpperCase()],
    ['quotes', `sluice_' OR 1=1 --_${'a'.repeat(49)}`],
    ['64 KiB', 'a'.repeat(65_536)],
    ['64 KiB after the prefix', `sluice_${'a'.repeat(65_536)}`],
    ['NUL', `sluice_${'\0'.repeat(66)}`],
    ['other digits', text.replace(/[0-9]/, '\u0663')],
  ])('%s', (_, other) => expect(parseKeyId(other)).toBeUndefined());

  test('any text', () => {
    fc.assert(fc.property(fc.string(), (other) => parseKeyId(other) === undefined));
    const digits = fc.stringMatching(/^[0-9A-Za-z]{65}$/);
    fc.assert(fc.property(digits, (other) => parseKeyId(`sluice_${other.slice(0, 16)}_${other.slice(16)}`) === undefined));
  });
});
