/** A real Redis for tests: private, on its own port, without files. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';

/** The server: Redis, or Valkey, which speaks the same. */
const BINARIES = ['redis-server', 'valkey-server'] as const;

const findBinary = (): string | undefined =>
  BINARIES.find((name) => {
    try {
      execFileSync(name, ['--version'], { stdio: 'ignore' });
      return true;
    } catch {
      return false;
    }
  });

const binary = findBinary();

/** Whether tests with Redis are skipped. They must not be when `SLUICE_REQUIRE` names it. */
export const isRedisMissing = binary === undefined;

if (isRedisMissing) {
  if (process.env['SLUICE_REQUIRE']?.split(',').includes('redis'))
    throw new Error('SLUICE_REQUIRE names redis, and redis-server is not installed');
  console.log('skipped: tests with Redis, because redis-server is not installed');
}

/** A server must not outlive its test. */
const running = new Set<ChildProcess>();

process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** A running server. */
export class PrivateRedis {
  readonly port: number;
  readonly #folder = mkdtempSync(join(tmpdir(), 'sluice-redis-'));
  #child: ChildProcess | undefined;

  private constructor(port: number) {
    this.port = port;
  }

  static async start(): Promise<PrivateRedis> {
    const redis = new PrivateRedis(await findPort());
    await redis.restart();
    return redis;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}/0`;
  }

  /** Starts it again, empty. */
  async restart(): Promise<void> {
    await this.kill();
    const args = ['--port', String(this.port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', this.#folder];
    const child = spawn(binary ?? 'redis-server', args, { stdio: ['ignore', 'pipe', 'ignore'] });
    this.#child = child;
    running.add(child);
    for await (const text of child.stdout) if (/Ready to accept/.test(String(text))) break;
    child.stdout.resume();
  }

  /** It stands still: connections stay open, and nothing is answered. */
  freeze(): void {
    this.#child?.kill('SIGSTOP');
  }

  thaw(): void {
    this.#child?.kill('SIGCONT');
  }

  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (!child || child.exitCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
    running.delete(child);
  }

  /** Deletes everything. */
  async flush(): Promise<void> {
    await this.run((client) => client.flushall());
  }

  async run<T>(use: (client: Redis) => Promise<T>): Promise<T> {
    const client = new Redis(this.url);
    try {
      return await use(client);
    } finally {
      client.disconnect();
    }
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** A port that was free a moment ago. */
async function findPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('a server has no port');
  return address.port;
}
