import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { needs } from '../../../../test/needs/needs.ts';
import { run as startGateway } from '../../src/server/run.ts';
import { FolderLock, listFiles, prepareFolder } from '../../src/store/sqlite/folder.ts';
import { type Outcome, run, UNUSED_URL, type World } from '../fake-io.ts';
import { TestAuthority } from '../gateway/certificates.ts';
import { createTestFolder, endProcess, endWithTests } from '../real-parts/programs.js';
import { createAddress } from '../store/ledger-fixture.ts';
import { assertBuilt } from '../store/processes.ts';
import { ADMIN_KEY, listKeyNames, type Project, startProject, writeProject } from './projects.ts';

const SLUICE = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));

/** The gateway of the project, and that of another one. */
let own: Project;
let other: Project;
/** A gateway that keeps data in memory, and the folder of its configuration. */
let memory: { folder: string; url: string; close(): Promise<void> };
/** A data folder that no gateway uses. */
let idle: string;

beforeAll(async () => {
  [own, other, memory] = await Promise.all([startProject(), startProject(), startInMemory()]);
  idle = createTestFolder('idle');
  await run(['keys', 'create', 'first', '--data', idle]);
});

afterAll(() => Promise.all([own.running.close(0), other.running.close(0), memory.close()]));

/** Its port is known after it has started, so the file is written again. */
async function startInMemory(): Promise<typeof memory> {
  const folder = writeProject({ data: 'memory' });
  const file = join(folder, 'sluice.yaml');
  const env = { SLUICE_ADMIN_KEY: ADMIN_KEY };
  const running = await startGateway({ folder, env, listen: { port: 0 }, data: 'default', log: 'silent' });
  writeFileSync(file, JSON.stringify({ data: 'memory', listen: { port: Number(new URL(running.url).port) } }));
  return { folder, url: running.url, close: () => running.close(0) };
}

const PLACES = {
  own: () => listKeyNames(own.data),
  other: () => listKeyNames(other.data),
  idle: () => listKeyNames(idle),
} as const satisfies Record<string, () => Promise<string[]>>;

async function findKey(name: string): Promise<string[]> {
  const found = await Promise.all(
    Object.entries(PLACES).map(async ([place, list]) => ((await list()).includes(name) ? [place] : [])),
  );
  return found.flat();
}

/** What a command is run with. Addresses and folders are known after the gateways have started. */
interface Situation {
  /** The content of sluice.yaml; without it, there is none. */
  readonly config?: () => object;
  readonly env?: () => Record<string, string>;
  /** What is at the default address; nothing without it. */
  readonly atDefault?: () => string;
  readonly args?: () => string[];
}

const buildWorld = ({ config, env, atDefault }: Situation): World => ({
  hasDisk: true,
  folder: writeProject(config?.() ?? {}),
  defaultUrl: atDefault?.() ?? UNUSED_URL,
  env: { SLUICE_ADMIN_KEY: ADMIN_KEY, ...env?.() },
});

const createKey = (situation: Situation, name: string): Promise<Outcome> =>
  run(['keys', 'create', name, ...(situation.args?.() ?? [])], buildWorld(situation));

/** A configuration of the project whose gateway is `own`. */
const ownConfig = (listen: object) => () => ({ listen, data: own.data });

