/**
 * Runs the session of docs/usage.md: `sh session serve` in the background, then every `sh session` block in order. A `text` block
 * after one shows its output, up to times, ids and durations. UPDATE_SESSION=1 writes the outputs into the page.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Block, readPage } from './doc-blocks.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const page = 'docs/usage.md';
const blocks = readPage(page);

const find = (language: string, ...flags: string[]): Block[] =>
  blocks.filter((block) => block.language === language && flags.every((flag) => block.flags.includes(flag)));

const steps = find('sh', 'session')
  .filter(({ flags }) => !flags.includes('serve'))
  .map((step) => {
    const next = blocks[blocks.indexOf(step) + 1];
    return { ...step, output: next?.language === 'text' ? next.code : undefined };
  });

const folder = mkdtempSync(join(tmpdir(), 'sluice-session-'));
let gateway: ChildProcess | undefined;
let port = 0;

/** The page names the default port, which may be in use here. */
const translate = (code: string): string => code.replaceAll('127.0.0.1:4141', `127.0.0.1:${port}`);

const findPort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port: free } = server.address() as AddressInfo;
      server.close(() => resolve(free));
    });
  });

const start = (code: string): ChildProcess => {
  const sluice = `sluice() { "${process.execPath}" "${join(root, 'packages/gateway/bin/sluice.js')}" "$@"; }`;
  const env = { PATH: process.env['PATH'], HOME: folder, NO_COLOR: '1' };
  return spawn('sh', ['-e', '-c', `${sluice}\n${code}`], { cwd: folder, env, detached: true });
};

/** Resolves with stdout. */
const finish = (child: ChildProcess): Promise<string> =>
  new Promise((resolve, reject) => {
    let [stdout, stderr] = ['', ''];
    child.stdout?.on('data', (data) => (stdout += data));
    child.stderr?.on('data', (data) => (stderr += data));
    child.once('close', (code) => (code === 0 ? resolve(stdout) : reject(new Error(`exit code ${code}: ${stderr}`))));
  });

/** Until the gateway prints its address. */
const listen = (child: ChildProcess): Promise<void> =>
  new Promise((resolve, reject) => {
    child.stdout?.on('data', (data) => String(data).includes('listens on') && resolve());
    child.once('close', (code) => reject(new Error(`the gateway ended with ${code}`)));
  });

beforeAll(async () => {
  port = await findPort();
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'sluice.yaml'), find('yaml')[0]?.code ?? '');
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  writeFileSync(join(folder, 'hello.js'), translate(find('js')[0]?.code ?? ''));
  gateway = start(`${find('sh', 'serve')[0]?.code.trim()} --port ${port}`);
  await listen(gateway);
  // An old build is renewed first.
}, 60_000);

afterAll(() => {
  // The shell and the gateway are one process group.
  if (gateway?.pid !== undefined && gateway.exitCode === null) process.kill(-gateway.pid, 'SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

/** What differs from run to run. */
const normalize = (text: string): string =>
  text
    .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}\b/g, 'UUID')
    .replace(/\b[0-9a-f]{12}\b/g, 'ID')
    .replace(/\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\dZ/g, 'TIME')
    .replace(/\d+(\.\d+)? m?s\b/g, 'MS')
    // Only shown when there was a queue.
    .replace('queued MS, ', '')
    .replace(/[·░▒█]+/g, 'BAR')
    .replace(/curl\/[\d.]+/, 'curl')
    .replace(/OpenAI\/JS [\d.]+/, 'OpenAI/JS')
    .replace(/ +/g, ' ');

const isUpdate = process.env['UPDATE_SESSION'] === '1';

describe('the session of docs/usage.md', { shuffle: false }, () => {
  test.each(steps)('$place', async ({ code, output }) => {
    const printed = await finish(start(translate(code)));
    expect(printed).not.toBe('');
    if (output === undefined) return;
    if (isUpdate) replaceOutput(code, printed);
    else expect(normalize(printed)).toBe(normalize(output));
  });

  test('has a gateway and steps', () => {
    expect(gateway).toBeDefined();
    expect(steps.length).toBeGreaterThan(8);
    expect(steps.filter(({ output }) => output !== undefined).length).toBeGreaterThan(3);
  });
});

function replaceOutput(code: string, printed: string): void {
  const path = join(root, page);
  const text = readFileSync(path, 'utf8');
  const at = text.indexOf('```text\n', text.indexOf(code)) + '```text\n'.length;
  writeFileSync(path, text.slice(0, at) + printed + text.slice(text.indexOf('```', at)));
}
