// The scripted upstream and the gateway in front of it, each a process of its own.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { UPSTREAMS, VARIANTS } from './table.js';

const BIN = fileURLToPath(new URL('../../packages/gateway/bin/sluice.js', import.meta.url));

/** Which provider answers with a variant of a protocol; without one, as it should be. */
export const providerOf = (protocol, variant) => UPSTREAMS[protocol].provider + (variant === undefined ? '' : `-${variant}`);

/** Starts both. `clients`: the folder of the runners and the mock; `folder`: where logs and the configuration go. */
export async function setStage({ clients, folder }) {
  const mock = await Mock.start(join(clients, 'mock', 'mock.mjs'), folder);
  const config = join(folder, 'sluice.json');
  writeFileSync(config, JSON.stringify(configFor(mock.url), null, 1));
  const port = await freePort();
  const log = join(folder, 'gateway.log');
  const gateway = launch([BIN, 'serve', '--config', config, '--port', String(port)], log);
  const url = `http://127.0.0.1:${port}`;
  await untilAnswers(`${url}/health/ready`, gateway);
  const close = async () => {
    await stop(gateway);
    await mock.close();
  };
  return { url, mock, close, watch: () => watchLog(log) };
}

/** From now on: which providers the gateway asked. An answer proves nothing about a provider that was never asked for it. */
function watchLog(log) {
  const before = readFileSync(log).length;
  return () => {
    const lines = readFileSync(log).subarray(before).toString().split('\n');
    const asked = lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line).provider);
    return [...new Set(asked.filter((provider) => provider !== undefined))];
  };
}

/** One provider for each protocol, and one for each variant of it. */
function configFor(mock) {
  const provider = (protocol, root) => ({
    protocol,
    base_url: root + UPSTREAMS[protocol].root,
    api_key: 'sk-fake-0000',
    repair: true,
  });
  const plain = Object.keys(UPSTREAMS).map((protocol) => [providerOf(protocol), provider(protocol, mock)]);
  const odd = VARIANTS.flatMap(({ id, in: protocols }) =>
    protocols.map((protocol) => [providerOf(protocol, id), provider(protocol, `${mock}/_v/${id}`)]),
  );
  return { providers: Object.fromEntries([...plain, ...odd]) };
}

/** The upstream. What it does at first only, it does anew after `renew`. */
export class Mock {
  #script;
  #folder;
  #port;
  #process;

  static async start(script, folder) {
    const mock = new Mock();
    mock.#script = script;
    mock.#folder = folder;
    mock.#port = await freePort();
    await mock.#open();
    return mock;
  }

  get url() {
    return `http://127.0.0.1:${this.#port}`;
  }

  async renew() {
    await this.close();
    await this.#open();
  }

  close() {
    return stop(this.#process);
  }

  async #open() {
    const log = join(this.#folder, 'mock.jsonl');
    this.#process = launch([this.#script, '--port', String(this.#port), '--log', log], join(this.#folder, 'mock.log'));
    await untilAnswers(this.url, this.#process);
  }
}

function launch(args, log) {
  const file = openSync(log, 'a');
  const child = spawn(process.execPath, args, { stdio: ['ignore', file, file] });
  closeSync(file);
  return child;
}

async function untilAnswers(url, child) {
  for (let tries = 0; tries < 200; tries++) {
    if (child.exitCode !== null) break;
    const answer = await fetch(url).catch(() => undefined);
    if (answer?.ok) return;
    await sleep(100);
  }
  throw new Error(`nobody answers at ${url}; the logs say why`);
}

async function stop(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGTERM');
  const hard = setTimeout(() => child.kill('SIGKILL'), 5000);
  await gone;
  clearTimeout(hard);
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
