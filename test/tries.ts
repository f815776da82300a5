import { TestRunner } from 'vitest';

declare module 'vitest' {
  interface TaskMeta {
    /** How many attempts of an attack a test has made; 1 when it does not say. */
    tries?: number;
  }
}

/** Counts the attempts of the attack that the running test makes, for the table of `npm run attacks`. */
export function tried(count: number): void {
  const test = TestRunner.getCurrentTest();
  if (test) test.meta.tries = (test.meta.tries ?? 0) + count;
}
