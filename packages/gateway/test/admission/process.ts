/** Gateways as processes of their own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { endProcess, endWithTests } from '../real-parts/programs.js';

const SLUICE = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));

const children = new Set<ChildProcess>();

/** Ends the processes of a test. */
export async function killProcesses(): Promise<void> {
  const all = [...children];
  children.clear();
  await Promise.all(all.map((child) => endProcess(child, 'SIGKILL')));
}

/** Starts `sluice serve` and waits until it listens. Rejects with what it printed when it ends before. */
export async function startProcess(
  folder: string | undefined,
  config: string,
  { args = [], port = 0, env = {} }: ProcessOptions = {},
): Promise<{ url: string; child: ChildProcess }> {
  const data = folder === undefined ? [] : ['--data', folder];
  const all = [SLUICE, 'serve', '--config', config, '--port', String(port), '--json', ...data, ...args];
  const child = spawn(process.execPath, all, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
  endWithTests(child);
  children.add(child);
  let text = '';
  const url = await new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (data) => {
        text += data;
        const [, found] = /"url": ?"([^"]+)"/.exec(text) ?? [];
        if (found !== undefined) resolve(found);
      });
    child.once('close', () => reject(new Error(`the gateway ended before it listened: ${text}`)));
  });
  return { url, child };
}

interface ProcessOptions {
  args?: readonly string[];
  port?: number;
  env?: Readonly<Record<string, string>>;
}
