/** All backends of limits, for tests that hold for each of them. */
import { randomUUID } from 'node:crypto';
import type { Account, LimitBackend } from '../../src/admission/backend.ts';
import { MemoryBackend } from '../../src/admission/memory.ts';
import { RedisBackend, type RedisOptions } from '../../src/admission/redis/backend.ts';
import { REAL_CLOCK } from '../../src/http/clock.ts';
import { TestClock } from '../gateway/test-clock.ts';
import { findRedis, RedisServer } from '../real-parts/redis.js';

type Read = (since: number, account: Account) => Promise<number>;

/** A backend with a clock that a test advances. `read`: what the ledger has. */
export type CreateBackend = (read?: Read, shared?: Shared) => Promise<{ backend: LimitBackend; clock: TestClock }>;

/** What a backend shares with one that crashed. */
interface Shared {
  readonly prefix: string;
  readonly clock: TestClock;
}

let server: Promise<RedisServer> | undefined;

const opened = new Set<LimitBackend>();

/** The server of this test file. */
export const useRedis = (): Promise<RedisServer> => {
  server ??= RedisServer.start();
  return server;
};

/** Closes the backends that a test has created. */
export async function closeBackends(): Promise<void> {
  for (const backend of opened) await backend.close();
  opened.clear();
}

export async function stopServers(): Promise<void> {
  await (await server)?.stop();
  server = undefined;
}

const SILENT = { debug: () => undefined, info: () => undefined, warn: () => undefined };

export const createPrefix = (): string => `test-${randomUUID()}:`;

/** A node of a cluster, by the real clock. */
export async function createNode(
  options: Pick<RedisOptions, 'prefix' | 'readSpending' | 'nodes'> & Partial<RedisOptions>,
): Promise<RedisBackend> {
  const backend = new RedisBackend({
    url: (await useRedis()).url,
    timeoutMs: 1000,
    connectTimeoutMs: 1000,
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

const createRedis: CreateBackend = async (
  read = async () => 0,
  { prefix, clock } = { prefix: createPrefix(), clock: new TestClock() },
) => {
  const backend = await createNode({
    prefix,
    nodes: 1,
    readSpending: (account, since) => read(since, account),
    serverTime: () => START + clock.now(),
  });
  await clock.advance(READY_MS);
  return { backend, clock };
};

const START = 1_700_000_000_000;

const createMemory: CreateBackend = async (read = async () => 0) => {
  const clock = new TestClock();
  return { clock, backend: new MemoryBackend(clock, (account, since) => read(since, account)) };
};

export const BACKENDS: readonly { name: string; skip: boolean; create: CreateBackend }[] = [
  { name: 'memory', skip: false, create: createMemory },
  { name: 'redis', skip: !findRedis(), create: createRedis },
];
