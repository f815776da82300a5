import { describe, expect, test } from 'vitest';
import { ChunkReader } from '../../src/sse/bytes.ts';

const CR = 0x0d;
const LF = 0x0a;
const LETTER = 0x61;
/** Control characters and others whose low bits are those of a line end. */
const LOOKALIKES = [0x8a, 0x8d, 0x0b, 0x09, 0x00, 0x0e, 0x0f, 0x10, 0x1a, 0x1d, 0x2a, 0x4a, 0xff, 0x0c, 0x80, 0x7f, 0x20];

/** A chunk as sockets give it: part of a larger buffer, at any alignment, with bytes around it that must not be read. */
function chunkOf(size: number, lead: number, byteAt: (at: number) => number): Uint8Array {
  const buffer = new Uint8Array(size + 16).map((_, at) => (at % 2 === 0 ? LF : 0xff));
  const chunk = buffer.subarray(4 + lead, 4 + lead + size);
  for (let at = 0; at < size; at++) chunk[at] = byteAt(at);
  return chunk;
}

function opened(chunk: Uint8Array): ChunkReader {
  const reader = new ChunkReader();
  reader.open(chunk);
  return reader;
}

// From 128 bytes on, chunks are searched by words.
const SHAPES = [127, 128, 150].flatMap((size) => [0, 1, 2, 3].map((lead) => [size, lead] as const));

describe.each(SHAPES)('%i bytes at alignment %i', (size, lead) => {
  test.each([
    ['letters', (at: number) => LETTER + (at % 26)],
    ['what looks like a line end', (at: number) => LOOKALIKES[at % LOOKALIKES.length] ?? 0],
  ])('the line end is found among %s', (_, other) => {
    for (let place = 0; place <= size; place++) {
      const chunk = chunkOf(size, lead, (at) => (at === place ? [LF, CR][place % 2] : undefined) ?? other(at));
      const reader = opened(chunk);
      for (const from of [0, place - 5, place - 1, place]) if (from >= 0) expect(reader.lineEnd(chunk, from)).toBe(place);
      expect(reader.lineEnd(chunk, Math.min(place + 1, size))).toBe(size);
    }
  });

  test('text is read where all is ASCII', () => {
    for (let place = 0; place <= size; place++) {
      const chunk = chunkOf(size, lead, (at) => (at === place ? [0x80, 0xff][place % 2] : undefined) ?? LETTER);
      // Four bytes are looked at together: what stands right before the one that is not ASCII may count as not ASCII, too.
      for (const [from, to] of [
        [0, place - 3],
        [place - 4, place - 3],
        [place + 1, size],
      ] as const) {
        if (from < 0 || from > to) continue;
        const text = size < 128 ? undefined : 'a'.repeat(to - from);
        expect(opened(chunk).ascii(chunk, from, to), `${place}: ${from} to ${to}`).toBe(text);
      }
      if (place === size) continue;
      for (const from of [0, place]) expect(opened(chunk).ascii(chunk, from, place + 1), `${place}: ${from}`).toBeUndefined();
    }
  });
});

test('lines are read one after the other', () => {
  const chunk = chunkOf(5000, 1, (at) => LETTER + (at % 26));
  const reader = opened(chunk);
  for (const [from, to] of [
    [0, 0],
    [0, 1],
    [0, 2048],
    [100, 2148],
    [2000, 4048],
    [2952, 5000],
    [4999, 5000],
    [5000, 5000],
  ] as const)
    expect(reader.ascii(chunk, from, to)).toBe(new TextDecoder().decode(chunk.subarray(from, to)));
});

test.each<[string, (reader: ChunkReader, chunk: Uint8Array) => string | undefined]>([
  ['more than 2048 bytes', (reader, chunk) => reader.ascii(chunk, 0, 2049)],
  ['bytes that are not the chunk', (reader, chunk) => reader.ascii(chunk.slice(), 0, 10)],
  [
    'a chunk that is closed',
    (reader, chunk) => {
      reader.close();
      return reader.ascii(chunk, 0, 10);
    },
  ],
])('%s have to be decoded by themselves', (_, read) => {
  const chunk = chunkOf(5000, 0, () => LETTER);
  expect(read(opened(chunk), chunk)).toBeUndefined();
});

test('chunks of all sizes, one after the other', () => {
  const reader = new ChunkReader();
  for (const [size, letter] of [
    [300, 0x62],
    [10, 0x63],
    [200, 0x64],
    [5000, 0x65],
    [128, 0x66],
  ] as const) {
    const chunk = chunkOf(size, size % 4, (at) => (at === size - 2 ? LF : letter));
    reader.open(chunk);
    expect(reader.lineEnd(chunk, 0)).toBe(size - 2);
    expect(reader.ascii(chunk, 0, 1)).toBe(size >= 128 ? String.fromCharCode(letter) : undefined);
    reader.close();
  }
});
