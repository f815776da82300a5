/** A ledger in memory whose writes become durable when the test says so. */
import type { RecordKeeping } from '../../src/exchange/record.ts';
import { REAL_CLOCK } from '../../src/http/clock.ts';
import type { Ledger } from '../../src/store/index.ts';

type Write = 'openExchange' | 'openAttempt' | 'reportProgress' | 'settleAttempt' | 'settleExchange';

interface Waiting {
  write: Write;
  resolve: () => void;
  reject: (error: Error) => void;
}

export class HeldLedger implements Ledger {
  /** Writes that are not durable before `release`. */
  held: readonly Write[] = [];
  accepting = true;
  /** Everything that was written, in its order. */
  written: { write: Write; row: object }[] = [];
  #waiting: Waiting[] = [];
  #count = 0;

  createId() {
    return { id: `exchange-${++this.#count}`, ts: 1_000_000 + this.#count };
  }

  openExchange = (row: object): Promise<void> => this.#write('openExchange', row);
  openAttempt = (row: object): Promise<void> => this.#write('openAttempt', row);
  reportProgress = (row: object): Promise<void> => this.#write('reportProgress', row);
  settleAttempt = (row: object): Promise<void> => this.#write('settleAttempt', row);
  settleExchange = (row: object): Promise<void> => this.#write('settleExchange', row);

  #write(write: Write, row: object): Promise<void> {
    this.written.push({ write, row });
    if (!this.held.includes(write)) return Promise.resolve();
    const durable = new Promise<void>((resolve, reject) => this.#waiting.push({ write, resolve, reject }));
    durable.catch(() => undefined);
    return durable;
  }

  /** How many of these writes there were. */
  count(write: Write): number {
    return this.written.filter((entry) => entry.write === write).length;
  }

  isWaiting(write: Write): boolean {
    return this.#waiting.some((entry) => entry.write === write);
  }

  /** Everything that waits is durable; later writes are held again. */
  release(): void {
    for (const { resolve } of this.#waiting.splice(0)) resolve();
  }

  fail(message: string): void {
    for (const { reject } of this.#waiting.splice(0)) reject(new Error(message));
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
  isStoreFailing: boolean;
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
    isStoreFailing: false,
    isFailing: () => keeping.isStoreFailing,
    onLate: (reason) => keeping.late.push(reason),
  };
  return keeping;
}