const CHANGES: readonly (Situation & { readonly name: string; readonly lands: keyof typeof PLACES })[] = [
  {
    name: 'the file has another port and folder',
    config: () => ({ listen: { port: own.port }, data: own.data }),
    atDefault: () => other.url,
    lands: 'own',
  },
  { name: 'the file has no listen', config: () => ({ data: own.data }), atDefault: () => other.url, lands: 'own' },
  { name: 'the file has port 0', config: ownConfig({ port: 0 }), atDefault: () => other.url, lands: 'own' },
  { name: 'the file has a port that nothing uses', config: ownConfig({ port: 1 }), lands: 'own' },
  {
    name: 'the file has the port of another gateway',
    config: () => ({ listen: { port: other.port }, data: own.data }),
    lands: 'own',
  },
  ...['0.0.0.0', '::', 'localhost', '0:0:0:0:0:0:0:0'].map((host) => ({
    name: `the file listens on ${host}`,
    config: () => ({ listen: { host, port: own.port }, data: own.data }),
    lands: 'own' as const,
  })),
  ...['unix:/tmp/x', 'a@b', '/tmp/x.sock', 'no such host'].map((host) => ({
    name: `the file has the host ${host}`,
    config: () => ({ listen: { host, port: own.port }, data: own.data }),
    lands: 'own' as const,
  })),
  { name: 'without a file, SLUICE_DATA', env: () => ({ SLUICE_DATA: own.data }), atDefault: () => other.url, lands: 'own' },
  { name: 'the default address', env: () => ({ SLUICE_DATA: own.data }), atDefault: () => own.url, lands: 'own' },
  {
    name: '--config',
    args: () => ['--config', join(writeProject({ listen: { port: own.port }, data: own.data }), 'sluice.yaml')],
    atDefault: () => other.url,
    lands: 'own',
  },
  {
    name: 'SLUICE_DATA overrides the file',
    config: () => ({ data: other.data }),
    env: () => ({ SLUICE_DATA: own.data }),
    lands: 'own',
  },
  {
    name: 'keys of providers need not be set',
    config: () => ({
      data: own.data,
      providers: { a: { protocol: 'openai-chat', base_url: 'https://a.example', api_key: `\${UNSET_KEY}` } },
    }),
    lands: 'own',
  },
  { name: '--url', config: () => ({ data: own.data }), args: () => ['--url', other.url], lands: 'other' },
  { name: 'SLUICE_URL', config: () => ({ data: own.data }), env: () => ({ SLUICE_URL: other.url }), lands: 'other' },
  { name: '--url before SLUICE_URL', env: () => ({ SLUICE_URL: other.url }), args: () => ['--url', own.url], lands: 'own' },
  { name: 'an empty SLUICE_URL', config: () => ({ data: own.data }), env: () => ({ SLUICE_URL: '' }), lands: 'own' },
  { name: '--data before SLUICE_URL', env: () => ({ SLUICE_URL: other.url }), args: () => ['--data', idle], lands: 'idle' },
  {
    name: 'no gateway runs',
    config: () => ({ listen: { port: 1 }, data: idle }),
    atDefault: () => other.url,
    lands: 'idle',
  },
  { name: 'no gateway runs, without a file', env: () => ({ SLUICE_DATA: idle }), lands: 'idle' },
];

test.each(CHANGES)('a change is made in the right place: $name', async ({ lands, ...situation }) => {
  const name = `key-${randomUUID()}`;
  const { code, stderr } = await createKey(situation, name);
  expect(code, stderr).toBe(0);
  expect(await findKey(name)).toEqual([lands]);
});

const REFUSED: readonly (Situation & { readonly name: string; readonly names: () => string[] })[] = [
  {
    name: 'at the address of the file',
    config: () => ({ listen: { port: other.port }, data: idle }),
    names: () => [other.url, idle, 'sluice.yaml', `--url ${other.url}`],
  },
  {
    name: 'at the default address',
    config: () => ({ data: idle }),
    atDefault: () => other.url,
    names: () => [other.url, idle, 'sluice.yaml', `--url ${other.url}`],
  },
  {
    name: 'at the default address, without a file',
    env: () => ({ SLUICE_DATA: idle }),
    atDefault: () => other.url,
    names: () => [other.url, idle],
  },
  {
    name: 'data is kept in memory',
    config: () => ({ listen: { port: other.port }, data: 'memory' }),
    names: () => [other.url, 'memory'],
  },
  {
    name: 'a gateway in memory of another file',
    config: () => ({ data: 'memory' }),
    atDefault: () => memory.url,
    names: () => [memory.url, 'memory'],
  },
];

