/** Opens the response store of a gateway by its configuration. */

import { randomBytes } from 'node:crypto';
import type { ResponsesOptions } from '../config/options.ts';
import { ConfigError } from '../config/problems.ts';
import type { Services } from '../exchange/types.ts';
import type { Clock } from '../http/clock.ts';
import { createSecretFile, readSecretFile, type SecretFile } from '../keys/secret-file.ts';
import type { Logger } from '../observe/log.ts';
import { listFiles } from '../store/index.ts';
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

/** Opens the state in memory. `sealKeys`: see `Capsules`; a random one ends with the process. */
export function createResponseState({ options, clock, sealKeys = [] }: StateOptions): ResponseState {
  const { store: place, ttlMs, retentionMs, maxBytes, maxBytesPerKey, websocket } = options;
  const [sealKey = randomBytes(32), ...formerKeys] = sealKeys;
  const capsules = new Capsules(sealKey, formerKeys);
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
export async function openResponseState(options: Omit<StateOptions, 'sealKeys'> & DiskOptions): Promise<ResponseState> {
  const { folder, log, clock, keySecret } = options;
  const { store: place, retentionMs } = options.options;
  const sealKeys = folder === null ? listPresent(keySecret) : readSealKeys(folder, keySecret);
  const state = createResponseState({ ...options, sealKeys });
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
  sealKeys?: readonly Buffer[];
}

/**
 * The keys of capsules: the first one seals, all of them open. Without the secret of the client keys, which all nodes of a
 * store have, a file has the key from the first start on: what clients hold must open after a restart. That file opens
 * what it sealed when the secret exists later.
 */
function readSealKeys(folder: string, keySecret: Buffer | undefined): readonly Buffer[] {
  const place: SecretFile = {
    file: listFiles(folder).capsuleKey,
    title: 'the key of compactions and reasoning state',
    whenDamaged: 'restore it from a copy; or delete it, and clients must restart the conversations that they compacted',
    whenNotCreated: 'make the data folder writable',
  };
  try {
    const own = readSecretFile(place);
    return listPresent(keySecret, own ?? (keySecret ? undefined : createSecretFile(place)));
  } catch (error) {
    throw new ConfigError([{ message: error instanceof Error ? error.message : String(error), path: ['data'] }]);
  }
}

const listPresent = (...keys: (Buffer | undefined)[]): Buffer[] => keys.filter((key) => key !== undefined);

interface DiskOptions {
  folder: string | null;
  /** The secret of the client keys for capsules; undefined when there is none. */
  keySecret: Buffer | undefined;
  log: Logger;
}
