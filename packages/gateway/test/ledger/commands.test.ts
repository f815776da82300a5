import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { openStore, type Store } from '../../src/store/index.ts';
import { jsonLines, type Outcome, run, type World } from '../fake-io.ts';
import { createFolder } from '../store/ledger-fixture.ts';
import { fill, multiply, record, settle } from './rows.ts';

const stores: Store[] = [];

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
});

async function open(folder: string): Promise<Store> {
  const store = await openStore({ folder, ballastBytes: 0 });
  stores.push(store);
  return store;
}

const EXCHANGES = [
  { key: 'alice', tags: ['ci', 'eu'], cost_micros: 1_000_000 },
  { key: 'alice', tags: ['ci'], model: 'gpt-5', provider: 'openai', cost_micros: null, provenance: 'estimated' },
  { key: '=cmd', model: 'x\u001b[2J', http_status: 502, ending: 'failed', error_code: 'UPSTREAM_ERROR', cost_micros: null },
] as const;

const fillAll = (folder: string): Promise<string[]> =>
  fill(
    folder,
    EXCHANGES.map((exchange) => ({ ...exchange, tags: [...('tags' in exchange ? exchange.tags : [])] })),
  );

/** A folder with all of them, for tests that only read. */
const folder = mkdtempSync(join(tmpdir(), 'sluice-commands-'));
let ids: string[];

beforeAll(async () => {
  ids = await fillAll(folder);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('usage', () => {
  test.each([
    ['model', ['llama', 'gpt-5', 'x\\u001b[2J']],
    ['provider', ['groq', 'openai']],
    ['key', ['alice', '=cmd']],
    ['tag', ['ci', 'eu']],
    ['day', [new Date().toISOString().slice(0, 10)]],
  ])('--by %s has a row for each', async (by, labels) => {
    const { code, stdout } = await run(['usage', '--by', by, '--data', folder]);
    expect(code).toBe(0);
    const lines = stdout.split('\n');
    expect(lines[0]).toMatch(new RegExp(`^${by.toUpperCase()} .*COST$`));
    const names = lines
      .slice(
        1,
        lines.findIndex((line) => line.startsWith('total')),
      )
      .map((line) => line.split(/ {2,}/)[0]);
    expect(names.toSorted()).toEqual(labels.toSorted());
    // Also by tag, where two requests have three tags and one has none.
    expect(lines.find((line) => line.startsWith('total'))).toMatch(/^total +3 +1 +~300 +~0 +~60 +~\$1\.00 \+ 2 unpriced$/);
    expect(stdout).toContain('hours and days in UTC');
  });

  test('--json has one object per group, --csv one line', async () => {
    const json = jsonLines(await run(['usage', '--by', 'key', '--json', '--data', folder]));
    expect(json).toMatchObject([
      { by: 'key', group: 'alice', bucket_at: null, requests: 2, cost_micros: 1_000_000, unpriced: 1, uncertain: 1 },
      { by: 'key', group: '=cmd', errors: 1 },
    ]);
    const { stdout } = await run(['usage', '--by', 'key', '--csv', '--bucket', 'hour', '--data', folder]);
    expect(stdout.split('\r\n')).toHaveLength(4);
    expect(stdout).toMatch(/\r\nkey,'=cmd,20\d\d-\d\d-\d\dT\d\d:00:00\.000Z,1,1,/);
  });

  test('a terminal gets bars, and colours unless NO_COLOR is set', async () => {
    const show = async (env: Record<string, string>): Promise<string> =>
      (await run(['usage', '--data', folder], { terminals: ['stdout'], columns: 100, env })).stdout;
    expect(await show({})).toContain('\u001b[1m');
    const plain = await show({ NO_COLOR: '1' });
    expect(plain).toContain('█');
    expect(plain).not.toContain('\u001b');
  });

  test('an empty store is no error', async () => {
    const folder = createFolder();
    await fill(folder, []);
    expect(await run(['usage', '--data', folder])).toMatchObject({ code: 0, stdout: expect.stringContaining('No requests') });
    expect(await run(['usage', '--json', '--data', folder])).toMatchObject({ code: 0, stdout: '' });
    expect(await run(['log', '--data', folder])).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringContaining('no exchange'),
    });
  });

  test('--since and --until select hours', async () => {
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
    const requests = async (...range: string[]): Promise<unknown> =>
      jsonLines(await run(['usage', '--by', 'provider', '--json', '--data', folder, ...range])).length;
    expect(await requests('--since', '24h')).toBe(2);
    expect(await requests('--since', tomorrow)).toBe(0);
    expect(await requests('--since', '2026-01-01', '--until', tomorrow.slice(0, 10))).toBe(2);
    expect(await requests('--since', '30d', '--until', '2h')).toBe(0);
  });
});

const WRONG: [argv: string[], message: string][] = [
  [['usage', '--by', 'modle'], 'did you mean "model"?'],
  [['usage', '--since', 'yesterday'], '--since: "yesterday" is not a time; use 2h, 7d'],
  [['usage', '--since', '7d x'], 'is not a time'],
  [['usage', '--since', '1d', '--until', '2d'], '--until must be later than --since'],
  [['usage', '--bucket', 'week'], '--bucket must be one of hour, day'],
  [['usage', '--by', 'day', '--bucket', 'hour'], '--by day has buckets of a day'],
  [['usage', '--json', '--csv'], 'exclude each other'],
  [['usage', 'model'], 'unexpected argument "model"'],
  [['usage', '--data', 'a', '--url', 'http://127.0.0.1:1'], 'use one of them'],
  [['usage', '--url', 'http://127.0.0.1:1'], 'no gateway responds at http://127.0.0.1:1'],
  [['usage', '--data', '/nowhere'], '/nowhere: no usage data'],
  [['log', 'status:eror'], 'did you mean "error"?'],
  [['log', 'modle:x'], 'unknown field "modle"; did you mean "model"?'],
  [['log', 'hello'], 'use a field, such as model:hello'],
  [['log', '--limit', '0'], '--limit must be a number from 1'],
  [['log', '--limit', '-5'], 'needs a value'],
  [['log', '--follow', '--limit', '501'], 'from 0 to 500 with --follow'],
  [['log', '--follow', 'a144084cc0df'], 'omit the id'],
  [['backup'], 'name one file'],
  [['backup', 'a', 'b'], 'name one file'],
  [['restore'], 'name one backup'],
  [['restore', '/nowhere.db', '--data', '/tmp'], '/nowhere.db: no such file'],
  [['backup', 'x', '--data', 'memory'], 'in memory'],
];

test.each(WRONG)('%j exits with 2', async (argv, message) => {
  const { code, stdout, stderr } = await run(argv);
  expect({ code, stdout, stderr }).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(message) });
});