test.each(REFUSED)('another gateway is refused, and both are named: $name', async ({ names, ...situation }) => {
  const name = `key-${randomUUID()}`;
  const { code, stdout, stderr } = await createKey(situation, name);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  for (const part of ['is not the one of', 'nothing was changed', ...names()]) expect(stderr).toContain(part);
  expect(await findKey(name)).toEqual([]);
});

test('a gateway in memory is found by its file', async () => {
  const world: World = { hasDisk: true, folder: memory.folder, env: { SLUICE_ADMIN_KEY: ADMIN_KEY } };
  const { code, stderr } = await run(['keys', 'create', 'x'], world);
  expect([code, stderr]).toEqual([0, expect.stringContaining(`using the gateway at ${memory.url}`)]);
});

test('an error has every place in its order', async () => {
  const folder = writeProject({ listen: { port: 1 }, data: 'memory' });
  const { code, stderr } = await run(['usage'], { hasDisk: true, folder });
  expect(code).toBe(2);
  expect(stderr.split('\n').slice(1, -2)).toEqual([
    'Looked at:',
    '  --url: not given',
    '  SLUICE_URL: not set',
    `  ${join(folder, 'sluice.yaml')}: no gateway responds at http://127.0.0.1:1`,
    '  memory: has no lock with an address',
    '  default address: not used, because the file has listen',
  ]);
});

describe('commands that read', () => {
  const COMMANDS = ['usage', 'log', 'audit', 'keys list'];

  test.each(COMMANDS)('%s uses the gateway of the file', async (line) => {
    const situation = { config: ownConfig({ port: 0 }), atDefault: () => other.url };
    const { code, stderr } = await run(line.split(' '), buildWorld(situation));
    expect([code, stderr]).toEqual([0, expect.stringContaining(`the gateway at ${own.url}`)]);
  });

  test.each(COMMANDS)('%s reads the folder of the file when another gateway responds', async (line) => {
    const situation = { config: () => ({ listen: { port: other.port }, data: idle }) };
    const { code, stderr } = await run(line.split(' '), buildWorld(situation));
    expect([code, stderr]).toEqual([0, expect.stringContaining(`${idle} (the gateway at ${other.url} is another one)`)]);
  });

  test('a folder beside its gateway is read when the admin key is missing', async () => {
    const { code, stderr } = await run(['keys', 'list'], {
      ...buildWorld({ config: ownConfig({ port: 0 }) }),
      env: {},
    });
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining(`${own.data} (the gateway at ${own.url}: the admin API requires`),
    ]);
  });

  test('a change without the admin key is refused, with what to set', async () => {
    const world = { ...buildWorld({ config: ownConfig({ port: 0 }) }), env: {} };
    const { code, stderr } = await run(['keys', 'create', 'x'], world);
    expect([code, stderr.split('\n')[0]]).toEqual([
      2,
      `sluice: the gateway at ${own.url}: the admin API requires a key; set SLUICE_ADMIN_KEY or --key (401): an admin key is required: send it as Authorization: Bearer or x-api-key`,
    ]);
  });

  test('a change at a gateway without an admin key is refused, with what to set there and here', async () => {
    const closed = await startProject({ SLUICE_ADMIN_KEY: '', SLUICE_KEYS: 'a-client-key-of-the-tests' });
    const world = { ...buildWorld({ config: () => ({ listen: { port: 0 }, data: closed.data }) }), env: {} };
    const { code, stderr } = await run(['keys', 'create', 'x'], world);
    await closed.running.close(0);
    expect([code, stderr.split('\n')[0]]).toEqual([
      2,
      `sluice: the gateway at ${closed.url}: the admin API refused access (403): the admin API is closed, because no admin key is set: set admin.key in the configuration of the gateway, or SLUICE_ADMIN_KEY in its environment; then set SLUICE_ADMIN_KEY or --key here`,
    ]);
  });
});

