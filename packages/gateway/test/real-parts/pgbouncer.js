/** A private PgBouncer for tests, in front of a private PostgreSQL: every transaction may get another connection of the server. */
import { spawn } from 'node:child_process';
import { chownSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createTestFolder, endProcess, endWithTests, findPort, findProgram, untilPrinted } from './programs.js';

const findPgBouncer = () => findProgram('pgbouncer');

/** Few connections, so that clients share them. */
const POOL_SIZE = 5;

/** A pooler in transaction mode. */
export class PgBouncer {
  #child;
  #port = 0;

  /**
   * Starts it. `user`: who it runs as, because it refuses to run as root.
   * @param {{ port: number, user: { uid?: number, gid?: number } }} server
   */
  static async start({ port, user }) {
    const pooler = new PgBouncer();
    pooler.#port = await findPort();
    const folder = createTestFolder('pgbouncer');
    const file = join(folder, 'pgbouncer.ini');
    writeFileSync(file, describe(port, pooler.#port));
    if (user.uid !== undefined) chownSync(folder, user.uid, user.gid);
    const program = findPgBouncer();
    if (program === undefined) throw new Error('PgBouncer is missing; install pgbouncer');
    const child = spawn(program, [file], { ...user, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
    pooler.#child = child;
    endWithTests(child);
    await untilPrinted(child, child.stderr, 'process up', 'PgBouncer');
    return pooler;
  }

  get port() {
    return this.#port;
  }

  async stop() {
    await endProcess(this.#child, 'SIGKILL');
  }
}

const describe = (from, to) => `
[databases]
* = host=127.0.0.1 port=${from} user=test
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${to}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${POOL_SIZE}
max_client_conn = 500
server_login_retry = 1
`;
