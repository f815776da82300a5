/** A terminal of a reader: one shell, in which commands follow each other, as another user and with an environment of its own. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdtempSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';

/** Milliseconds until a step has failed. `npm ci` on a busy machine takes minutes. */
const MOST_MS = 600_000;

/** Milliseconds until a program in a terminal of its own has to be ready. */
const READY_MS = 60_000;

/** How often the output of a program in a terminal of its own is read. */
const POLL_MS = 50;

const SHELL = ['bash', '--noprofile', '--norc'];

export class Session {
  #shell;
  #results;
  #folder;
  #seen;
  #count = 0;

  /**
   * @param {{ shell?: string[], cwd: string, env: Record<string, string>, uid?: number, gid?: number }} options
   * @param {string} folder for the output of steps, as this process sees it
   * @param {string} seen the same folder, as the shell sees it
   */
  constructor({ shell: [program = '', ...args] = SHELL, ...options }, folder, seen = folder) {
    this.#folder = mkdtempSync(join(folder, 'output-'));
    this.#seen = join(seen, basename(this.#folder));
    if (options.uid !== undefined) chownSync(this.#folder, options.uid, options.gid ?? options.uid);
    // A process group of its own, so that programs in the background end with it.
    this.#shell = spawn(program, args, {
      ...options,
      stdio: ['pipe', 'inherit', 'inherit', 'pipe'],
      detached: true,
    });
    // A shell that was ended reads no more: EPIPE.
    this.#shell.stdin.on('error', () => undefined);
    this.#results = createInterface({ input: this.#shell.stdio[3] })[Symbol.asyncIterator]();
  }

  /**
   * Runs commands and waits for them.
   * @param {string} code
   * @returns {Promise<{ exit: number, output: string }>} `exit`: the code of the last command that failed, else 0
   */
  async run(code) {
    const [file, seen] = this.#nextFile();
    this.#write(
      `failed=0; trap 'failed=$?' ERR\neval ${quote(code)} > ${quote(seen)} 2>&1 < /dev/null\ntrap - ERR; echo "$failed" >&3\n`,
    );
    const exit = Number(await this.#readResult(code));
    return { exit, output: readFileSync(file, 'utf8') };
  }

  /**
   * Starts a program in the folder and with the variables of this session, and waits until it prints a text.
   * @param {string} code
   * @param {RegExp} ready
   */
  async start(code, ready) {
    const [file, seen] = this.#nextFile();
    this.#write(`: > ${quote(seen)}; ( eval ${quote(code)} ) > ${quote(seen)} 2>&1 < /dev/null & echo $! >&3\n`);
    const id = Number(await this.#readResult(code));
    const until = Date.now() + READY_MS;
    for (;;) {
      const output = readFileSync(file, 'utf8');
      if (ready.test(output)) return;
      if (!isAlive(id)) throw new Error(`${code.trim()}: ended before it was ready:\n${output}`);
      if (Date.now() > until) throw new Error(`${code.trim()}: not ready after ${READY_MS / 1000} s:\n${output}`);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  /** Ends the shell and everything that it started. */
  async end() {
    if (this.#shell.exitCode !== null) return;
    const ended = once(this.#shell, 'exit');
    process.kill(-this.#shell.pid, 'SIGTERM');
    this.#shell.stdin.end('exit\n');
    await ended;
  }

  /** A file for output: its path here, and in the shell. */
  #nextFile() {
    this.#count += 1;
    const name = `${this.#count}.txt`;
    return [join(this.#folder, name), join(this.#seen, name)];
  }

  #write(text) {
    this.#shell.stdin.write(text);
  }

  async #readResult(code) {
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`${code.trim()}: not done after ${MOST_MS / 1000} s`)), MOST_MS);
    });
    try {
      const { value, done } = await Promise.race([this.#results.next(), late]);
      if (done) throw new Error(`${code.trim()}: the shell has ended`);
      return value;
    } finally {
      clearTimeout(timer);
    }
  }
}

const quote = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

function isAlive(id) {
  try {
    process.kill(id, 0);
    return true;
  } catch {
    return false;
  }
}
