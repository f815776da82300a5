/** What can go wrong with a store, for callers that act on it. */
export type StoreErrorCode =
  /** The data folder cannot be created or written; a caller may fall back to memory. */
  | 'not_writable'
  /** Another gateway owns the data folder. */
  | 'owned'
  /** The file is not a database of Sluice, or is damaged. */
  | 'damaged'
  /** The database is of an earlier version, and only a gateway that owns it brings it up to date. */
  | 'outdated'
  /** Too many rows wait to be written; refuse new requests. */
  | 'full'
  /** The store is closed. */
  | 'closed'
  /** The database rejected this row, and would do so again. */
  | 'rejected'
  /** The database is locked, the disk is full or fails; worth a retry. */
  | 'unavailable'
  /** The target of a backup exists. */
  | 'exists'
  /** Something else was changed meanwhile. */
  | 'conflict'
  /** The query is not valid or its result is too large. */
  | 'query';

/** An error of the store. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
  readonly code: StoreErrorCode;

  constructor(code: StoreErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}
