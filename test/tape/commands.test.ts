import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { jsonLines, type Outcome, run, type World } from '../../packages/gateway/test/fake-io.ts';
import { temporaryFolder } from './tapes.ts';

// The servers of the command line, run in this process and stopped by its signal.
const STREAM =
  'data: {"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';

let running: Promise<Outcome> | undefined;

afterEach(async () => {
  if (running) process.emit('SIGTERM');
  await running;
  running = undefined;
});

/** Starts a command and waits for the address that it names. */
function serve(argv: readonly string[], world: World = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const onText = (text: string): void => {
      const address = /http:\/\/127\.0\.0\.1:\d+/.exec(text)?.[0];
      if (address !== undefined) resolve(address);
    };
    running = run(argv, { ...world, onText });
    running.then(({ stderr }) => reject(new Error(stderr)));
  });
}

async function stop(): Promise<Outcome> {
  process.emit('SIGINT');
  const outcome = await running;
  running = undefined;
  return outcome ?? { code: -1, stdout: '', stderr: '', bytes: Buffer.alloc(0), files: {} };
}

const tape = (): string => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'answer.sse'), STREAM);
  return folder;
};

const ask = (url: string, headers: Record<string, string> = {}) =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ model: 'm', stream: true, messages: [] }),
  });

test('a recorded replay replays identically', async () => {
  const folder = temporaryFolder();
  const upstream = await serve(['replay', '--port', '0', tape()]);
  const source = running;
  const proxy = await serve(['record', '--upstream', upstream, '--port', '0', '--out', join(folder, 'new', 'tape')]);
  expect(await (await ask(proxy, { authorization: 'Bearer sk-0123456789' })).text()).toBe(STREAM);
  const recorded = await stop();
  expect(recorded).toMatchObject({ code: 0, stderr: '' });
  expect(recorded.stdout).toContain('200  m  ');
  expect(recorded.stdout).toContain('0001-chat-m');
  const replayed = await source;
  expect(replayed?.stdout).toContain('200  POST /v1/chat/completions  m  → answer.sse  (same model)');
  expect(readdirSync(join(folder, 'new', 'tape'))).toEqual(['0001-chat-m']);
});

test('replay --json reports each request', async () => {
  const url = await serve(['replay', '--json', '--fault', 'status=429,times=1', '--port', '0', tape()]);
  await (await ask(url)).text();
  await (await ask(url)).text();
  const outcome = await stop();
  expect(jsonLines(outcome)).toMatchObject([
    { status: 429, faults: 'status=429,times=1' },
    { status: 200, exchange: 'answer.sse', why: 'same model', faults: '' },
  ]);
  expect(outcome.stderr).toContain('Replaying 1 exchange');
});

test('a port in use is an error', async () => {
  const url = await serve(['replay', '--port', '0', tape()]);
  const { port } = new URL(url);
  expect(await run(['replay', '--port', port, tape()])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('is already in use'),
  });
  expect(await run(['record', '--upstream', url, '--port', port, '--out', temporaryFolder()])).toMatchObject({ code: 2 });
});

describe('lists', () => {
  test('exchanges', async () => {
    const folder = tape();
    mkdirSync(join(folder, 'more'));
    expect((await run(['replay', '--list', folder])).stdout).toBe('answer.sse  200  openai-chat  stream    m\n');
    expect(jsonLines(await run(['replay', '--list', '--json', folder]))).toEqual([
      {
        exchange: 'answer.sse',
        protocol: 'openai-chat',
        model: 'm',
        stream: true,
        method: 'POST',
        path: '/v1/chat/completions',
        status: 200,
        end: 'complete',
      },
    ]);
  });

  test('faults', async () => {
    const { stdout, code } = await run(['replay', '--faults']);
    expect(code).toBe(0);
    for (const name of ['cut=BYTES', 'times=N', 'sse/crlf', 'chat/ids-blank', '(blank-ids)']) expect(stdout).toContain(name);
    expect(jsonLines(await run(['replay', '--faults', '--json'])).length).toBeGreaterThan(250);
  });
});

test.each<[string, readonly string[], string]>([
  ['no tape', ['replay'], 'name a tape'],
  ['two tapes', ['replay', 'a', 'b'], 'only one tape can be replayed'],
  ['a tape that is not there', ['replay', '/nowhere'], 'sluice record'],
  ['a fault that is none', ['replay', '--fault', 'chat/id-blank', 'TAPE'], 'did you mean "chat/ids-blank"'],
  ['a speed that is none', ['replay', '--speed', '0', 'TAPE'], 'above 0'],
  ['a port that is none', ['replay', '--port', '99999', 'TAPE'], 'up to 65535'],
  ['no upstream', ['record'], '--upstream is required'],
  ['an upstream that is none', ['record', '--upstream', 'api.openai.com'], 'must be a URL'],
  ['a key in the upstream', ['record', '--upstream', 'https://user:sk-1@api.openai.com'], 'must not contain a key'],
  ['a tape in the wrong place', ['record', 'tapes', '--upstream', 'http://127.0.0.1:1'], '--out'],
  [
    'a folder that cannot be',
    ['record', '--upstream', 'http://127.0.0.1:1', '--out', '/dev/null/x'],
    'cannot be used: a part of the path is a file',
  ],
])('wrong usage: %s', async (_, argv, message) => {
  const outcome = await run(argv.map((word) => (word === 'TAPE' ? tape() : word)));
  expect(outcome.code).toBe(2);
  expect(outcome.stderr).toContain(message);
  expect(outcome.stderr).not.toContain('sk-1');
});

test.each(['record', 'replay'])('%s --help has examples', async (command) => {
  const { stdout, code } = await run([command, '--help']);
  expect(code).toBe(0);
  expect(stdout).toContain(`sluice ${command} `);
  expect(stdout).toContain('Examples');
});
