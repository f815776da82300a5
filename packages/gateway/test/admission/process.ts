/** Gateways as processes of their own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { eventually } from '../gateway/start.ts';

const SLUICE = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));

const children = new Set<ChildProcess>();

/** Ends the processes of a test. */
export function killProcesses(): void {
  for (const child of children) child.kill('SIGKILL');
  children.clear();
}

/** Starts `sluice serve` and waits until it listens. */
export async function startProcess(
  folder: string | undefined,
  config: string,
  { args = [], port = 0, env = {} }: ProcessOptions = {},
): Promise<{ url: string; child: ChildProcess }> {
  const data = folder === undefined ? [] : ['--data', folder];
  const all = [SLUICE, 'serve', '--config', config, '--port', String(port), '--json', ...data, ...args];
  const child = spawn(process.execPath, all, { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, ...env } });
  children.add(child);
  let text = '';
  child.stdout?.on('data', (data) => {
    text += data;
  });
  const url = await eventually(() => /"url": ?"([^"]+)"/.exec(text)?.[1], 20_000);
  return { url, child };
}

interface ProcessOptions {
  args?: readonly string[];
  port?: number;
  env?: Readonly<Record<string, string>>;
}
