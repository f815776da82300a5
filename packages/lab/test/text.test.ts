import { describe, expect, test } from 'vitest';
import { oneLine, printable, safeJson } from '../src/text.ts';

const between = (first: number, last: number): string[] =>
  Array.from({ length: last - first + 1 }, (_, i) => String.fromCharCode(first + i));

/** Characters that control a terminal, end a line for some readers, or reorder text (Unicode's Bidi_Control). */
const CONTROLS = [
  ...between(0x7f, 0x9f),
  '\u2028',
  '\u2029',
  '\u061c',
  '\u200e',
  '\u200f',
  ...between(0x202a, 0x202e),
  ...between(0x2066, 0x2069),
];

const C0 = between(0, 0x1f).filter((char) => !'\t\n\r'.includes(char));

const escapeOf = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;

describe.each([...C0, ...CONTROLS].map((char) => ({ char, name: escapeOf(char) })))('$name', ({ char, name }) => {
  test('is escaped in text for a terminal', () => {
    expect(printable(`a${char}b`)).toBe(`a${name}b`);
    expect(oneLine(`a${char}b`)).toBe(`a${name}b`);
  });

  test('is escaped in JSON, which keeps its value', () => {
    const json = safeJson(JSON.stringify({ [char]: char }));
    expect(json).not.toContain(char);
    expect(JSON.parse(json)).toEqual({ [char]: char });
  });
});

test('ordinary text is unchanged', () => {
  const text = 'naïve 語 😀 שלום\u200d\n\tend';
  expect(printable(text)).toBe(text);
  expect(safeJson(JSON.stringify(text))).toBe(JSON.stringify(text));
  expect(oneLine('a\tb\r\nc')).toBe('a\\tb\\r\\nc');
});
