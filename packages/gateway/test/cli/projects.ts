/** Projects with their gateways: each has a folder with `sluice.yaml`, and its data in another one. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Running, run as startGateway } from '../../src/server/run.ts';
import { openStoreReader } from '../../src/store/index.ts';
import { createTestFolder } from '../real-parts/programs.js';

export const ADMIN_KEY = 'admin-key-of-the-tests-0123456789';

/** A gateway on a free port that owns a data folder, and the folder of its project. */
export interface Project {
  readonly running: Running;
  readonly url: string;
  readonly port: number;
  /** The data folder. */
  readonly data: string;
}

/** Starts the gateway of a project. Its configuration is the environment, so that only its data identifies it. */
export async function startProject(env: Record<string, string> = {}): Promise<Project> {
  const data = join(createTestFolder('project'), 'data');
  const running = await startGateway({
    folder: '/nowhere',
    env: { SLUICE_DATA: data, SLUICE_ADMIN_KEY: ADMIN_KEY, ...env },
    listen: { port: 0 },
    data: 'default',
    log: 'silent',
  });
  return { running, url: running.url, port: Number(new URL(running.url).port), data };
}

/** A folder with a configuration; without settings, one without a file. */
export function writeProject(settings: object): string {
  const folder = createTestFolder('project');
  mkdirSync(folder, { recursive: true });
  if (Object.keys(settings).length > 0) writeFileSync(join(folder, 'sluice.yaml'), JSON.stringify(settings));
  return folder;
}

/** The names of the keys in a data folder or database. */
export async function listKeyNames(place: string): Promise<string[]> {
  const reader = await openStoreReader(place);
  try {
    return (await reader.listKeys()).map(({ name }) => name);
  } finally {
    await reader.close();
  }
}
