// The one mutant that is at work, and what the tests meet.
import { mutants } from './sources.js';

/** A mutant that makes a test meet so many times more of them is caught in a loop. */
const PATIENCE = 20;
const LEAST = 50_000;

let active = -1;
let hits = 0;
let limit = Number.POSITIVE_INFINITY;
let met = new Uint8Array(mutants.length);

// Called by the code under test, at every place where it has a mutant.
globalThis.__mutant = (id) => {
  met[id] = 1;
  if (++hits > limit) throw new Error('caught in a loop');
  return id === active;
};

/** Runs `work` with the mutant let loose. */
export async function under(id, work) {
  active = id;
  try {
    return await work();
  } finally {
    active = -1;
    limit = Number.POSITIVE_INFINITY;
    // Where a mutant may have left something.
    for (const prototype of [Object.prototype, Array.prototype]) for (const key of Object.keys(prototype)) delete prototype[key];
  }
}

/** What is met while `work` runs; undefined when that is more than `most`. */
export async function watch(work, most = Number.POSITIVE_INFINITY) {
  met = new Uint8Array(mutants.length);
  hits = 0;
  limit = most;
  try {
    await work();
  } catch (error) {
    if (!isStuck()) throw error;
  }
  return isStuck() ? undefined : { met, hits };
}

/** Runs `work` with a limit made from what it met without a mutant. */
export async function guard(work, seen) {
  hits = 0;
  limit = seen.hits * PATIENCE + LEAST;
  return work();
}

export const isStuck = () => hits > limit;
