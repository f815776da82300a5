/** A private PostgreSQL server for tests: the binaries of the system, a new folder, a random port of the loopback address. */
import { execFileSync, spawn } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { PgBouncer } from './pgbouncer.js';
import { createTestFolder, endProcess, endWithTests, findPort, untilPrinted } from './programs.js';

const VERSIONS = '/usr/lib/postgresql';

const MIN_VERSION = 15;

/** The folder of the newest binaries, or of those that `SLUICE_POSTGRES` names; undefined when there are none. */
export function findPostgres() {
  const named = process.env['SLUICE_POSTGRES'];
  if (named !== undefined) return existsSync(join(named, 'initdb')) ? named : undefined;
  const versions = existsSync(VERSIONS) ? readdirSync(VERSIONS).map(Number) : [];
  const [newest] = versions.filter((version) => version >= MIN_VERSION).sort((a, b) => b - a);
  const folder = newest === undefined ? undefined : join(VERSIONS, String(newest), 'bin');
  return folder !== undefined && existsSync(join(folder, 'initdb')) ? folder : undefined;
}

/** The server refuses to run as root, so it runs as the user of its package then. */
function findUser() {
  if (process.getuid?.() !== 0) return {};
  const [, , uid, gid] = /^postgres:.*$/m.exec(readFileSync('/etc/passwd', 'utf8'))?.[0].split(':') ?? [];
  return { uid: Number(uid), gid: Number(gid) };
}

const CACHE = fileURLToPath(new URL('../../../../.cache/', import.meta.url));

/**
 * Puts an empty cluster into `folder`, as `data`. `initdb` takes a second and copying a tenth, so it runs once for each program and user:
 * only its owner can read a cluster.
 */
function copyCluster(bin, folder, user) {
  const initdb = join(bin, 'initdb');
  const name = `postgres${bin.replaceAll(/\W+/g, '-')}-${statSync(initdb).mtimeMs}-${process.getuid?.()}`;
  const template = join(CACHE, name);
  if (!existsSync(template)) {
    const options = ['-D', join(folder, 'new'), '-A', 'trust', '-U', 'test', '-E', 'UTF8', '--locale=C', '--no-sync'];
    execFileSync(initdb, options, { ...user, cwd: folder, stdio: 'ignore' });
    mkdirSync(CACHE, { recursive: true });
    // Several test files may do so at once.
    const copy = `${template}-${process.pid}-${Math.random()}`;
    copyFolder(join(folder, 'new'), copy);
    try {
      renameSync(copy, template);
    } catch {
      rmSync(copy, { recursive: true });
    }
    rmSync(join(folder, 'new'), { recursive: true });
  }
  copyFolder(template, join(folder, 'data'));
}

/** With the owner of its files. */
const copyFolder = (from, to) => execFileSync('cp', ['-a', from, to]);

/** A server that is killed with its machine loses data. One that is killed alone does not. */
const QUICK = ['fsync=off', 'full_page_writes=off', 'wal_level=minimal', 'max_wal_senders=0'];

const END_CONNECTIONS = 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1';

/** A server. */
export class PostgresServer {
  #bin = '';
  #folder = '';
  #port = 0;
  #user = {};
  #child;
  #count = 0;
  #isDurable = false;
  #pooler;

  /**
   * Starts a new and empty server. `isDurable`: it waits for the disk, as in production. With `SLUICE_POOLER=1`, addresses of databases are
   * those of a PgBouncer in front of it.
   */
  static async start({ isDurable = false } = {}) {
    const server = new PostgresServer();
    server.#isDurable = isDurable;
    server.#bin = findPostgres() ?? '';
    server.#user = findUser();
    server.#folder = createTestFolder('postgres');
    if (server.#user.uid !== undefined) chownSync(server.#folder, server.#user.uid, server.#user.gid);
    copyCluster(server.#bin, server.#folder, server.#user);
    server.#port = await findPort();
    await server.resume();
    if (process.env['SLUICE_POOLER']) server.#pooler = await PgBouncer.start({ port: server.#port, user: server.#user });
    return server;
  }

  /** Starts the server again, with its data. */
  async resume() {
    const options = [
      'listen_addresses=127.0.0.1',
      'unix_socket_directories=',
      'max_connections=200',
      ...(this.#isDurable ? [] : QUICK),
    ];
    const args = ['-D', join(this.#folder, 'data'), '-p', String(this.#port), ...options.flatMap((option) => ['-c', option])];
    const child = spawn(join(this.#bin, 'postgres'), args, {
      ...this.#user,
      cwd: this.#folder,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.#child = child;
    endWithTests(child, 'SIGQUIT');
    await untilPrinted(child, child.stderr, 'ready to accept connections', 'PostgreSQL');
  }

  /** Ends the server: `SIGINT` closes connections in order, `SIGQUIT` does not. Its data stays. */
  async halt(signal = 'SIGINT') {
    await endProcess(this.#child, signal);
  }

  /** Connections stay open, and get no reply. */
  freeze() {
    this.#signal('SIGSTOP');
  }

  thaw() {
    this.#signal('SIGCONT');
  }

  /** Every connection has a process of its own. */
  #signal(signal) {
    const { pid } = this.#child;
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
    for (const child of [pid, ...children.map(Number)]) process.kill(child, signal);
  }

  /** Creates a database, and returns its address: an empty one, or a copy of one that is not in use, given by its address. */
  async createDatabase(template) {
    const name = `test_${process.pid}_${++this.#count}`;
    const from = template === undefined ? 'template1' : template.slice(template.lastIndexOf('/') + 1);
    // A pooler keeps its connections.
    if (this.#pooler) await this.query(this.#address('postgres', this.#port), END_CONNECTIONS, [from]);
    await this.query(this.#address('postgres', this.#port), `CREATE DATABASE ${name} TEMPLATE ${from}`);
    return this.#address(name, this.#pooler?.port ?? this.#port);
  }

  /** Deletes a database, given by its address, and ends its connections. */
  async dropDatabase(address) {
    const name = address.slice(address.lastIndexOf('/') + 1);
    await this.query(this.#address('postgres', this.#port), `DROP DATABASE ${name} WITH (FORCE)`);
  }

  #address(name, port) {
    return `postgres://test@127.0.0.1:${port}/${name}`;
  }

  /**
   * Runs a statement in a database, given by its address. Big integers become numbers.
   * @returns {Promise<Record<string, unknown>[]>}
   */
  async query(address, text, values = []) {
    const types = { getTypeParser: (oid, format) => (oid === 20 || oid === 1700 ? Number : pg.types.getTypeParser(oid, format)) };
    const client = new pg.Client({ connectionString: address, types });
    await client.connect();
    try {
      return (await client.query(text, values)).rows;
    } finally {
      await client.end();
    }
  }

  /** Ends the server and deletes its data. */
  async stop() {
    await this.#pooler?.stop();
    await this.halt('SIGQUIT');
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
