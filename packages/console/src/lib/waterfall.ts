/** The phases of an exchange or attempt, from its durations. */

/** A phase, in milliseconds since the start. */
export interface Phase {
  readonly id: 'queue' | 'connect' | 'wait' | 'think' | 'stream';
  readonly title: string;
  readonly from: number;
  readonly to: number;
}

/** Durations since the start; null where they are unknown. */
export interface Durations {
  readonly queue_ms?: number | null;
  readonly connect_ms: number | null;
  readonly first_byte_ms: number | null;
  readonly first_token_ms: number | null;
  readonly total_ms: number | null;
}

/** The phases in their order. A phase whose end is unknown, or before its start, is left out. */
export function listPhases({ queue_ms, connect_ms, first_byte_ms, first_token_ms, total_ms }: Durations): Phase[] {
  const ends = [
    ['queue', 'waiting in the gateway', queue_ms],
    ['connect', 'connecting to the upstream', connect_ms],
    ['wait', 'waiting for the first byte', first_byte_ms],
    ['think', 'waiting for the first token', first_token_ms],
    ['stream', 'receiving the response', total_ms],
  ] as const;
  const phases: Phase[] = [];
  let from = 0;
  for (const [id, title, end] of ends) {
    if (end === null || end === undefined || end < from || (end === 0 && id !== 'stream')) continue;
    phases.push({ id, title, from, to: end });
    from = end;
  }
  return phases;
}

/** Reads of a body: milliseconds since the request, and bytes. */
export type Reads = readonly (readonly [number, number])[];

/** The longest time between two reads, and when it began. */
export function findLongestGap(reads: Reads): { ms: number; at: number } | undefined {
  let longest: { ms: number; at: number } | undefined;
  for (let index = 1; index < reads.length; index++) {
    const at = reads[index - 1]?.[0] ?? 0;
    const ms = (reads[index]?.[0] ?? 0) - at;
    if (ms > (longest?.ms ?? 0)) longest = { ms, at };
  }
  return longest;
}
