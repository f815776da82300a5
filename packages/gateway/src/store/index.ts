/** The store of the gateway: a ledger of exchanges and attempts, its roll-ups, and queries over both. Other folders import this file. */
import { isPostgres } from './postgres/address.ts';
import { openSqliteReader, openSqliteStore } from './sqlite/store.ts';
import type { Store, StoreOptions, StoreReader } from './store.ts';

export type { ConfigVersion, ConfigVersions, StoredConfig } from './configs.ts';
export { StoreError, type StoreErrorCode } from './errors.ts';
export { type Filter, matchesFilter, type ParsedSearch, parseFilter, parseSearch } from './filter.ts';
export type { Admission } from './ids.ts';
export { findDefaultFolder, MEMORY } from './location.ts';
export type {
  ExchangeDetail,
  ExchangePage,
  SessionSummary,
  UsageQuery,
  UsageRow,
} from './queries.ts';
export { GRAIN_MS, type Grain, SUM_COLUMNS, type Sums } from './rollups.ts';
export type {
  AttemptRow,
  ExchangeOpening,
  ExchangeRow,
  ExchangeSettlement,
  NoteRow,
  Provenance,
  Settlement,
  TokenCounts,
} from './rows.ts';
export { classify, cleanElement, MAX_TAGS, type Outcome } from './rows.ts';
export { backUp, restore } from './sqlite/backup.ts';
export { FileLock } from './sqlite/file-lock.ts';
export { findHolder, listFiles } from './sqlite/folder.ts';
export type { Ledger, Store, StoreOptions, StoreReader } from './store.ts';
export { Write } from './write-queue.ts';

/**
 * Opens the store of a gateway. Throws a `StoreError`: `not_writable` (a caller may open one in memory instead), `owned` by another
 * gateway, or `damaged`.
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const { url } = options;
  if (url === undefined) return openSqliteStore(options);
  // Loaded only where it is needed, with its driver.
  const { openPostgresStore } = await import('./postgres/store.ts');
  return openPostgresStore({ ...options, url });
}

/** Opens a folder or a PostgreSQL database for reading, also while gateways use it. */
export async function openStoreReader(place: string): Promise<StoreReader> {
  if (!isPostgres(place)) return openSqliteReader(place);
  const { openPostgresReader } = await import('./postgres/store.ts');
  return openPostgresReader(place);
}

/** Whether the gateway with this id runs on a PostgreSQL database. */
export async function hasLiveNode(url: string, boot: string): Promise<boolean> {
  const store = await import('./postgres/store.ts');
  return store.hasLiveNode(url, boot);
}