describe('commands for clients', () => {
  test.each<[string, Situation, () => string]>([
    ['of the file', { config: () => ({ listen: { port: 1 }, data: idle }) }, () => UNUSED_URL],
    ['of the data folder', { config: ownConfig({ port: 0 }) }, () => own.url],
    ['of SLUICE_URL', { env: () => ({ SLUICE_URL: 'https://gate.example/v1' }) }, () => 'https://gate.example'],
    ['by default', { atDefault: () => other.url, env: () => ({ SLUICE_DATA: idle }) }, () => other.url],
  ])('env prints the address %s', async (_, situation, url) => {
    const { code, stdout } = await run(['env', 'curl', '--json'], buildWorld(situation));
    expect([code, JSON.parse(stdout)]).toEqual([0, expect.objectContaining({ url: url() })]);
  });

  test('env warns of another gateway', async () => {
    const { stderr } = await run(['env', 'curl'], buildWorld({ env: () => ({ SLUICE_DATA: idle }), atDefault: () => other.url }));
    expect(stderr).toContain(`the gateway at ${other.url} is not the one of this configuration`);
  });

  test('env does not guess a free port', async () => {
    const { code, stderr } = await run(['env', 'curl'], buildWorld({ config: () => ({ listen: { port: 0 }, data: idle }) }));
    expect([code, stderr]).toEqual([2, expect.stringContaining('listen.port is 0')]);
  });

  test.each<[string, Situation, RegExp]>([
    ['uses the gateway of the file', { config: ownConfig({ port: 0 }) }, /^$/],
    [
      'starts a gateway instead of using another one',
      { env: () => ({ SLUICE_DATA: idle }), atDefault: () => other.url },
      /started a gateway for this run on .* \(that at .* is not the one of this configuration/,
    ],
  ])('run %s', async (_, situation, stderr) => {
    let url = '';
    const program: NonNullable<World['program']> = ({ env }) => {
      url = env['OPENAI_BASE_URL'] ?? '';
      return 0;
    };
    const outcome = await run(['run', 'openai', '--', 'x'], { ...buildWorld(situation), program });
    expect(outcome).toMatchObject({ code: 0, stderr: expect.stringMatching(stderr) });
    expect(url.startsWith(own.url)).toBe(outcome.stderr === '');
    expect(url).not.toContain(other.url);
  });

  test.each<[string, () => string, RegExp]>([
    ['its own', () => own.data, /^(?!unknown)/],
    ['no other', () => idle, /^unknown$/],
  ])('route shows the health of %s gateway', async (_, data, health) => {
    const { code, stdout } = await run(
      ['route', 'demo/hello', '--json'],
      buildWorld({ config: () => ({ data: data() }), atDefault: () => other.url }),
    );
    expect([code, JSON.parse(stdout).candidates[0].health]).toEqual([0, expect.stringMatching(health)]);
  });
});

describe('hostile input', () => {
  const SECRET = 'pa55w0rd';

  test.each([
    ['--url', ['--url', `http://user:${SECRET}@127.0.0.1:1`], {}, 'must not contain a user name or password'],
    ['--url without a scheme', ['--url', `user:${SECRET}@127.0.0.1`], {}, 'must be an address'],
    ['SLUICE_URL', [], { SLUICE_URL: `https://user:${SECRET}@h.example` }, 'SLUICE_URL must not contain'],
    ['a file', [], { SLUICE_URL: 'file:///etc/passwd' }, 'SLUICE_URL must be an address'],
    ['nothing', [], { SLUICE_URL: 'http://127.0.0.1:1' }, 'check SLUICE_URL, or unset it'],
  ])('an address with a secret or of another kind: %s', async (_, args, env, message) => {
    for (const argv of [['usage'], ['keys', 'list'], ['run', 'claude'], ['route', 'demo/hello']]) {
      const { code, stderr } = await run([...argv, ...args], { env });
      expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
      expect(stderr).not.toContain(SECRET);
    }
  });

  test.each([
    ['garbage', '\u0000garbage\u001b[2J'],
    ['a huge file', `{"boot":"b","pid":1,"url":"http://127.0.0.1:1","x":"${'x'.repeat(10_000_000)}"}`],
    ['a list', '[1, 2]'],
    ['null', 'null'],
    ['an address that is not text', '{"boot":"b","pid":1,"url":{}}'],
    ['an address with a password', `{"boot":"b","pid":1,"url":"http://u:${SECRET}@127.0.0.1:1"}`],
    ['an address of another machine', '{"boot":"b","pid":1,"url":"http://192.0.2.7:80"}'],
    ['a name', '{"boot":"b","pid":1,"url":"http://evil.example"}'],
    ['a file', '{"boot":"b","pid":1,"url":"file:///etc/passwd"}'],
    ['nothing listens there', '{"boot":"b","pid":1,"url":"http://127.0.0.1:1"}'],
    ['the address of another gateway', 'OTHER'],
  ])('the file of the owner has %s', async (_, text) => {
    const folder = createTestFolder('held');
    await run(['keys', 'create', 'x', '--data', folder]);
    // A process that writes no heartbeat, which would replace the file.
    const lock = FolderLock.take(folder, 'boot', Date.now());
    try {
      const content = text === 'OTHER' ? JSON.stringify({ boot: 'b', pid: 1, url: other.url }) : text;
      writeFileSync(listFiles(folder).owner, content);
      const situation = { config: () => ({ data: folder }) };
      const { code, stderr } = await createKey(situation, 'y');
      expect([code, stderr]).toEqual([2, expect.stringContaining('Looked at:')]);
      expect(stderr).not.toContain(SECRET);
      expect(stderr.length).toBeLessThan(3000);
      expect(await listKeyNames(folder)).toEqual(['x']);
    } finally {
      lock.release();
    }
  });

  test('a file without its lock is that of a dead process, whatever process has its id now', async () => {
    const folder = createTestFolder('stale');
    prepareFolder(folder);
    FolderLock.take(folder, 'boot', 0).release();
    writeFileSync(listFiles(folder).owner, JSON.stringify({ boot: 'b', pid: process.pid, url: other.url }));
    const { code, stderr } = await createKey({ config: () => ({ data: folder }) }, 'x');
    expect(code, stderr).toBe(0);
    expect(await listKeyNames(folder)).toEqual(['x']);
  });
});

describe('the gateway', () => {
  test('records its address after it listens, and removes it at the end', async () => {
    const project = await startProject();
    const { owner } = listFiles(project.data);
    expect(JSON.parse(readFileSync(owner, 'utf8'))).toMatchObject({ url: project.url, pid: process.pid });
    await project.running.close(0);
    expect(existsSync(owner)).toBe(false);
  });

  test('on all addresses is found by its data folder', async () => {
    const data = join(createTestFolder('open'), 'data');
    const running = await startGateway({
      folder: '/nowhere',
      env: { SLUICE_DATA: data, SLUICE_ADMIN_KEY: ADMIN_KEY, SLUICE_KEYS: 'client-key-of-the-tests-0123456789' },
      listen: { host: '0.0.0.0', port: 0 },
      data: 'default',
      log: 'silent',
    });
    const { code, stderr } = await createKey({ config: () => ({ data }) }, 'x');
    await running.close(0);
    expect([code, stderr]).toEqual([0, expect.stringContaining('using the gateway at http://127.0.0.1:')]);
  });

  test('with a certificate that is not trusted is reported, and nothing is changed', async () => {
    const authority = new TestAuthority();
    const data = join(createTestFolder('tls'), 'data');
    const tls = authority.issue('gateway', '127.0.0.1');
    const folder = writeProject({ data, listen: { port: 0, tls }, admin: { key: ADMIN_KEY } });
    const running = await startGateway({ folder, env: {}, listen: {}, data: 'default', log: 'silent' });
    const config = () => ({ data, listen: { port: Number(new URL(running.url).port), tls } });
    const { code, stderr } = await createKey({ config }, 'x');
    await running.close(0);
    authority.remove();
    expect([code, stderr]).toEqual([2, expect.stringContaining(`the certificate of ${running.url} is not trusted`)]);
    expect(await listKeyNames(data)).toEqual([]);
  });
});

describe('a PostgreSQL store', needs('postgres'), () => {
  const start = async (store: string, pepper: string) => {
    const folder = writeProject({ store, auth: { pepper_file: pepper } });
    const env = { SLUICE_ADMIN_KEY: ADMIN_KEY };
    const running = await startGateway({ folder, env, listen: { port: 0 }, data: 'default', log: 'silent' });
    return { running, url: running.url, port: Number(new URL(running.url).port) };
  };

  test.each<[string, (port: number) => number, (url: string) => string]>([
    ['the gateway at the address of the file is used', (port) => port, (url) => `using the gateway at ${url}`],
    [
      'the database is changed when another gateway responds',
      () => other.port,
      () => `(the gateway at ${other.url} is another one)`,
    ],
    ['the database is changed when none runs', () => 1, () => '(no gateway responds at http://127.0.0.1:1)'],
  ])('%s', async (_, choosePort, message) => {
    const [store, pepper] = [await createAddress(), join(createTestFolder('pepper'), 'pepper')];
    const { running, url, port } = await start(store, pepper);
    const config = { store, auth: { pepper_file: pepper }, listen: { port: choosePort(port) } };
    const { code, stderr } = await createKey({ config: () => config }, 'x');
    const names = await listKeyNames(store);
    await running.close(0);
    expect([code, stderr]).toEqual([0, expect.stringContaining(message(url))]);
    expect(names).toEqual(['x']);
    expect(stderr).not.toContain('postgres://');
  });

  test('a gateway of another database is another one', async () => {
    const [store, second] = [await createAddress(), await createAddress()];
    const pepper = join(createTestFolder('pepper'), 'pepper');
    const { running, port } = await start(store, pepper);
    const config = { store: second, auth: { pepper_file: `${pepper}-2` }, listen: { port } };
    const { code, stderr } = await createKey({ config: () => config }, 'x');
    const names = await listKeyNames(store);
    await running.close(0);
    expect([code, stderr]).toEqual([0, expect.stringContaining('the gateway at')]);
    expect(names).toEqual([]);
    expect(await listKeyNames(second)).toEqual(['x']);
  });
});

describe('a gateway that was killed', () => {
  beforeAll(assertBuilt);

  test('leaves a file that is not used, and its folder can be changed', async () => {
    const data = join(createTestFolder('killed'), 'data');
    const env = { PATH: process.env['PATH'], SLUICE_DATA: data, SLUICE_ADMIN_KEY: ADMIN_KEY };
    const child = spawn(process.execPath, [SLUICE, 'serve', '--port', '0', '--json'], { env, cwd: writeProject({}) });
    endWithTests(child);
    const [line] = await once(createInterface({ input: child.stdout }), 'line');
    const { url } = JSON.parse(String(line));
    const situation = { config: () => ({ data }) };
    expect((await createKey(situation, 'running')).stderr).toContain(`using the gateway at ${url}`);
    await endProcess(child, 'SIGKILL');
    expect(JSON.parse(readFileSync(listFiles(data).owner, 'utf8'))).toMatchObject({ url, pid: child.pid });
    const after = await createKey(situation, 'offline');
    expect([after.code, after.stderr]).toEqual([0, expect.stringContaining(`using ${data} (no gateway responds at`)]);
    expect(await listKeyNames(data)).toEqual(['running', 'offline']);
  });
});
