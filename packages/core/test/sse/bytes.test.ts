import { expect, test } from 'vitest';
import { ByteBuffer } from '../../src/sse/bytes.ts';

const bytes = (count: number): Uint8Array => Uint8Array.from({ length: count }, (_, at) => at % 251);

test('pieces of any size, one behind the other', () => {
  const buffer = new ByteBuffer();
  const source = bytes(3000);
  let from = 0;
  for (const size of [0, 1, 23, 24, 25, 26, 200, 500, 1, 2000]) {
    buffer.append(source, from, from + size);
    from += size;
    expect(buffer.length).toBe(from);
    expect(buffer.bytes.subarray(0, from)).toEqual(source.subarray(0, from));
  }
});

// Were it to grow by less, a line that comes byte by byte would be copied again and again.
test('it doubles when it is full', () => {
  const buffer = new ByteBuffer();
  const sizes = new Set<number>();
  for (let count = 0; count <= 1024; count++) {
    sizes.add(buffer.bytes.length);
    buffer.append(Uint8Array.of(1), 0, 1);
  }
  expect([...sizes]).toEqual([0, 256, 512, 1024]);
  expect(buffer.bytes).toHaveLength(2048);
});

test.each([
  [1, 256],
  [1 << 20, 1 << 20],
  [(1 << 20) + 1, 0],
])('after %i bytes it keeps %i', (count, kept) => {
  const buffer = new ByteBuffer();
  buffer.append(new Uint8Array(count), 0, count);
  buffer.clear();
  expect([buffer.length, buffer.bytes.length]).toEqual([0, kept]);
  buffer.append(bytes(3), 1, 3);
  expect(buffer.bytes.subarray(0, buffer.length)).toEqual(Uint8Array.of(1, 2));
  buffer.free();
  expect([buffer.length, buffer.bytes.length]).toEqual([0, 0]);
});
