/** What becomes of a field. `where`: its place in the canonical model, or the beginning of it; the probe checks that it is there. */
export type Decision =
  /** Has a place of its own; written back as it was, or under the newer name `as`. */
  | { verdict: 'mapped'; where: string; as?: string; test?: string }
  /** Kept word for word inside an opaque block or the settings of a server tool. */
  | { verdict: 'carried'; where: string; as?: string; test?: string }
  /** Only its own protocol knows it: kept in `extensions`. */
  | { verdict: 'extension'; test?: string }
  /** Read, and written back in other words. */
  | { verdict: 'changed'; where: string; why: string; test?: string }
  /** Not read: the encoder knows what to write. */
  | { verdict: 'derived'; why: string; test?: string }
  /** Left out on purpose. */
  | { verdict: 'dropped'; why: string; test?: string }
  /** Never on the wire of this endpoint. */
  | { verdict: 'outside'; why: string };

/** Decisions by pattern of the path (scripts/fields/pattern.js): the pattern that says most counts. */
export type Table = Readonly<Record<string, Decision>>;

/** By section of the protocol: request, response, stream, … */
export type Ledger = Readonly<Record<string, Table>>;

/** `file: name` of a test that shows what no probe can. */
type Shown = { test?: string };

export const mapped = (where: string, more: { as?: string } & Shown = {}): Decision => ({ verdict: 'mapped', where, ...more });
export const carried = (where: string, more: { as?: string } & Shown = {}): Decision => ({ verdict: 'carried', where, ...more });
export const extension: Decision = { verdict: 'extension' };
export const changed = (where: string, why: string, more: Shown = {}): Decision => ({ verdict: 'changed', where, why, ...more });
export const derived = (why: string, more: Shown = {}): Decision => ({ verdict: 'derived', why, ...more });
export const dropped = (why: string, more: Shown = {}): Decision => ({ verdict: 'dropped', why, ...more });
export const outside = (why: string): Decision => ({ verdict: 'outside', why });
