import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { COMMANDS } from '../../packages/gateway/src/cli/commands.ts';
import { jsonLines, type Outcome, run, systemError, type World } from '../../packages/gateway/test/fake-io.ts';
import { fill } from '../../packages/gateway/test/ledger/rows.ts';
import { PostgresServer } from '../../packages/gateway/test/real-parts/postgres.js';
import { anthropic, chat, chatCall, chatError, cutChat } from '../../packages/gateway/test/streams.ts';
import { needs } from '../needs/needs.ts';
import { temporaryFolder } from '../tape/tapes.ts';
import { LINES } from './json-lines.ts';

const NO_INDEX = chatCall('{}').replace('"index":0,"id"', '"id"');

const ALL_KINDS: World = {
  files: { a: chat('hi'), b: anthropic('hi'), c: chatError('no'), d: cutChat('so f'), e: 'text', denied: systemError('EACCES') },
};

const TAPE = (): string => {
  const file = join(temporaryFolder(), 'answer.sse');
  writeFileSync(file, chat('hi'));
  return file;
};

interface Row {
  command: string;
  /** Position of the shape in the list of its command. */
  shape: number;
  argv: string[];
  world?: World;
}

const INPUTS = ['a', 'b', 'c', 'd', 'e', 'denied', 'gone'];

const REQUEST = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x' }], seed: 1 });

const ROWS: Row[] = [
  { command: 'inspect', shape: 0, argv: ['inspect', 'a', '--json'], world: ALL_KINDS },
  { command: 'inspect', shape: 0, argv: ['inspect', 'c', '--protocol', 'openai-chat', '--json'], world: ALL_KINDS },
  ...['claude', 'codex', 'curl', 'ai-sdk'].map((id) => ({ command: 'env', shape: 0, argv: ['env', id, '--json'] })),
  { command: 'init', shape: 0, argv: ['init', '--json'], world: { env: { OPENAI_API_KEY: 'sk-1' } } },
  {
    command: 'import',
    shape: 0,
    argv: ['import', 'claude-code-router', '--json', 'ccr.json'],
    world: { files: { 'ccr.json': '{"Providers":[{"name":"a","api_base_url":"http://127.0.0.1:9/v1","api_key":"k"}],"X":1}' } },
  },
  ...['good', 'bad', 'gone'].map((file) => ({
    command: 'config',
    shape: 0,
    argv: ['config', 'check', '--json', file],
    world: { files: { good: 'log: { level: info }\n', bad: 'logg: 1\n' } },
  })),
  { command: 'prices', shape: 0, argv: ['prices', 'gpt-5', '--json'] },
  { command: 'prices', shape: 1, argv: ['prices', '--json'] },
  { command: 'route', shape: 0, argv: ['route', 'demo/hello', '--json'] },
  { command: 'assemble', shape: 0, argv: ['assemble', '--json', ...INPUTS], world: ALL_KINDS },
  { command: 'convert', shape: 0, argv: ['convert', 'stream', '--to', 'gemini', '--json', ...INPUTS], world: ALL_KINDS },
  {
    command: 'convert',
    shape: 0,
    argv: ['convert', 'request', '--from', 'openai', '--to', 'anthropic', '--json', 'q', 'gone'],
    world: { files: { q: REQUEST } },
  },
  {
    command: 'convert',
    shape: 0,
    argv: ['convert', 'error', '--from', 'openai', '--to', 'anthropic', '--json', 'q'],
    world: { files: { q: '{"error":{"message":"no"}}' } },
  },
  { command: 'doctor', shape: 0, argv: ['doctor', '--json', ...INPUTS], world: ALL_KINDS },
  { command: 'doctor', shape: 1, argv: ['doctor', '--json', '--url', 'http://127.0.0.1:1/v1', '--model', 'm'] },
  { command: 'doctor', shape: 2, argv: ['doctor', 'rules', '--json'] },
  { command: 'repair', shape: 0, argv: ['repair', '--json', '--quiet', ...INPUTS], world: ALL_KINDS },
  { command: 'prove', shape: 0, argv: ['prove', '--json', ...INPUTS], world: ALL_KINDS },
  { command: 'diff', shape: 0, argv: ['diff', '--json', 'a', 'd'], world: ALL_KINDS },
  {
    command: 'shrink',
    shape: 0,
    argv: ['shrink', '--json', '--until', 'chat/tool-index-missing', 'a'],
    world: { files: { a: NO_INDEX } },
  },
  {
    command: 'shrink',
    shape: 0,
    argv: ['shrink', '--json', '--until', 'chat/tool-index-missing', 'a'],
    world: { files: { a: Buffer.concat([Buffer.from(': \xff\n', 'latin1'), Buffer.from(NO_INDEX)]) } },
  },
  { command: 'replay', shape: 1, argv: ['replay', '--list', '--json', TAPE()] },
  { command: 'replay', shape: 2, argv: ['replay', '--faults', '--json'] },
];

