/** Limits in a server that is some way off, and away for a while: a real state of limits, whose replies take time. */
import type { AccountLimit, Claim, Ending, Lease, LimitBackend, Taken } from '../../src/admission/backend.ts';
import type { MemoryBackend } from '../../src/admission/memory.ts';
import { type Clock, sleep } from '../../src/http/clock.ts';
import type { LimitsState } from './schedule.ts';

export class FarLimits implements LimitBackend {
  readonly #backend: MemoryBackend;
  readonly #clock: Clock;
  readonly #ms: number;
  state: LimitsState = 'well';

  /** `ms`: how long a call is on its way to the server, and its reply on the way back. */
  constructor(backend: MemoryBackend, clock: Clock, ms: number) {
    this.#backend = backend;
    this.#clock = clock;
    this.#ms = ms;
  }

  async take(claim: Claim): Promise<Taken> {
    await sleep(this.#clock, this.#ms);
    if (this.state === 'away') throw new Error('the limits store is away');
    const taken = await this.#backend.take(claim);
    await sleep(this.#clock, this.#ms);
    return taken;
  }

  async raise(member: string, micros: number): Promise<boolean> {
    await sleep(this.#clock, this.#ms);
    const isRaised = this.state === 'well' && this.#backend.raise(member, micros);
    await sleep(this.#clock, this.#ms);
    return isRaised;
  }

  /** What cannot be told to the server is told later: nobody waits for it. */
  async end(ending: Ending): Promise<void> {
    this.#backend.end(ending);
  }

  renew(leases: Iterable<Lease>): void {
    this.#backend.renew(leases);
  }

  load(accounts: readonly AccountLimit[]): Promise<void> {
    return this.#backend.load(accounts);
  }

  list = () => this.#backend.list();

  close(): void {
    this.#backend.close();
  }
}
