import { execFile } from 'node:child_process';
import { connect, createServer } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const run = promisify(execFile);

const CONNECT = "require('node:net').connect(4141, '127.0.0.1').on('error', ({ code }) => console.log(code))";

test('the home is a folder of this run', () => expect(homedir().startsWith(join(tmpdir(), 'sluice-tests-'))).toBe(true));

test('no variable has a key, a proxy or a setting of the user', () => {
  const names = Object.keys(process.env).filter((name) => !name.startsWith('npm_'));
  expect(names.filter((name) => /key|token|secret|proxy|_base_url|^xdg_config/i.test(name))).toEqual([]);
});

test('connections to the default port are refused, by this process and by its children', async () => {
  const refused = await new Promise((resolve) => connect(4141, '127.0.0.1').once('error', resolve));
  expect(refused).toMatchObject({ code: 'ECONNREFUSED', port: 4141 });
  await expect(fetch('http://127.0.0.1:4141')).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
  expect((await run(process.execPath, ['-e', CONNECT])).stdout).toBe('ECONNREFUSED\n');
  expect((await run(process.execPath, ['-e', CONNECT], { env: {} })).stdout).toBe('ECONNREFUSED\n');
});

test('nothing listens on the default port', () => {
  expect(() => createServer().listen(4141)).toThrow('use port 0');
});
