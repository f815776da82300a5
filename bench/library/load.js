/** Sluice of any checkout: this one, or another build beside it in the same process. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ROOT } from '../method/commits.js';

/** Where the functions that are measured come from. */
const ENTRIES = ['.', './accumulate', './engine', './io', './openai-chat', './sse'];

/** The entry points of `packages/core` in a checkout: `{ './sse': '/…/dist/sse/index.js' }`. */
export function readEntries(folder = ROOT) {
  const home = join(folder, 'packages/core');
  const { exports } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'));
  return Object.fromEntries(
    Object.entries(exports).flatMap(([entry, target]) => (target.default ? [[entry, join(home, target.default)]] : [])),
  );
}

/**
 * The functions to measure, over the build of a checkout. Each build has a copy of bench/subjects/sluice.js: what the compiler learns about
 * a loop from one build does not affect the other.
 */
export async function loadSluice(folder = ROOT) {
  const files = readEntries(folder);
  const modules = {};
  for (const entry of ENTRIES) modules[entry] = await import(pathToFileURL(files[entry]).href);
  const { createSubjects } = await import(`../subjects/sluice.js?build=${encodeURIComponent(folder)}`);
  return createSubjects(modules);
}
