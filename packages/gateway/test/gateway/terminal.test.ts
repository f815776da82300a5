import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { needs } from '../../../../test/needs/needs.ts';
import { untilStopped } from '../../src/terminal/io.ts';
import { expectAnswered } from './check.ts';
import { cutAfter } from './dialects.ts';
import { Faultd } from './faultd.ts';
import { chunk, LAST_CHUNK, streamHead } from './http.ts';
import { modelOf, PAIRS, type Pair, providersAt } from './pairs.ts';
import { RawClient } from './raw-client.ts';
import { askText, eventually } from './start.ts';

// SIGHUP means "the terminal is gone" to a program that was started from one, and "reload" to a service.

const bin = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));
const pair = PAIRS[0] as Pair;

let faultd: Faultd;
let folder: string;

beforeAll(async () => {
  faultd = await Faultd.start();
});

afterAll(() => faultd.stop());

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-terminal-'));
  writeFileSync(at('sluice.json'), JSON.stringify({ listen: { port: 0 }, providers: providersAt(faultd) }));
});

afterEach(() => {
  // A gateway that has outlived its terminal would outlive the test, too.
  if (textOf('code.txt') === '' && textOf('pid.txt') !== '') process.kill(Number(textOf('pid.txt')), 'SIGKILL');
  rmSync(folder, { recursive: true });
});

const at = (name: string): string => join(folder, name);
const textOf = (name: string): string => (existsSync(at(name)) ? readFileSync(at(name), 'utf8') : '');
const findUrl = (text: string): string | undefined => /http:\/\/127\.0\.0\.1:\d+/.exec(text)?.[0];

/** Starts a stream whose second half the upstream holds back until `release`. */
async function startStream(url: string): Promise<{ client: RawClient; release: () => void }> {
  const { before, after } = cutAfter(pair.upstream, 'two');
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  faultd.play([
    { send: streamHead() },
    { send: chunk(before.join('')) },
    { run: () => released },
    { send: chunk(after.join('')) },
    { send: LAST_CHUNK },
  ]);
  const client = await RawClient.open(url);
  client.send(askText({ client: pair.client, model: modelOf(pair), stream: true }));
  await client.sees('two');
  return { client, release };
}

/** `script` of util-linux runs a command on a pseudo-terminal; when it is killed, the terminal is gone. */
const SCRIPT = 'script';

describe('a gateway whose terminal is closed', needs('linux', 'script'), () => {
  test.each([
    ['stdin and stdout are the terminal', ''],
    ['only stdin is', '>out.txt'],
    ['only stdout is', '</dev/null'],
  ])('lets streams finish and exits by SIGHUP: %s', async (_, redirect) => {
    // The first shell ends with its terminal, and the kernel signals the rest; the second one writes down the exit code.
    const serve = `exec "${process.execPath}" "${bin}" serve --config sluice.json ${redirect}`;
    const command = `(trap '' HUP; sh -c 'echo $$ >pid.txt; ${serve}'; echo "exit $?" >code.txt); true`;
    const terminal = spawn(SCRIPT, ['--quiet', '--flush', '--command', command, 'screen.txt'], {
      cwd: folder,
      stdio: 'ignore',
    });
    const url = await eventually(() => findUrl(textOf('screen.txt') + textOf('out.txt')));
    const { client, release } = await startStream(url);
    terminal.kill('SIGKILL');
    await untilRefused(url);
    expect(textOf('code.txt')).toBe('');
    release();
    expectAnswered(pair, true, await client.reply());
    expect(await eventually(() => textOf('code.txt'))).toBe('exit 129\n');
  });
});

/** Until new connections are refused: the gateway has begun to stop. */
async function untilRefused(url: string): Promise<void> {
  await eventually(() =>
    RawClient.open(url).then(
      (client) => client.leave(),
      () => true,
    ),
  );
}

test('SIGHUP reloads a gateway without a terminal', async () => {
  const child = spawn(process.execPath, [bin, 'serve', '--config', 'sluice.json'], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece) => (text += String(piece)));
  const url = await eventually(() => findUrl(text));
  child.kill('SIGHUP');
  await eventually(() => text.includes('configuration reloaded'));
  expect((await fetch(`${url}/health/live`)).status).toBe(200);
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  expect(await exit).toEqual([0, null]);
});

describe('a signal while the gateway stops', () => {
  const exit = vi.spyOn(process, 'exit');

  beforeEach(() => exit.mockReset().mockReturnValue(undefined as never));
  afterAll(() => exit.mockRestore());

  // A shell passes the signal on to its jobs, and the kernel sends it once more.
  test.each([
    ['SIGHUP', 0],
    ['SIGTERM', 1],
    ['SIGINT', 1],
  ] as const)('%s ends it at once: %i time(s)', async (signal, times) => {
    let finish: () => void = () => undefined;
    const stopped = untilStopped(() => new Promise((resolve) => (finish = resolve)), { stopsOnHangup: true });
    process.emit('SIGHUP', 'SIGHUP');
    process.emit(signal, signal);
    expect(exit).toHaveBeenCalledTimes(times);
    finish();
    await stopped;
  });
});
