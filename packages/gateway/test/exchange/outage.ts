/** A ledger in front of a real store, which can be slow, failing or full for a while. Nothing that it accepts is lost. */
import { type Ledger, type Store, Write } from '../../src/store/index.ts';
import type { StoreState } from './schedule.ts';

export class OutageLedger implements Ledger {
  readonly #store: Store;
  #state: StoreState = 'well';
  #held: (() => void)[] = [];

  constructor(store: Store) {
    this.#store = store;
  }

  set state(state: StoreState) {
    this.#state = state;
    if (state === 'well') for (const send of this.#held.splice(0)) send();
  }

  createId = () => this.#store.createId();
  // For the detector of leaks, which reads the rows.
  flush = () => this.#store.flush();
  count: Store['count'] = (filter) => this.#store.count(filter);

  get accepting(): boolean {
    return this.#state !== 'full' && this.#store.accepting;
  }

  get isFailing(): boolean {
    return this.#state === 'failing' || this.#store.isFailing;
  }

  openExchange: Ledger['openExchange'] = (row) => this.#write(() => this.#store.openExchange(row));
  openAttempt: Ledger['openAttempt'] = (row) => this.#write(() => this.#store.openAttempt(row));
  reportProgress: Ledger['reportProgress'] = (row) => this.#write(() => this.#store.reportProgress(row));
  settleAttempt: Ledger['settleAttempt'] = (row) => this.#write(() => this.#store.settleAttempt(row));
  settleExchange: Ledger['settleExchange'] = (row) => this.#write(() => this.#store.settleExchange(row));

  #write(send: () => Write): Write {
    if (this.#state === 'well') return send();
    const write = new Write();
    this.#held.push(() => send().onEnd((error) => write.end(error)));
    return write;
  }
}
