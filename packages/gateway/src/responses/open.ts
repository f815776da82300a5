/** Opens the response store of a gateway by its configuration. */

import { randomBytes } from 'node:crypto';
import type { ResponsesOptions } from '../config/options.ts';
import { ConfigError } from '../config/problems.ts';
import type { Services } from '../exchange/types.ts';
import type { Clock } from '../http/clock.ts';
import type { Logger } from '../observe/log.ts';
import { Capsules } from './capsule.ts';
import { JournalInUse, openJournal, removeJournal } from './journal.ts';
import { createSealing, StoreKeeper } from './keeper.ts';
import { ResponseStore } from './store.ts';

/** What keeps the state of responses in a gateway. */
export interface ResponseState extends Pick<Services, 'responses' | 'sealing'> {
  /** Undefined when no responses are kept. */
  readonly store: ResponseStore | undefined;
  /** Writes what is not on disk yet. */
  close(): Promise<void>;
}

/** Opens the state in memory. `sealKey`: the secret that capsules are sealed with; a random one ends with the process. */
export function createResponseState({ options, clock, sealKey = randomBytes(32) }: StateOptions): ResponseState {
  const { store: place, ttlMs, retentionMs, maxBytes, maxBytesPerKey, websocket } = options;
  const capsules = new Capsules(sealKey);
  const limits = { ttlMs: place === 'disk' ? retentionMs : ttlMs, maxBytes, maxBytesPerKey };
  const store = place === 'off' ? undefined : new ResponseStore(limits, clock);
  return {
    store,
    responses: store && new StoreKeeper(store, capsules, websocket),
    sealing: createSealing(capsules),
    close: () => Promise.resolve(),
  };
}

/** Opens the state as configured. `folder`: the data folder; null when there is none. */
export async function openResponseState(options: StateOptions & DiskOptions): Promise<ResponseState> {
  const { folder, log, clock } = options;
  const { store: place, retentionMs } = options.options;
  const state = createResponseState(options);
  if (!state.store || place !== 'disk' || folder === null) {
    if (place === 'disk') log.warn('there is no data folder, so responses are kept in memory until the gateway stops');
    // What was kept on disk before is not kept any longer than configured.
    if (folder !== null) await removeJournal(folder).catch(() => undefined);
    return state;
  }
  // One line for each outage: every response of it would log the same.
  let isLogged = false;
  const onFailure = (reason: string): void => {
    if (!isLogged) log.error({ reason }, 'responses cannot be written to disk; they are kept in memory until they can be');
    isLogged = true;
  };
  const onRecovered = (): void => {
    log.info('responses are written to disk again, with those of the time when they could not be');
    isLogged = false;
  };
  const disk = { folder, retentionMs, clock, wallClock: Date.now, onFailure, onRecovered };
  const journal = await openJournal(state.store, disk).catch((error: unknown) => {
    if (error instanceof JournalInUse) throw new ConfigError([{ message: error.message, path: ['responses', 'store'] }]);
    onFailure(error instanceof Error ? error.message : String(error));
  });
  if (!journal) return state;
  return { store: state.store, responses: state.responses, sealing: state.sealing, close: () => journal.close() };
}

/** Options of the state in memory. */
export interface StateOptions {
  options: ResponsesOptions;
  clock: Clock;
  sealKey?: Buffer | undefined;
}

interface DiskOptions {
  folder: string | null;
  log: Logger;
}
