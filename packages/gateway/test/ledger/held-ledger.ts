/** A ledger in memory whose writes become durable when the test says so. */
import type { RecordKeeping } from '../../src/exchange/record.ts';
import { REAL_CLOCK } from '../../src/http/clock.ts';
import { StoreError } from '../../src/store/errors.ts';
import { type Ledger, Write } from '../../src/store/index.ts';

type WriteKind = 'openExchange' | 'openAttempt' | 'reportProgress' | 'settleAttempt' | 'settleExchange';

interface Waiting {
  kind: WriteKind;
  write: Write;
}

export class HeldLedger implements Ledger {
  /** Writes that are not durable before `release`. */
  held: readonly WriteKind[] = [];
  accepting = true;
  isFailing = false;
  /** Everything that was written, in its order. */
  written: { write: WriteKind; row: object }[] = [];
  #waiting: Waiting[] = [];
  #count = 0;

  createId() {
    return { id: `exchange-${++this.#count}`, ts: 1_000_000 + this.#count };
  }

  openExchange = (row: object): Write => this.#write('openExchange', row);
  openAttempt = (row: object): Write => this.#write('openAttempt', row);
  reportProgress = (row: object): Write => this.#write('reportProgress', row);
  settleAttempt = (row: object): Write => this.#write('settleAttempt', row);
  settleExchange = (row: object): Write => this.#write('settleExchange', row);

  #write(kind: WriteKind, row: object): Write {
    const write = new Write();
    this.written.push({ write: kind, row });
    if (this.held.includes(kind)) this.#waiting.push({ kind, write });
    else write.end();
    return write;
  }

  /** How many of these writes there were. */
  count(write: WriteKind): number {
    return this.written.filter((entry) => entry.write === write).length;
  }

  isWaiting(kind: WriteKind): boolean {
    return this.#waiting.some((entry) => entry.kind === kind);
  }

  /** Everything that waits is durable; later writes are held again. */
  release(): void {
    for (const { write } of this.#waiting.splice(0)) write.end();
  }

  fail(message: string): void {
    for (const { write } of this.#waiting.splice(0)) write.end(new StoreError('unavailable', message));
  }

  /** What the ledger holds of ended exchanges. */
  get ended(): Record<string, unknown>[] {
    return this.written.filter(({ write }) => write === 'settleExchange').map(({ row }) => ({ ...row }));
  }

  reset(): void {
    this.release();
    this.held = [];
    this.accepting = true;
    this.written = [];
  }
}

export interface HeldKeeping extends RecordKeeping {
  readonly late: string[];
}

export function createHeldKeeping(
  ledger: Ledger,
  { durability = 'strict', clock = REAL_CLOCK }: Partial<Pick<RecordKeeping, 'durability' | 'clock'>> = {},
): HeldKeeping {
  const keeping: HeldKeeping = {
    ledger,
    durability,
    clock,
    late: [],
    onLate: (reason) => keeping.late.push(reason),
  };
  return keeping;
}
