/** The store of the gateway: a ledger of exchanges and attempts, its roll-ups, and queries over both. Other folders import this file. */
import { openSqliteReader, openSqliteStore } from './sqlite/store.ts';
import type { Store, StoreOptions, StoreReader } from './store.ts';

export { StoreError, type StoreErrorCode } from './errors.ts';
export { type Filter, matchesFilter, type ParsedSearch, parseFilter, parseSearch } from './filter.ts';
export type { Admission } from './ids.ts';
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
export { classify, type Outcome } from './rows.ts';
export { backUp, restore } from './sqlite/backup.ts';
export { defaultDataFolder, listFiles } from './sqlite/folder.ts';
export type { Ledger, Store, StoreOptions, StoreReader } from './store.ts';

/**
 * Opens the store of a gateway. Throws a `StoreError`: `not_writable` (a caller may open one in memory instead), `owned` by another
 * gateway, or `damaged`.
 */
export const openStore = (options: StoreOptions): Promise<Store> => openSqliteStore(options);

/** Opens the store of a folder for reading, also while a gateway owns it. */
export const openStoreReader = (folder: string): Promise<StoreReader> => openSqliteReader(folder);
