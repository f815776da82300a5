/** A private nginx for tests, with the configuration of deploy/ on other ports. */
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createTestFolder, endProcess, endWithTests, findPort, findProgram } from './programs.js';

export const findNginx = () => findProgram('nginx');

const CONFIG = fileURLToPath(new URL('../../../../deploy/nginx.conf', import.meta.url));

/** Folders that nginx writes to; by default they belong to the system. */
const TEMPORARY = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];

/** The configuration of deploy/ in a folder, for a port and the ports of both gateways. Everything else is unchanged. */
function writeConfig(folder, port, gateways) {
  const folders = TEMPORARY.map((name) => `${name}_temp_path ${folder}/${name};`).join('\n  ');
  const text = readFileSync(CONFIG, 'utf8')
    .replaceAll(/sluice-(\d):4141/g, (_, number) => `127.0.0.1:${gateways[number - 1]}`)
    .replace('listen 8080;', `listen 127.0.0.1:${port};`)
    .replace('http {', `http {\n  ${folders}`);
  const file = join(folder, 'nginx.conf');
  writeFileSync(file, `pid ${folder}/pid;\n${text}`);
  return file;
}

/** A server in front of two gateways. */
export class NginxServer {
  #folder = createTestFolder('nginx');
  #port = 0;
  #child;

  /** Starts a server in front of the gateways on these two ports. They need not listen yet. */
  static async start(gateways) {
    const server = new NginxServer();
    server.#port = await findPort();
    const file = writeConfig(server.#folder, server.#port, gateways);
    const args = ['-c', file, '-e', join(server.#folder, 'error.log'), '-g', 'daemon off;'];
    server.#child = spawn(findNginx() ?? 'nginx', args, { stdio: 'ignore' });
    // Its workers would outlive SIGKILL.
    endWithTests(server.#child, 'SIGTERM');
    await server.#untilListening();
    return server;
  }

  /** What `nginx -t` prints for the configuration. */
  static check() {
    const folder = createTestFolder('nginx');
    try {
      const file = writeConfig(folder, 8080, [4141, 4142]);
      const args = ['-t', '-c', file, '-e', join(folder, 'error.log')];
      return spawnSync(findNginx() ?? 'nginx', args, { encoding: 'utf8' }).stderr;
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  get url() {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** The lines of its log of errors. */
  get errors() {
    return readFileSync(join(this.#folder, 'error.log'), 'utf8');
  }

  async #untilListening() {
    for (let turn = 0; turn < 500; turn++) {
      if (this.#child.exitCode !== null) throw new Error(`nginx did not start: ${this.errors}`);
      if (await isListening(this.#port)) return;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    throw new Error('nginx does not listen');
  }

  /** Ends the server and deletes its folder. */
  async stop() {
    await endProcess(this.#child, 'SIGTERM');
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

const isListening = (port) =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
