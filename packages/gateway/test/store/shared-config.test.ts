import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { needs } from '../../../../test/needs/needs.ts';
import { pace } from '../../../../test/wait.ts';
import { type Running, run as serve } from '../../src/server/run.ts';
import type { ConfigVersions } from '../../src/store/index.ts';
import { withConfigVersions } from '../../src/store/postgres/store.ts';
import { jsonLines, type Outcome, run } from '../fake-io.ts';
import { createAddress, createFolder, startPostgres } from './ledger-fixture.ts';
import { assertBuilt } from './processes.ts';

const SLUICE = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));

const ADMIN_KEY = 'admin-key-0123456789';

beforeAll(assertBuilt);

const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function until<Value>(read: () => Promise<Value | undefined> | Value | undefined): Promise<Value> {
  for (;;) {
    const value = await read();
    if (value !== undefined) return value;
    await pace(5);
  }
}

/** A document with these names of models, all for the demo model. */
const write = (...models: string[]): string => `models:\n${models.map((name) => `  ${name}: demo/hello\n`).join('')}`;

const config = (url: string, args: readonly string[], text?: string): Promise<Outcome> =>
  run(['config', ...args], { env: { SLUICE_STORE: url }, ...(text !== undefined && { files: { 'shared.yaml': text } }) });

const push = (url: string, text: string, ...options: string[]): Promise<Outcome> =>
  config(url, ['push', 'shared.yaml', ...options], text);

interface TestNode extends Running {
  readonly lines: string[];
}

interface NodeOptions {
  env?: Record<string, string>;
  /** More settings of its file. */
  file?: object;
}

/** Nodes of one test share the pepper. */
async function createCluster(): Promise<{ url: string; start: (options?: NodeOptions) => Promise<TestNode> }> {
  const [url, pepper] = [await createAddress(), join(createFolder(), 'pepper')];
  const start = async ({ env = {}, file = {} }: NodeOptions = {}): Promise<TestNode> => {
    const folder = createFolder();
    const lines: string[] = [];
    const text = { config: 'store', store: 'env:SLUICE_STORE', listen: { port: 0 }, auth: { pepper_file: pepper }, ...file };
    writeFileSync(join(folder, 'sluice.json'), JSON.stringify(text));
    const node = await serve({
      folder,
      env: { SLUICE_STORE: url, SLUICE_ADMIN_KEY: ADMIN_KEY, ...env },
      listen: {},
      formatLog: (line) => {
        lines.push(line);
        return '';
      },
    });
    closers.push(() => node.close(0));
    return { ...node, lines };
  };
  return { url, start };
}

const read = async ({ url }: Running, path: string): Promise<string> =>
  (await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } })).text();

const listModels = async (node: Running): Promise<string[]> =>
  JSON.parse(await read(node, '/v1/models')).data.map(({ id }: { id: string }) => id);

const serves = (node: Running, model: string): Promise<true> =>
  until(async () => (await listModels(node)).includes(model) || undefined);

const readVersion = async (node: Running): Promise<number> =>
  Number(/^sluice_config_version (\d+)$/m.exec(await read(node, '/metrics'))?.[1]);

