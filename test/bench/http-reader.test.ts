import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ResponseReader } from '../../bench/gateway/http-reader.js';

const bodies = fc.uint8Array({ maxLength: 400 });

/** The bytes, cut at the given places. */
function split(bytes: Buffer, places: number[]): Buffer[] {
  const cuts = [...new Set(places.map((place) => Math.floor(place * bytes.length)))].sort((a, b) => a - b);
  return [0, ...cuts].map((from, i) => bytes.subarray(from, cuts[i] ?? bytes.length));
}
const places = fc.array(fc.double({ min: 0, max: 0.999, noNaN: true }), { maxLength: 30 });

function read(pieces: Buffer[]): { reader: ResponseReader; body: Buffer } {
  const reader = new ResponseReader();
  const parts = pieces.flatMap((piece) => {
    const found = reader.push(piece);
    // A socket may use its memory for the next piece; parts of bodies are consumed at once.
    const copies = found.map((part: Buffer) => Buffer.from(part));
    piece.fill(0);
    return copies;
  });
  return { reader, body: Buffer.concat(parts) };
}

const withLength = (body: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nContent-Length: ${body.length}\r\n\r\n`), body]);

/** The body in chunks of these sizes; the last chunk has the rest. */
function inChunks(body: Uint8Array, sizes: number[], extension: string): Buffer {
  const parts = [Buffer.from(`HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\n`)];
  let from = 0;
  for (const size of [...sizes, body.length]) {
    const chunk = body.subarray(from, from + size);
    from += chunk.length;
    if (chunk.length > 0)
      parts.push(Buffer.from(`${chunk.length.toString(16)}${extension}\r\n`), Buffer.from(chunk), Buffer.from('\r\n'));
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')]);
}
const sizes = fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 10 });
const extensions = fc.constantFrom('', ';name=value');

describe('a response, in whatever pieces it arrives', () => {
  test('with a length: the body is the same', () => {
    fc.assert(
      fc.property(bodies, places, (body, cuts) => {
        const { reader, body: found } = read(split(withLength(body), cuts));
        expect(found.equals(body)).toBe(true);
        expect([reader.status, reader.isWhole]).toEqual([200, true]);
      }),
    );
  });

  test('in chunks: the body is the same', () => {
    fc.assert(
      fc.property(bodies, sizes, extensions, places, (body, lengths, extension, cuts) => {
        const { reader, body: found } = read(split(inChunks(body, lengths, extension), cuts));
        expect(found.equals(body)).toBe(true);
        expect([reader.status, reader.isWhole]).toEqual([201, true]);
      }),
    );
  });

  test('byte by byte: it is whole with its last byte, and not before', () => {
    fc.assert(
      fc.property(bodies, sizes, fc.boolean(), (body, lengths, isChunked) => {
        const bytes = isChunked ? inChunks(body, lengths, '') : withLength(body);
        const reader = new ResponseReader();
        const states = [...bytes].map((byte) => {
          reader.push(Buffer.from([byte]));
          return reader.isWhole;
        });
        expect(states.indexOf(true)).toBe(bytes.length - 1);
      }),
    );
  });

  test('bytes behind the response are not part of its body', () => {
    const { reader, body } = read([Buffer.concat([withLength(Buffer.from('ok')), Buffer.from('HTTP/1.1 500 Error')])]);
    expect([body.toString(), reader.status, reader.isWhole]).toEqual(['ok', 200, true]);
  });

  test('the status is known before the body', () => {
    const reader = new ResponseReader();
    reader.push(Buffer.from('HTTP/1.1 429 Too Many Requests\r\ncontent-length: 5\r\n\r\n'));
    expect([reader.status, reader.isWhole]).toEqual([429, false]);
  });
});