describe('log', () => {
  test('lists newest first, and filters', async () => {
    const list = async (...words: string[]): Promise<unknown[]> =>
      jsonLines(await run(['log', '--json', '--data', folder, ...words])).map(({ id }) => id);
    expect(await list()).toEqual(ids.toReversed());
    expect(await list('status:error')).toEqual([ids[2]]);
    expect(await list('key:alice', 'model:gpt*')).toEqual([ids[1]]);
    expect(await list('--', '-key:alice')).toEqual([ids[2]]);
    expect(await list('--limit', '1')).toEqual([ids[2]]);
  });

  test('reports when there may be more', async () => {
    expect((await run(['log', '--limit', '2', '--data', folder])).stderr).toContain('there may be more than 2; use --limit');
    expect((await run(['log', '--limit', '3', '--data', folder])).stderr).not.toContain('more than');
  });

  test('a terminal gets a header, a pipe only lines', async () => {
    const terminal = await run(['log', '--data', folder], { terminals: ['stdout'], columns: 140, env: { NO_COLOR: '1' } });
    expect(terminal.stdout.split('\n')[0]).toMatch(/^ID +TIME \(UTC\) +ST/);
    expect((await run(['log', '--data', folder])).stdout.split('\n')).toHaveLength(4);
  });

  test('shows one exchange by its id, by the end of its id, and as JSON', async () => {
    const [id = ''] = ids;
    for (const word of [id, id.slice(-12)]) {
      const { code, stdout } = await run(['log', word, '--data', folder]);
      expect(code).toBe(0);
      expect(stdout).toContain(`Exchange ${id}\n`);
      expect(stdout).toContain('1. groq/llama 200 answered');
    }
    const [line] = jsonLines(await run(['log', id, '--json', '--data', folder]));
    expect(line).toMatchObject({ exchange: { id }, attempts: [{ number: 1 }] });
  });

  test('an unknown id exits with 1', async () => {
    const { code, stderr } = await run(['log', 'deadbeef', '--data', folder]);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('no exchange has the id deadbeef') });
  });

  test('10,000 exchanges are printed by pages', async () => {
    const folder = createFolder();
    await fill(folder, [{}]);
    multiply(folder, 10_000);
    let most = 0;
    let lines = 0;
    const onText = (text: string): void => {
      const count = text.split('\n').length - 1;
      most = Math.max(most, count);
      lines += count;
    };
    const { code } = await run(['log', '--limit', '20000', '--data', folder], { onText });
    expect({ code, most }).toEqual({ code: 0, most: 500 });
    // One line on stderr names the source.
    expect(lines).toBe(10_001);
  });
});

/** Starts `sluice log --follow`, calls `use` when it follows, and stops it when `isDone`. */
async function follow(argv: string[], use: () => Promise<void>, isDone: (text: string) => boolean): Promise<Outcome> {
  let all = '';
  let started: Promise<void> | undefined;
  const world: World = {
    onText: (text) => {
      all += text;
      if (all.includes('following')) started ??= use();
      if (isDone(all)) process.emit('SIGINT');
    },
  };
  const outcome = await run(['log', '--follow', ...argv], world);
  await started;
  return outcome;
}

