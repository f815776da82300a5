/** Other processes beside the tests: gateways that own a folder, and programs that hold a lock. */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { isFresh } from '../../../../scripts/build/freshness.js';

const local = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** Workers and other processes run the build: an old one would test old code. */
export function assertBuilt(): void {
  if (!isFresh('packages')) throw new Error('the build is missing or old; run "npm run build" first');
}

/** A running script. */
export interface Script {
  readonly child: ChildProcess;
  /** Resolves when the script has printed this. */
  printed(text: string): Promise<void>;
  /** What it printed so far. */
  output(): string;
  /** Resolves with the exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals | null>;
}

/** Runs an ES module that may use `openStore`, `DatabaseSync` and `args`. */
export function runScript(text: string, ...args: string[]): Script {
  const program = `
    import { openStore, openStoreReader } from ${JSON.stringify(local('../../out/store/index.js'))};
    import { DatabaseSync } from ${JSON.stringify(import.meta.resolve('@photostructure/sqlite'))};
    const args = process.argv.slice(1);
    ${text}`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  const listeners = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (data) => {
      output += data;
      for (const listener of listeners) listener();
    });
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.once('close', (code, signal) => resolve(code ?? signal));
  });
  return {
    child,
    ended,
    output: () => output,
    printed: (wanted) =>
      new Promise((resolve, reject) => {
        const check = (): void => {
          if (output.includes(wanted)) resolve();
        };
        listeners.add(check);
        check();
        void ended.then((code) => reject(new Error(`the script ended (${code}) before it printed "${wanted}": ${output}`)));
      }),
  };
}
