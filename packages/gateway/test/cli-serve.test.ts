import { createServer } from 'node:net';
import { describe, expect, test } from 'vitest';
import { explainListenError } from '../src/cli/serve.ts';
import { run } from './fake-io.ts';

describe('an address that cannot be listened on', () => {
  test.each([
    ['serve', ['serve', '--port']],
    ['replay', ['replay', 'examples/broken-stream.sse', '--port']],
  ])('%s reports the port that is in use', async (_, argv) => {
    const other = createServer();
    const port = await new Promise<number>((resolve) =>
      other.listen(0, '127.0.0.1', () => {
        const address = other.address();
        resolve(typeof address === 'object' && address ? address.port : 0);
      }),
    );
    const { code, stderr } = await run([...argv, String(port)]);
    other.close();
    expect(code).toBe(2);
    expect(stderr).toContain(`port ${port} on 127.0.0.1 is already in use; choose another with --port`);
  });

  test('serve reports an address that this machine does not have', async () => {
    const env = { SLUICE_KEYS: 'client-key-0123456789' };
    const { code, stderr } = await run(['serve', '--port', '0', '--host', '192.0.2.1'], { env });
    expect(code).toBe(2);
    expect(stderr).toContain('this machine has no address 192.0.2.1; choose another with --host');
  });

  const listen = { syscall: 'listen', address: '0.0.0.0', port: 80 };

  test.each<[object, string | undefined]>([
    [{ code: 'EADDRINUSE', ...listen }, 'port 80 on 0.0.0.0 is already in use; choose another with --port'],
    [{ code: 'EACCES', ...listen }, 'port 80 on 0.0.0.0 needs more permissions; choose another with --port, such as 4141'],
    [{ code: 'EADDRNOTAVAIL', ...listen }, 'this machine has no address 0.0.0.0; choose another with --host'],
    [
      { code: 'ENOTFOUND', syscall: 'getaddrinfo', hostname: 'no\u001bwhere' },
      'host "no\\u001bwhere" cannot be resolved (ENOTFOUND); choose another with --host',
    ],
    [
      { code: 'EAI_AGAIN', syscall: 'getaddrinfo', hostname: 'x' },
      'host "x" cannot be resolved (EAI_AGAIN); choose another with --host',
    ],
    [{ code: 'EACCES', syscall: 'open', path: 'sluice.yaml' }, undefined],
    [{ code: 'EMFILE', ...listen }, undefined],
    [{}, undefined],
  ])('%j', (fields, message) => expect(explainListenError(Object.assign(new Error('listen'), fields))).toBe(message));
});