describe('log --follow without a gateway', () => {
  test('begins with the last exchanges, and continues with those that settle', async () => {
    const folder = createFolder();
    const store = await open(folder);
    const old = await record(store, { requested: 'old' });
    const running = await record(store, { requested: 'running', isRunning: true });
    const { code, stdout } = await follow(
      ['--data', folder, '--json'],
      async () => {
        await record(store, { requested: 'new' });
        await settle(store, running);
      },
      (text) => text.includes('"new"') && text.includes('"running"'),
    );
    expect(code).toBe(0);
    const lines = jsonLines({ stdout } as Outcome);
    expect(lines[0]).toMatchObject({ id: old });
    expect(lines.map(({ model_requested }) => model_requested).toSorted()).toEqual(['new', 'old', 'running']);
    expect(lines.every(({ state }) => state === 'settled')).toBe(true);
  });

  test('applies the filter, and prints nothing twice', async () => {
    const folder = createFolder();
    const store = await open(folder);
    const { stdout } = await follow(
      ['--data', folder, '--limit', '0', 'status:error'],
      async () => {
        for (const ending of ['answered', 'failed']) await record(store, { ending, requested: 'first' });
        await record(store, { ending: 'failed', requested: 'last' });
      },
      (text) => text.includes('last →'),
    );
    expect(stdout.split('\n').map((line) => /(\w+) →/.exec(line)?.[1])).toEqual(['first', 'last', undefined]);
  });

  test('a burst of more than a page is printed in order', async () => {
    const folder = createFolder();
    const store = await open(folder);
    await record(store, { requested: 'begin' });
    const { stdout } = await follow(
      ['--data', folder, '--limit', '0'],
      async () => multiply(folder, 2500),
      (text) => text.includes('0000000009c3'),
    );
    const ids = stdout
      .split('\n')
      .slice(0, -1)
      .map((line) => line.slice(0, 12));
    expect(ids).toHaveLength(2499);
    expect(ids).toEqual(ids.toSorted());
  });
});

describe('backup and restore', () => {
  test('a backup restores what was recorded, also into a new folder', async () => {
    const folder = createFolder();
    const ids = await fillAll(folder);
    const file = join(createFolder(), 'usage.db');
    expect(await run(['backup', file, '--data', folder])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Backed up .* to .*usage\.db \(.* kB\)\.\n$/),
    });
    const target = join(createFolder(), 'new');
    const restored = await run(['restore', file, '--data', target]);
    expect(restored).toMatchObject({ code: 0, stdout: expect.stringContaining('had no database before') });
    expect(jsonLines(await run(['log', '--json', '--data', target])).map(({ id }) => id)).toEqual(ids.toReversed());
    const again = await run(['restore', file, '--data', target]);
    expect(again.stdout).toContain('The replaced database is kept as ');
    expect(readdirSync(target).some((name) => name.startsWith('sluice.db.replaced-'))).toBe(true);
  });

  test.each([
    ['data: records', 0, '/records to b.db'],
    ['data: memory', 2, 'data is kept in memory'],
    ['dta: records', 2, 'cannot be used to find the gateway and its data; correct it, or name'],
  ])('without --data, the folder is that of the configuration: %s', async (config, code, text) => {
    const folder = createFolder();
    await fill(join(folder, 'records'), [{}]);
    writeFileSync(join(folder, 'sluice.yaml'), config);
    const bin = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));
    const env = { PATH: process.env['PATH'], HOME: folder };
    const { status, stdout, stderr } = spawnSync(process.execPath, [bin, 'backup', 'b.db'], {
      cwd: folder,
      env,
      encoding: 'utf8',
    });
    expect({ status, output: stdout + stderr }).toEqual({ status: code, output: expect.stringContaining(text) });
  });

  test('a backup works while a gateway owns the folder, a restore is refused', async () => {
    const folder = createFolder();
    const store = await open(folder);
    await record(store);
    const file = join(createFolder(), 'usage.db');
    expect(await run(['backup', file, '--data', folder])).toMatchObject({ code: 0 });
    const { code, stdout, stderr } = await run(['restore', file, '--data', folder]);
    expect({ code, stdout, stderr }).toEqual({ code: 1, stdout: '', stderr: expect.stringContaining('is in use by process') });
  });

  test('an existing file is not overwritten, and a damaged one not restored', async () => {
    const folder = createFolder();
    await fillAll(folder);
    const file = join(createFolder(), 'other.txt');
    writeFileSync(file, 'precious');
    expect(await run(['backup', file, '--data', folder])).toMatchObject({ code: 2, stderr: expect.stringContaining('exists') });
    const target = join(createFolder(), 'new');
    expect(await run(['restore', file, '--data', target])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('cannot be restored'),
    });
    expect(existsSync(join(target, 'sluice.db'))).toBe(false);
  });
});
