import type { Failure } from '../../packages/lab/src/prove/failure.ts';

interface Open {
  /** The failures meant: what was done to the input. */
  id: RegExp;
  /** Only those whose message or body shows this. */
  when?: RegExp;
  reason: string;
}

/** Failures that are known and not yet mended, each with its reason. They are counted apart, and the list is meant to be empty. */
export const OPEN: readonly Open[] = [];

export const openReason = ({ id, message, raw = '' }: Failure): string | undefined =>
  OPEN.find((open) => open.id.test(id) && (!open.when || open.when.test(message) || open.when.test(raw)))?.reason;
