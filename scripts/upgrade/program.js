/** A gateway and its commands as processes, of this checkout or of an earlier commit. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ROOT } from '../build/packages.js';
import { VARIABLES } from './settings.js';

const PRELOAD = fileURLToPath(new URL('./preload.cjs', import.meta.url));

/** The admin key of all gateways that are started here. */
export const ADMIN_KEY = 'upgrade-admin-key-0123456789';

/** Programs of the checkout in `root`, with `home` as their home. `now` is the time that they start at. */
export class Program {
  constructor({ root = ROOT, home, now }) {
    this.bin = join(root, 'packages/gateway/bin/sluice.js');
    const { PATH, SystemRoot, NODE_OPTIONS = '' } = process.env;
    this.options = {
      cwd: home,
      env: {
        PATH,
        ...(SystemRoot && { SystemRoot }),
        HOME: home,
        USERPROFILE: home,
        SLUICE_ADMIN_KEY: ADMIN_KEY,
        ...VARIABLES,
        UPGRADE_CLOCK_OFFSET_MS: String(Date.parse(now) - Date.now()),
        NODE_OPTIONS: `${NODE_OPTIONS} --require ${JSON.stringify(PRELOAD)}`.trim(),
      },
    };
  }

  /** Runs a command. Resolves with the objects that it prints; rejects with its output when it fails. */
  async run(...args) {
    const { code, stdout, stderr } = await this.#start(args).ended;
    if (code !== 0) throw new Error(`sluice ${args.join(' ')} ended with ${code}:\n${stderr}${stdout}`);
    return parseLines(stdout);
  }

  /** Starts `sluice serve`. Resolves when it listens. */
  async serve(...args) {
    const { child, ended } = this.#start(['serve', '--port', '0', '--json', ...args]);
    const url = await new Promise((resolve, reject) => {
      let text = '';
      child.stdout.on('data', (data) => {
        text += data;
        if (text.includes('\n')) resolve(parseLines(text)[0].url);
      });
      ended.then(({ code, stderr }) => reject(new Error(`the gateway ended with ${code}:\n${stderr}`)));
    });
    const stop = async () => {
      child.kill('SIGTERM');
      return ended;
    };
    return { url, stop };
  }

  #start(args) {
    const child = spawn(process.execPath, [this.bin, ...args], { ...this.options, stdio: ['ignore', 'pipe', 'pipe'] });
    const output = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'])
      child[name].on('data', (data) => {
        output[name] += data;
      });
    const ended = new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code, signal) => resolve({ code: code ?? signal, ...output }));
    });
    return { child, ended };
  }
}

const parseLines = (text) =>
  text
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line));
