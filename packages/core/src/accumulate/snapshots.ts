/** So many deltas in a row must each begin with all the text before them, and be longer. */
const ENOUGH = 3;
/** And so long must the last of them be; shorter ones are decided when other content comes, or the end. */
const LONG_ENOUGH = 12;

/** What is saved of `Snapshots`. */
export interface SnapshotsState {
  /** The last delta, as long as every delta began with the one before it; null once one did not: then deltas are pieces. */
  last: string | null;
  count: number;
  /** How much of `last` has been passed on. */
  sent: number;
  /** Deltas that wait, one behind the other. */
  held: string;
}

/**
 * Turns text deltas that repeat all the text so far into pieces. Some servers send such snapshots; nearly all send pieces, which pass unchanged:
 * the second delta of a text almost never begins with the first one. One that does waits for the next, and for more as long as they are short.
 * A text that repeats itself ("ha", "haha") is no snapshot.
 */
export class Snapshots implements SnapshotsState {
  last: string | null = '';
  count = 0;
  sent = 0;
  held = '';

  /** Takes a delta and returns what can be passed on now. `isPiece`: it is known to be a piece (log probabilities come with it). */
  push(delta: string, isPiece = false): string {
    const { last } = this;
    if (last === null || delta === '') return delta;
    const isCertain = this.count >= ENOUGH && last.length >= LONG_ENOUGH;
    if (isCertain && delta === last) return '';
    this.held += delta;
    this.last = !isPiece && continues(last, delta, this.count) ? delta : null;
    this.count++;
    const waits = this.last !== null && (delta.length < LONG_ENOUGH || this.count < ENOUGH) && this.count > 1;
    return waits ? '' : this.flush();
  }

  /** What waits, decided: other content comes, or the end. */
  flush(): string {
    const { rest } = this;
    if (this.count > 1 && this.count < ENOUGH) this.last = null;
    this.sent = this.last?.length ?? 0;
    this.held = '';
    return rest;
  }

  /** What `flush` would return. */
  get rest(): string {
    return this.last === null || this.count < ENOUGH ? this.held : this.last.slice(this.sent);
  }
}

function continues(last: string, delta: string, count: number): boolean {
  if (delta.length <= last.length || !delta.startsWith(last)) return false;
  const rest = delta.slice(last.length);
  return count !== 1 || !(rest.startsWith(last) || last.startsWith(rest));
}