/** Holds the keys of every line against the documented ones. */
function expectShape(outcome: Outcome, command: string, shape: number): void {
  const keys = Object.keys(LINES[command]?.[shape]?.keys ?? {});
  const required = keys.filter((key) => !key.endsWith('?'));
  const lines = jsonLines(outcome);
  expect(lines.length, outcome.stderr).toBeGreaterThan(0);
  for (const line of lines) {
    expect(Object.keys(line).filter((key) => !keys.includes(`${key}?`))).toEqual(required);
  }
}

describe('a line has the keys that docs/cli.md lists, in that order', () => {
  test.each(ROWS)('$argv', async ({ command, shape, argv, world }) => {
    expectShape(await run(argv, world), command, shape);
  });

  let running: Promise<Outcome> | undefined;

  afterEach(async () => {
    if (running) process.emit('SIGTERM');
    await running;
    running = undefined;
  });

  /** Starts a server, waits for the address that it names, uses it and stops it. */
  async function runServer(argv: string[], use: (url: string) => Promise<unknown>): Promise<Outcome> {
    const url = await new Promise<string>((resolve, reject) => {
      const onText = (text: string): void => {
        const address = /http:\/\/127\.0\.0\.1:\d{3,}/.exec(text)?.[0];
        if (address !== undefined) resolve(address);
      };
      running = run(argv, { onText });
      running.then(({ stderr }) => reject(new Error(stderr)));
    });
    await use(url);
    process.emit('SIGINT');
    const outcome = await running;
    running = undefined;
    if (!outcome) throw new Error('nothing runs');
    return outcome;
  }

  const ask = (url: string): Promise<string> =>
    fetch(`${url}/v1/chat/completions`, { method: 'POST', body: REQUEST }).then((response) => response.text());

  test('usage and log', async () => {
    const folder = temporaryFolder();
    const [id = ''] = await fill(folder, [{ tags: ['a'] }, {}]);
    for (const by of ['model', 'tag', 'day'])
      expectShape(await run(['usage', '--by', by, '--json', '--data', folder]), 'usage', 0);
    expectShape(await run(['log', '--json', '--data', folder]), 'log', 0);
    expectShape(await run(['log', id, '--json', '--data', folder]), 'log', 1);
  });

  test('keys and audit', async () => {
    const data = ['--json', '--data', temporaryFolder()];
    await fill(data[2] ?? '', [{}]);
    expectShape(await run(['keys', 'create', 'alice', '--rpm', '60', ...data]), 'keys', 1);
    expectShape(await run(['keys', 'rotate', 'alice', ...data]), 'keys', 1);
    expectShape(await run(['keys', 'list', ...data]), 'keys', 0);
    expectShape(await run(['keys', 'show', 'alice', ...data]), 'keys', 0);
    expectShape(await run(['keys', 'revoke', 'alice', ...data]), 'keys', 0);
    expectShape(await run(['audit', ...data]), 'audit', 0);
  });

  test('versions of a configuration', needs('postgres'), async () => {
    const server = await PostgresServer.start();
    try {
      const world = { env: { SLUICE_STORE: await server.createDatabase() }, files: { a: 'log: { level: info }\n' } };
      expectShape(await run(['config', 'push', 'a', '--json'], world), 'config', 1);
      expectShape(await run(['config', 'rollback', '1', '--json'], world), 'config', 1);
      expectShape(await run(['config', 'history', '--json'], world), 'config', 2);
      expectShape(await run(['config', 'show', '--json'], world), 'config', 3);
    } finally {
      await server.stop();
    }
  });

  test('serve', async () => {
    const config = join(temporaryFolder(), 'sluice.json');
    writeFileSync(config, JSON.stringify({ log: { level: 'silent' } }));
    const outcome = await runServer(['serve', '--json', '--port', '0', '--config', config], () => Promise.resolve());
    expectShape(outcome, 'serve', 0);
  });

  test('record', async () => {
    const argv = ['record', '--json', '--port', '0', '--upstream', 'http://127.0.0.1:1', '--out', temporaryFolder()];
    expectShape(await runServer(argv, ask), 'record', 0);
  });

  test('replay', async () => {
    const outcome = await runServer(['replay', '--json', '--port', '0', TAPE()], async (url) => {
      await ask(url);
      await fetch(`${url}/other`).then((response) => response.text());
    });
    expectShape(outcome, 'replay', 0);
  });
});

test('every command with --json has its lines documented, and no other', () => {
  const withJson = Object.keys(COMMANDS).filter((name) => COMMANDS[name]?.options['json']);
  expect(Object.keys(LINES).toSorted()).toEqual(withJson.toSorted());
});

test('assemble --json has the severity of each diagnostic', async () => {
  const [line] = jsonLines(await run(['assemble', '--json', 'a'], { files: { a: NO_INDEX } }));
  expect(line?.['diagnostics']).toEqual([
    expect.objectContaining({ rule: 'chat/tool-index-missing', severity: 'error', offset: expect.any(Number) }),
  ]);
});
