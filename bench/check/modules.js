/** Files that are loaded at start: by `sluice serve` until it listens, by `sluice --help`, and by `import '@sluice/core'`. */
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildServeArguments, LISTENING, makeFolder, PROGRAM, ROOT, startNode, waitForOutput } from './gateway.js';

const PRELOAD = new URL('./modules-preload.mjs', import.meta.url).href;
/** The upstream of the configuration is not requested at start. */
const UNUSED_PORT = 9;

/** `isServer`: runs until it listens; the others end by themselves. */
const PROGRAMS = {
  'sluice serve': { args: () => buildServeArguments(UNUSED_PORT), isServer: true },
  'sluice --help': { args: () => [PROGRAM, '--help'] },
  // bench/ has @sluice/core as a dependency.
  "import '@sluice/core'": { args: () => [fileURLToPath(new URL('./import-core.mjs', import.meta.url))] },
};
export const PROGRAM_NAMES = Object.keys(PROGRAMS);

/** `{ files, bytes }` that a program loads. */
export async function countModules(name) {
  const files = (await listModules(name)).filter(isPublished);
  if (files.length === 0) throw new Error(`${name}: the inspector reported no file of packages/ or node_modules/`);
  return { files: files.length, bytes: files.reduce((sum, file) => sum + statSync(file).size, 0) };
}

/** Not what only a checkout has: scripts/build, which finds out whether the build is current, and the files of this check. */
const isPublished = (file) => [join(ROOT, 'packages/'), join(ROOT, 'node_modules/')].some((folder) => file.startsWith(folder));

async function listModules(name) {
  const { args, isServer = false } = PROGRAMS[name];
  const file = join(makeFolder('modules'), 'modules.json');
  const stdio = ['ignore', 'pipe', 'pipe', ...(isServer ? ['ipc'] : [])];
  const child = startNode(['--import', PRELOAD, ...args()], { env: { SLUICE_CHECK_MODULES: file }, stdio });
  const closed = once(child, 'close');
  if (isServer) {
    await waitForOutput(child, LISTENING, `\`${name}\``);
    child.send('end');
  }
  child.stdout.resume();
  child.stderr.resume();
  const [code] = await closed;
  if (code !== 0) throw new Error(`${name}: ended with code ${code}`);
  return JSON.parse(readFileSync(file, 'utf8')).map((url) => fileURLToPath(url));
}
