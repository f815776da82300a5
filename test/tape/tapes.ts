import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { chooseEnvNetwork } from '../../packages/gateway/src/config/network.ts';
import { Recorder, type Saved } from '../../packages/gateway/src/tape/recorder.ts';
import { Replayer, type ReplayerOptions } from '../../packages/gateway/src/tape/replayer.ts';
import { TapeWriter } from '../../packages/gateway/src/tape/write.ts';
import { eventually } from '../../packages/gateway/test/gateway/start.ts';
import { readTape } from '../../packages/lab/src/tape/read.ts';

const folders: string[] = [];

afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A folder that is gone when the tests of the file have ended. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-tape-'));
  folders.push(folder);
  return folder;
}

export interface Recording {
  url: string;
  folder: string;
  saved: Saved[];
  /** The exchange that is saved as the n-th, from 1 on. */
  nth(n: number): Promise<Saved>;
  close(): Promise<void>;
}

export async function startRecorder(
  upstream: string,
  maxBytes?: number,
  onSaved?: () => void,
  env: Record<string, string> = {},
): Promise<Recording> {
  const folder = temporaryFolder();
  const saved: Saved[] = [];
  const recorder = new Recorder({
    upstream: new URL(upstream),
    network: chooseEnvNetwork(upstream, env, () => undefined),
    writer: await TapeWriter.open(folder),
    onExchange: (one) => {
      saved.push(one);
      onSaved?.();
    },
    ...(maxBytes !== undefined && { maxBytes }),
  });
  const url = await recorder.listen(0);
  return { url, folder, saved, nth: (n) => eventually(() => saved[n - 1]), close: () => recorder.close() };
}

export async function startReplayer(
  tape: string,
  options: Omit<ReplayerOptions, 'exchanges'> = {},
): Promise<{ url: string; close(): Promise<void> }> {
  const replayer = await Replayer.open({ exchanges: await readTape(tape), ...options });
  return { url: await replayer.listen(0), close: () => replayer.close() };
}

/** Everything that was written, as one text. */
export const everythingIn = (folder: string): string =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => `${parentPath}/${name}\n${readFileSync(join(parentPath, name), 'latin1')}`)
    .join('\n');

export const factsIn = (folder: string, name: string) =>
  JSON.parse(readFileSync(join(folder, name, 'exchange.json'), 'utf8')) as Record<string, never>;
