import fc from 'fast-check';

/** What event streams are made of, and what only looks like it. */
const TOKENS = [
  ...['data', 'data:', 'data: ', 'data: {"a":1}', 'data: [DONE]', 'event', 'event: e', 'event:', 'id: 1', 'id', 'id: a\0b'],
  ...['retry: 5', 'retry: soon', ': comment', ':', 'unknown: x', 'error: {}', 'event: error', 'Data: no', ' data: no'],
  ...['\n', '\n', '\n', '\n\n', '\n\n', '\r', '\r\n', '\r\n\r\n', '\r\r'],
  ...[' ', '\t', '\0', '\ufeff', 'é', '世👩', '\u2028', 'word', '{', '}', '[', ']', '"', '{"b":[2]}', '[{"c":3},', ',', '\\'],
  'x'.repeat(140),
  '€'.repeat(60),
];

/** A body of them, and bytes now and then that are no text. */
export const soup: fc.Arbitrary<Uint8Array> = fc
  .array(
    fc.oneof(
      { weight: 40, arbitrary: fc.constantFrom(...TOKENS).map((token) => new TextEncoder().encode(token)) },
      { weight: 1, arbitrary: fc.uint8Array({ minLength: 1, maxLength: 3 }) },
    ),
    { maxLength: 40 },
  )
  .map((pieces) => Buffer.concat(pieces));
