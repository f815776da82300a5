/** All backends of limits, for tests that hold for each of them. */
import { randomUUID } from 'node:crypto';
import type { TestOptions } from 'vitest';
import { needs } from '../../../../test/needs/needs.ts';
import type { Account, LimitBackend } from '../../src/admission/backend.ts';
import { MemoryBackend } from '../../src/admission/memory.ts';
import { PostgresDriver } from '../../src/admission/postgres/driver.ts';
import { RedisDriver } from '../../src/admission/redis/driver.ts';
import { SharedBackend, type SharedOptions } from '../../src/admission/shared/backend.ts';
import type { Driver, DriverEvents } from '../../src/admission/shared/driver.ts';
import { REAL_CLOCK } from '../../src/http/clock.ts';
import { TestClock } from '../gateway/test-clock.ts';
import { PostgresServer } from '../real-parts/postgres.js';
import { RedisServer } from '../real-parts/redis.js';

type Read = (since: number, account: Account) => Promise<number>;

/** A backend with a clock that a test advances. `read`: what the ledger has. */
export type CreateBackend = (read?: Read, shared?: Shared) => Promise<{ backend: LimitBackend; clock: TestClock }>;

/** What a backend shares with one that crashed. */
interface Shared {
  readonly prefix: string;
  readonly clock: TestClock;
}

/** A server that keeps limits, and what can happen to it. */
export interface LimitsServer {
  /** Where it is. */
  readonly url: string;
  createDriver(options: { prefix: string; connectTimeoutMs: number }, events: DriverEvents): Driver;
  /** Deletes all limits. */
  flush(): Promise<unknown>;
  freeze(): void;
  thaw(): void;
  kill(): Promise<void>;
  /** Starts it again, without limits. */
  restart(): Promise<void>;
  /** Forgets scripts, where the server keeps those of its clients. */
  loseScripts?(): Promise<unknown>;
  /** Ends all connections. */
  cut(): Promise<unknown>;
  /** Every write fails until it may be written again. */
  setWritable(isWritable: boolean): Promise<unknown>;
  stop(): Promise<void>;
}

async function startRedis(): Promise<LimitsServer> {
  const redis = await RedisServer.start();
  return {
    url: redis.url,
    createDriver: (options, events) => new RedisDriver({ ...options, url: redis.url }, events),
    flush: () => redis.flush(),
    freeze: () => redis.freeze(),
    thaw: () => redis.thaw(),
    kill: () => redis.kill(),
    restart: () => redis.restart(),
    loseScripts: () => redis.run((client) => client.script('FLUSH')),
    cut: () => redis.run((client) => client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')),
    setWritable: (isWritable) => redis.run((client) => client.config('SET', 'min-replicas-to-write', isWritable ? '0' : '1')),
    stop: () => redis.stop(),
  };
}

async function startPostgres(): Promise<LimitsServer> {
  const postgres = await PostgresServer.start();
  const url = await postgres.createDatabase();
  const cut = (): Promise<unknown> => postgres.query(url, END_OTHERS);
  return {
    url,
    createDriver: (options, events) => new PostgresDriver({ ...options, url, clock: REAL_CLOCK }, events),
    flush: () => retryDeadlocks(() => postgres.query(url, 'TRUNCATE limits1_state, limits1_nodes, limits1_rows, limits1_leases')),
    freeze: () => postgres.freeze(),
    thaw: () => postgres.thaw(),
    // A crash: the tables of limits are empty afterwards.
    kill: () => postgres.halt('SIGQUIT'),
    restart: () => postgres.resume(),
    cut,
    setWritable: async (isWritable) => {
      const name = new URL(url).pathname.slice(1);
      const value = isWritable ? 'off' : 'on';
      await postgres.query(url, `BEGIN READ WRITE; ALTER DATABASE ${name} SET default_transaction_read_only = ${value}; COMMIT`);
      await cut();
    },
    stop: () => postgres.stop(),
  };
}

/** New connections have the settings of the database. */
const END_OTHERS =
  'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()';

/** A call may hold a table that the statement needs, and wait for one that the statement has. */
async function retryDeadlocks<Result>(run: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await run();
    } catch (error) {
      if (!String(error).includes('deadlock detected')) throw error;
    }
  }
}

/** What limits can be shared by. */
export const SERVERS = {
  redis: { options: needs('redis'), start: startRedis },
  postgres: { options: needs('postgres'), start: startPostgres },
} as const satisfies Record<string, { options: TestOptions; start: () => Promise<LimitsServer> }>;

export type ServerName = keyof typeof SERVERS;

const servers = new Map<ServerName, Promise<LimitsServer>>();

const opened = new Set<LimitBackend>();

/** The server of this test file. */
export function useServer(name: ServerName): Promise<LimitsServer> {
  const server = servers.get(name) ?? SERVERS[name].start();
  servers.set(name, server);
  return server;
}

/** Closes the backends that a test has created. */
export async function closeBackends(): Promise<void> {
  for (const backend of opened) await backend.close();
  opened.clear();
}

export async function stopServers(): Promise<void> {
  for (const server of servers.values()) await (await server).stop();
  servers.clear();
}

const SILENT = { debug: () => undefined, info: () => undefined, warn: () => undefined };

export const createPrefix = (): string => `test-${randomUUID()}:`;

/** How a test creates a node. */
export type NodeOptions = { readonly prefix: string } & Pick<SharedOptions, 'readSpending' | 'nodes'> & Partial<SharedOptions>;

/** A node of a cluster, by the real clock. */
export async function createNode(name: ServerName, { prefix, ...options }: NodeOptions): Promise<SharedBackend> {
  const server = await useServer(name);
  const backend = new SharedBackend({
    createDriver: (events) => server.createDriver({ prefix, connectTimeoutMs: 1000 }, events),
    timeoutMs: 5000,
    startMs: 20_000,
    clock: REAL_CLOCK,
    log: SILENT,
    onInsured: () => undefined,
    onFailure: () => undefined,
    ...options,
  });
  opened.add(backend);
  await backend.load([]);
  return backend;
}

/** Waits until a new epoch is ready. */
const READY_MS = 1000;

const createShared =
  (name: ServerName): CreateBackend =>
  async (read = async () => 0, { prefix, clock } = { prefix: createPrefix(), clock: new TestClock() }) => {
    const backend = await createNode(name, {
      prefix,
      nodes: 1,
      readSpending: (account, since) => read(since, account),
      serverTime: () => START + clock.now(),
      onInsured: () => {
        throw new Error(`${name} is not used`);
      },
    });
    await clock.advance(READY_MS);
    if (!backend.isShared) throw new Error(`${name} is not used`);
    return { backend, clock };
  };

const START = 1_700_000_000_000;

const createMemory: CreateBackend = async (read = async () => 0) => {
  const clock = new TestClock();
  return { clock, backend: new MemoryBackend(clock, (account, since) => read(since, account)) };
};

export const BACKENDS: readonly { name: string; options: TestOptions; create: CreateBackend }[] = [
  { name: 'memory', options: {}, create: createMemory },
  { name: 'redis', options: SERVERS.redis.options, create: createShared('redis') },
  { name: 'postgres', options: SERVERS.postgres.options, create: createShared('postgres') },
];
