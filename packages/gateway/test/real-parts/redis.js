/** A private Redis for tests: on a random port of the loopback address, without files. */
import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { Redis } from 'ioredis';
import { createTestFolder, endProcess, endWithTests, findPort, findProgram, untilPrinted } from './programs.js';

/** The server: Redis, or Valkey, which has the same protocol. */
export const findRedis = () => findProgram('redis-server', 'valkey-server');

/** A server. */
export class RedisServer {
  #folder = createTestFolder('redis');
  #port = 0;
  #child;

  /** Starts a new and empty server. */
  static async start() {
    const server = new RedisServer();
    server.#port = await findPort();
    await server.restart();
    return server;
  }

  get url() {
    return `redis://127.0.0.1:${this.#port}/0`;
  }

  /** Starts it again, empty. */
  async restart() {
    await this.kill();
    const args = ['--port', String(this.#port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', this.#folder];
    const child = spawn(findRedis() ?? 'redis-server', args, { stdio: ['ignore', 'pipe', 'ignore'] });
    this.#child = child;
    endWithTests(child);
    await untilPrinted(child, child.stdout, 'Ready to accept', 'Redis');
  }

  /** Connections stay open, and get no reply. */
  freeze() {
    this.#child?.kill('SIGSTOP');
  }

  thaw() {
    this.#child?.kill('SIGCONT');
  }

  async kill() {
    await endProcess(this.#child, 'SIGKILL');
    this.#child = undefined;
  }

  /** Deletes everything. */
  async flush() {
    await this.run((client) => client.flushall());
  }

  /**
   * Runs commands on a connection of its own.
   * @template T
   * @param {(client: Redis) => Promise<T>} use
   * @returns {Promise<T>}
   */
  async run(use) {
    const client = new Redis(this.url);
    try {
      return await use(client);
    } finally {
      client.disconnect();
    }
  }

  /** Ends the server and deletes its folder. */
  async stop() {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
