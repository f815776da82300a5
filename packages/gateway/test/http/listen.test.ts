import { createServer } from 'node:http';
import { describe, expect, it } from 'vitest';
import { LOOPBACK, listen, stopListening } from '../../src/http/listen.ts';

describe('listen', () => {
  it('resolves with the URL of the server', async () => {
    const server = createServer((_, response) => response.end('here'));
    const url = await listen(server, { host: LOOPBACK, port: 0 });
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(await (await fetch(url)).text()).toBe('here');
    server.closeAllConnections();
    await stopListening(server);
  });

  it('rejects when the port is in use', async () => {
    const first = createServer();
    const port = Number(new URL(await listen(first, { host: LOOPBACK, port: 0 })).port);
    await expect(listen(createServer(), { host: LOOPBACK, port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
    await stopListening(first);
  });

  it('reports later errors to its caller', async () => {
    const server = createServer();
    const errors: Error[] = [];
    await listen(server, { host: LOOPBACK, port: 0, onAcceptError: (error) => errors.push(error) });
    const error = new Error('EMFILE');
    server.emit('error', error);
    expect(errors).toEqual([error]);
    await stopListening(server);
  });
});
