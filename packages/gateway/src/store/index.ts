/** The store of the gateway: a ledger of exchanges and attempts, its roll-ups, and queries over both. */
import { openSqliteReader, openSqliteStore } from './sqlite/store.ts';
import type { Store, StoreOptions, StoreReader } from './store.ts';

export { StoreError } from './errors.ts';
export { matchesFilter, parseFilter } from './filter.ts';
export { restore } from './sqlite/backup.ts';
export { defaultDataFolder } from './sqlite/folder.ts';
export type { Store, StoreOptions, StoreReader, StoreStatus } from './store.ts';

/**
 * Opens the store of a gateway. Throws a `StoreError`: `not_writable` (a caller may open one in memory instead), `owned` by another
 * gateway, or `damaged`.
 */
export const openStore = (options: StoreOptions): Promise<Store> => openSqliteStore(options);

/** Opens the store of a folder for reading, also while a gateway owns it. */
export const openStoreReader = (folder: string): Promise<StoreReader> => openSqliteReader(folder);