describe('nodes with "config: store"', needs('postgres'), () => {
  test('a push reaches all nodes within 2 seconds, and a rollback is a new version with the old text', async () => {
    const { url, start } = await createCluster();
    expect(await push(url, write('one'), '--comment', 'first')).toMatchObject({ code: 0 });
    const nodes = [await start(), await start()];
    for (const node of nodes) expect(await listModels(node)).toContain('one');
    expect(await push(url, write('one', 'two'), '--expect', '1')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Version 2 is in force instead of 1\./),
    });
    const begun = [performance.now()];
    for (const node of nodes) await serves(node, 'two');
    begun.push(performance.now());
    expect(await Promise.all(nodes.map(readVersion))).toEqual([2, 2]);

    expect(await config(url, ['rollback', '1', '--comment', 'too slow'])).toMatchObject({ code: 0 });
    begun.push(performance.now());
    for (const node of nodes) await until(async () => (await readVersion(node)) === 3 || undefined);
    // The better of two: a busy machine may delay one of them.
    const [pushed = 0, served = 0, rolledBack = 0] = begun;
    expect(Math.min(served - pushed, performance.now() - rolledBack)).toBeLessThan(2000);
    for (const node of nodes) expect(await listModels(node)).not.toContain('two');
    const history = jsonLines(await config(url, ['history', '--json']));
    expect(history).toMatchObject([
      { version: 3, rollback_of: 1, comment: 'too slow', author: expect.stringContaining('@') },
      { version: 2, rollback_of: null, comment: '' },
      { version: 1, rollback_of: null, comment: 'first' },
    ]);
    expect(history[0]?.['digest']).toBe(history[2]?.['digest']);
    expect((await config(url, ['show'])).stdout).toBe(write('one'));
    expect((await config(url, ['show', '2'])).stdout).toBe(write('one', 'two'));

    const [node] = nodes;
    if (!node) throw new Error('there is a node');
    const { entries } = JSON.parse(await read(node, '/admin/v1/audit'));
    const changes = entries.filter(({ actor }: { actor: string }) => actor === 'cli');
    expect(changes).toMatchObject([
      { action: 'config.rollback', object: '3', details: { replaced: 2, rollback_of: 1, comment: 'too slow' } },
      { action: 'config.push', object: '2', details: { replaced: 1 } },
      { action: 'config.push', object: '1', details: { replaced: 0, comment: 'first' } },
    ]);
    expect(JSON.parse(await read(node, '/admin/v1/config/reloads')).reloads).toMatchObject([
      { by: 'store', version: 3, ok: true },
      { by: 'store', version: 2, ok: true },
      { by: 'start', version: 1, ok: true },
    ]);
    expect(JSON.parse(await read(node, '/admin/v1/config/versions?limit=2'))).toMatchObject({
      used: 3,
      versions: [{ version: 3, rollback_of: 1 }, { version: 2 }],
    });
    const { settings } = JSON.parse(await read(node, '/admin/v1/config/settings'));
    const origins = Object.fromEntries(settings.map(({ path, origin }: Record<string, string>) => [path, origin]));
    expect(origins).toMatchObject({ 'models.one': 'store', 'listen.port': 'file', store: 'environment' });
  });

  test('a version is found by polling where no notification arrives, as behind a pooler', async () => {
    const { url, start } = await createCluster();
    await push(url, write('one'));
    const node = await start();
    const stop = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'";
    await (await startPostgres()).query(url, stop);
    await push(url, write('two'));
    await serves(node, 'two');
  });

  test('a node without a variable keeps the last version that it can use, and reports why', async () => {
    const { url, start } = await createCluster();
    await push(url, write('one'));
    const complete = await start({ env: { GROQ_TOKEN: 'groq-token-0123456789' } });
    const lacking = await start();
    const text = `providers: { groq: { api_key: "\${GROQ_TOKEN}" } }\n${write('two')}`;
    expect(await push(url, text)).toMatchObject({ code: 0 });
    await serves(complete, 'two');
    const rejection = await until(() => lacking.lines.find((line) => line.includes('configuration rejected')));
    expect(JSON.parse(rejection)).toMatchObject({
      version: 2,
      reason: expect.stringMatching(/version 2:1:.*the environment variable GROQ_TOKEN is not set/),
    });
    expect(await listModels(lacking)).toContain('one');
    expect(await Promise.all([complete, lacking].map(readVersion))).toEqual([2, 1]);
    expect(JSON.parse(await read(lacking, '/admin/v1/config/reloads')).reloads).toMatchObject([
      { by: 'store', version: 2, ok: false, reason: expect.stringContaining('GROQ_TOKEN') },
      { by: 'start', version: 1, ok: true },
    ]);
    // A node that starts has no version to keep.
    await expect(start()).rejects.toThrow('the environment variable GROQ_TOKEN is not set');
    await push(url, `reset: true\n${write('three')}`);
    await Promise.all([complete, lacking].map((node) => serves(node, 'three')));
  });

  test.each<[string, NodeOptions, string]>([
    ['no configuration', {}, 'has no configuration yet; store one with "sluice config push FILE"'],
    ['a setting of all nodes', { file: { models: {} } }, 'models: with "config: store" this setting is part of the shared'],
    ['keys in its file', { file: { auth: { keys: ['k'] } } }, 'auth.keys: with "config: store" this setting is part'],
    ['no database', { file: { store: null } }, 'config: needs the database: set store: postgres://'],
    ['no variable', { env: { SLUICE_STORE: '' } }, 'the environment variable SLUICE_STORE is not set'],
    ['no server', { env: { SLUICE_STORE: 'postgres://u:canary@127.0.0.1:1/d' } }, 'the database 127.0.0.1:1/d cannot be used'],
  ])('a node with %s does not start', async (_, options, message) => {
    const { start } = await createCluster();
    const error = await start(options).then(String, String);
    expect(error).toContain(message);
    expect(error).not.toContain('canary');
  });

  test('a change of "config" needs a restart', async () => {
    const { url, start } = await createCluster();
    await push(url, write('one'));
    const node = await start();
    writeFileSync(node.file ?? '', JSON.stringify({ models: { other: 'demo/hello' } }));
    await node.reload();
    expect(node.lines.join('')).toContain('config: a change needs a restart');
    expect(await listModels(node)).toContain('one');
  });
});

