/** What the main thread and the workers of the store send each other. */
import type { AuditEntry, AuditQuery, KeyRecord } from '../../keys/records.ts';
import type { StoreErrorCode } from '../errors.ts';
import type { Filter } from '../filter.ts';
import type { Boot } from '../operations.ts';
import type { ListQuery, SpendingQuery, UsageQuery } from '../queries.ts';

/** What a worker needs to start. */
export interface WorkerSettings extends Boot {
  /** `memory` has one worker for everything, because another connection would see another database. */
  readonly role: 'writer' | 'reader' | 'memory';
  /** Empty in memory. */
  readonly folder: string;
  readonly busyMs: number;
  readonly ballastBytes: number;
  readonly retention: Retention;
  readonly heartbeatMs: number;
  readonly maintenanceMs: number;
  /** Shared with the main thread; see `ExitGuard`. */
  readonly flags: Int32Array;
}

/** How long exchanges are kept. Roll-ups are kept for ever. */
interface Retention {
  /** Days; null keeps exchanges for ever. */
  readonly days: number | null;
  /** The most exchanges to keep; null for any number. */
  readonly rows: number | null;
}

/** A request to a worker. */
export type WorkerRequest =
  /** The operations as JSON: as objects, they take the worker three times as long to receive. */
  | { readonly kind: 'write'; readonly operations: string }
  | { readonly kind: 'list'; readonly query: ListQuery }
  | { readonly kind: 'count'; readonly filter: Filter }
  | { readonly kind: 'get'; readonly exchange: string }
  | { readonly kind: 'sessions'; readonly limit: number | undefined }
  | { readonly kind: 'session'; readonly session: string; readonly query: Omit<ListQuery, 'filter'> }
  | { readonly kind: 'usage'; readonly query: UsageQuery }
  | { readonly kind: 'keys' }
  | { readonly kind: 'audit'; readonly query: AuditQuery }
  | { readonly kind: 'saveKey'; readonly record: KeyRecord; readonly entry: AuditEntry }
  | { readonly kind: 'touchKeys'; readonly uses: readonly (readonly [id: string, ts: number])[] }
  | { readonly kind: 'addAudit'; readonly entry: AuditEntry }
  | { readonly kind: 'spending'; readonly query: SpendingQuery }
  | { readonly kind: 'prune' }
  | { readonly kind: 'announce'; readonly url: string }
  | { readonly kind: 'stop' };

/** A request with the number that its reply repeats. */
export interface NumberedRequest {
  readonly number: number;
  readonly request: WorkerRequest;
}

/** An error of a worker. */
export interface WorkerFailure {
  readonly code: StoreErrorCode;
  readonly message: string;
}

/** A reply; number 0 is the result of starting. */
export interface WorkerReply {
  readonly number: number;
  readonly value?: unknown;
  readonly failure?: WorkerFailure;
}
