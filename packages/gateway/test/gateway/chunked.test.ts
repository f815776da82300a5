import { createServer } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LAST_CHUNK, writeChunk } from '../../src/exchange/client-stream.ts';

/** Around what is copied and what is not. */
const SIZES = [1, 15, 16, 255, 4096, 16 * 1024, 16 * 1024 + 1, 100_000];

const bytesOf = (length: number): Uint8Array => Uint8Array.from({ length }, (_, i) => (i * 7) % 256);

const server = createServer((_, response) => {
  response.writeHead(200, { 'content-type': 'application/octet-stream' });
  response.chunkedEncoding = false;
  for (const size of SIZES) writeChunk(response, bytesOf(size));
  response.end(LAST_CHUNK, 'latin1');
});
let port = 0;

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  port = typeof address === 'object' && address ? address.port : 0;
});
afterAll(() => void server.close());

describe('a body with chunked encoding', () => {
  test('decodes to the same bytes', async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/`);
    const expected = Buffer.concat(SIZES.map(bytesOf));
    expect(Buffer.from(await answer.arrayBuffer()).equals(expected)).toBe(true);
  });

  test('leaves the connection usable for the next request', async () => {
    const socket = connect(port, '127.0.0.1');
    const ask = (): Promise<number> =>
      new Promise((resolve) => {
        let length = 0;
        const read = (data: Buffer): void => {
          length += data.length;
          if (!data.toString('latin1').endsWith(LAST_CHUNK)) return;
          socket.off('data', read);
          resolve(length);
        };
        socket.on('data', read);
        socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
      });
    expect(await ask()).toBe(await ask());
    socket.destroy();
  });
});