describe('sluice config push', needs('postgres'), () => {
  test('of two changes to one version, one is stored', async () => {
    const url = await createAddress();
    await push(url, write('one'));
    const texts = ['a', 'b', 'c', 'd'].map((name) => write(name));
    const outcomes = await Promise.all(texts.map((text) => push(url, text, '--expect', '1')));
    expect(outcomes.map(({ code }) => code).sort()).toEqual([0, 1, 1, 1]);
    for (const { code, stderr } of outcomes) if (code === 1) expect(stderr).toMatch(/--expect/);
    const stored = texts[outcomes.findIndex(({ code }) => code === 0)];
    expect((await config(url, ['show'])).stdout).toBe(stored);
    expect(jsonLines(await config(url, ['history', '--json']))).toHaveLength(2);
    const late = await push(url, write('e'), '--expect', '1');
    expect(late).toMatchObject({ code: 1, stderr: expect.stringContaining('version 2 is in force, not 1') });
    const database = (work: (versions: ConfigVersions) => Promise<unknown>) =>
      withConfigVersions(url, { mayChange: false }, work);
    const change = { text: write('f'), author: '', comment: '', rollback_of: null, expected: 1, actor: 'cli' } as const;
    await expect(database((versions) => versions.add(change))).rejects.toMatchObject({ code: 'conflict' });
  });

  test('the same text again changes nothing', async () => {
    const url = await createAddress();
    for (const changed of [true, false])
      expect(jsonLines(await push(url, write('one'), '--json'))).toMatchObject([{ version: 1, replaced: null, changed }]);
    expect(await config(url, ['rollback', '1'])).toMatchObject({ code: 0, stdout: expect.stringContaining('stays in force') });
    expect(await config(url, ['rollback', '7'])).toMatchObject({ code: 1, stderr: expect.stringContaining('no version 7') });
  });

  /** Shared by the tests that store nothing. */
  let empty: Promise<string> | undefined;

  const SECRET = 'canary-0123456789abcdef';

  test.each<[string, string, string]>([
    ['broken YAML', 'models: [\n', 'shared.yaml:2:1'],
    ['an unknown key', `modles: {}\n${write('a')}`, 'unknown key "modles"; did you mean "models"?'],
    ['an unknown target', 'models: { a: nowhere/x }\n', 'models.a'],
    ['no settings', '# nothing\n', 'has no settings'],
    ['a NUL', `${write('a')}# \0\n`, 'NUL'],
    ['a setting of nodes', `listen: { port: 1 }\n${write('a')}`, 'listen: is a setting of each node'],
    ['a pepper', `auth: { pepper_file: /p }\n${write('a')}`, 'auth.pepper_file: is a setting of each node'],
    ['a database', `store: env:X\n${write('a')}`, 'store: is a setting of each node'],
    [
      'a key of a provider',
      `providers:\n  groq:\n    api_key: ${SECRET}\n`,
      'shared.yaml:3:14: providers.groq.api_key: is a secret',
    ],
    ['one of several keys', `providers: { groq: { api_keys: [env:A, ${SECRET}] } }\n`, 'providers.groq.api_keys[1]: is a secret'],
    ['a client key', `auth: { keys: [{ key: ${SECRET}, name: a }] }\n`, 'auth.keys[0].key: is a secret'],
    ['a short key', 'admin: { key: short }\n', 'admin.key: is a secret'],
    ['an admin key', `admin: { key: ${SECRET} }\n`, 'admin.key: is a secret'],
    [
      'a header',
      `providers: { groq: { api_key: env:A, headers: { x-token: ${SECRET} } } }\n`,
      'providers.groq.headers.x-token: is a secret',
    ],
    ['a password of Redis', `limits_store: redis://:${SECRET}@h:1\n`, 'limits_store: is a secret'],
    ['an alias', `providers: { groq: { organization: &k ${SECRET}, api_key: *k } }\n`, 'providers.groq.api_key: is a secret'],
    ['a comment', `# was: sk-${SECRET}\n${write('a')}`, 'shared.yaml:1:1: a text in this line looks like a secret'],
    ['a query', `providers: { p: { protocol: gemini, base_url: "http://h/?key=${SECRET}" } }\n`, 'looks like a secret'],
  ])('refuses %s, and reports where', async (_, text, message) => {
    empty ??= createAddress();
    const url = await empty;
    const { code, stdout, stderr } = await push(url, text);
    expect({ code, text: stdout + stderr }).toEqual({ code: 1, text: expect.stringContaining(message) });
    expect(stdout + stderr).not.toContain(SECRET);
    expect((await config(url, ['history'])).stdout).toContain('There are no versions');
  });

  test('accepts references of all kinds, which this machine cannot resolve', async () => {
    const url = await createAddress();
    const text = `providers:
  groq: { api_keys: [env:A, "\${B}", file:/run/secrets/groq] }
  openai: { headers: { x-api-key: env:C, authorization: "Bearer \${D}" } } # x-api-key: env:LONG_NAME
auth: { keys: [{ key: os.environ/E, name: a }] }
admin: { key: env.F }
limits_store: { url: env:REDIS_URL, expected_nodes: 2 }
`;
    expect(await push(url, text)).toMatchObject({ code: 0 });
    const removing = write('a');
    expect(await push(url, removing)).toMatchObject({ code: 1, stdout: expect.stringContaining('would remove all client keys') });
    expect(await push(url, `reset: true\n${removing}`)).toMatchObject({ code: 0 });
  });

  test('reports problems as JSON, and wrong usage', async () => {
    const url = await createAddress();
    expect(jsonLines(await push(url, 'modles: {}\n', '--json'))).toMatchObject([{ valid: false, problems: [{ line: 1 }] }]);
    expect(await config(url, ['show'])).toMatchObject({ code: 1, stderr: expect.stringContaining('no configuration yet') });
    for (const [args, message] of [
      [['push'], 'name the file to store'],
      [['push', 'a', 'b'], 'unexpected argument "b"'],
      [['push', 'gone'], 'no such file'],
      [['rollback'], 'name the version'],
      [['rollback', 'x'], 'VERSION must be a number'],
      [['history', '--expect', '1'], '--expect cannot be used with "config history"'],
      [['undo'], 'unknown action "undo"\nKnown actions: check, push'],
    ] as const)
      expect(await config(url, args)).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
    const secret = await push(url, write('a'), '--comment', `key sk-${SECRET}`);
    expect(secret).toMatchObject({ code: 2, stderr: expect.stringContaining('looks like a secret') });
    expect(await run(['config', 'history', '--store', 'env:NOT_SET'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('the environment variable NOT_SET is not set'),
    });
  });

  test('a push that is killed within its transaction leaves nothing', async () => {
    const url = await createAddress();
    await push(url, write('one'));
    const file = join(createFolder(), 'shared.yaml');
    writeFileSync(file, write('two'));
    const server = await startPostgres();
    const holder = new pg.Client({ connectionString: url });
    await holder.connect();
    closers.push(() => holder.end());
    // The version is inserted before the line of the audit log, which has to wait now.
    await holder.query('BEGIN; LOCK TABLE audit_log IN EXCLUSIVE MODE');
    const child = spawn(process.execPath, [SLUICE, 'config', 'push', file], { env: { SLUICE_STORE: url }, stdio: 'ignore' });
    const ended = new Promise((resolve) => child.once('exit', (_, signal) => resolve(signal)));
    const countPushes = async (condition: string): Promise<number> =>
      (await server.query(url, `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND ${condition}`)).length;
    const WAITING = "wait_event_type = 'Lock' AND query LIKE 'INSERT INTO audit_log%'";
    await until(async () => (await countPushes(WAITING)) === 1 || undefined);
    child.kill('SIGKILL');
    expect(await ended).toBe('SIGKILL');
    await holder.query('ROLLBACK');
    await until(async () => (await countPushes("query LIKE 'INSERT INTO audit_log%'")) === 0 || undefined);
    expect(jsonLines(await config(url, ['history', '--json']))).toMatchObject([{ version: 1 }]);
    const lines = await server.query(url, "SELECT object FROM audit_log WHERE action = 'config.push'");
    expect(lines).toEqual([{ object: '1' }]);
    expect(await push(url, write('two'), '--expect', '1')).toMatchObject({ code: 0 });
  });
});
