// Stands in for `vitest` in the test files: tests are not run when they are met but kept, to be run as often as there are mutants.
// What a `describe` does beside its tests is done again each time, since it may run the code under test.
import { isDeepStrictEqual } from 'node:util';
import { expect as thorough } from 'vitest';

// The list is the worker's: this module is loaded anew with the others.
const add = (entry) => globalThis.__keep(entry);
const listOf = (row) => (Array.isArray(row) ? row : [row]);

function keeper(kind) {
  const keep = (name, run) => add({ kind, name, run });
  const none = Object.assign(() => {}, { each: () => () => {} });
  keep.each = (rows) => (name, run) => {
    for (const [i, row] of rows.entries()) add({ kind, name: `${name} #${i}`, run: () => run(...listOf(row)) });
  };
  keep.skip = none;
  keep.skipIf = (condition) => (condition ? none : keep);
  keep.runIf = (condition) => (condition ? keep : none);
  return keep;
}

/** What holds by the strictest comparison needs no other: most does, and vitest takes its time. */
const QUICK = { toBe: Object.is, toEqual: isDeepStrictEqual };

const expect = Object.assign(
  (value, message) =>
    new Proxy(QUICK, {
      get: (_, name) =>
        Object.hasOwn(QUICK, name)
          ? (other) => QUICK[name](value, other) || thorough(value, message)[name](other)
          : thorough(value, message)[name],
    }),
  { stringContaining: thorough.stringContaining, stringMatching: thorough.stringMatching },
);

const describe = keeper('describe');
const test = keeper('test');

export { describe, expect, test };
