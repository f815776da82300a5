/** Client keys and lines of the audit log as rows of their tables. */
import type { AuditEntry, AuditPage, AuditQuery, KeyRecord } from '../keys/records.ts';
import { StoreError } from './errors.ts';
import { cleanText, type SqlValue } from './rows.ts';
import type { StoredAuditEntry, StoredKey } from './schema.ts';

/** The columns of a key, in the order of `listKey`. */
export const KEY_COLUMNS = [
  ...['id', 'name', 'digest', 'pepper', 'previous_digest', 'previous_until', 'policy', 'tags'],
  ...['created_ts', 'rotated_ts', 'revoked_ts', 'last_used_ts'],
] as const satisfies readonly (keyof KeyRecord)[];

/** What a change of a key writes. `last_used_ts` only rises, and is not part of a change. */
export const CHANGED_KEY_COLUMNS: readonly string[] = KEY_COLUMNS.filter(
  (column) => column !== 'id' && column !== 'created_ts' && column !== 'last_used_ts',
);

/** The columns of a line of the audit log, in the order of `listEntry`. */
export const AUDIT_COLUMNS: readonly string[] = ['id', 'ts', 'actor', 'action', 'object', 'details'];

/** The values of a key. */
export const listKey = (record: KeyRecord): SqlValue[] => {
  const values = { ...record, policy: JSON.stringify(record.policy), tags: JSON.stringify(record.tags) };
  return KEY_COLUMNS.map((column) => values[column]);
};

/** The values of a line of the audit log. */
export const listEntry = ({ id, ts, actor, action, object, details }: AuditEntry): SqlValue[] => {
  const text = JSON.stringify(details);
  const isLong = text.length > MAX_DETAILS_LENGTH;
  return [
    id,
    Math.floor(ts),
    actor,
    cleanText(action),
    cleanText(object),
    isLong ? '{"is_shortened":true}' : cleanText(text, text.length),
  ];
};

const MAX_DETAILS_LENGTH = 16_384;

/** A key as it was stored. A policy that cannot be read must not become one without limits. */
export function toKey(row: StoredKey): KeyRecord {
  try {
    const policy = JSON.parse(row.policy);
    const tags = JSON.parse(row.tags);
    const lists = [policy.models, policy.budgets, policy.addresses, tags];
    if (lists.every(Array.isArray)) return { ...row, policy, tags };
  } catch {
    // Said below.
  }
  throw new StoreError('damaged', `the policy of the key "${row.name}" in the database is damaged; restore a backup`);
}

/** Oldest first. */
export const compareKeys = (a: KeyRecord, b: KeyRecord): number => a.created_ts - b.created_ts || (a.id < b.id ? -1 : 1);

/** Rows of a page of the audit log. */
const MAX_AUDIT_ROWS = 1000;

/** Above every id. */
const LAST_ID = 'g';

/** Where a page of the audit log begins, and its size. */
export const readAuditQuery = ({
  cursor,
  limit = 100,
  text = '',
}: AuditQuery): { below: string; size: number; text: string } => ({
  below: cursor ?? LAST_ID,
  size: Math.max(1, Math.min(MAX_AUDIT_ROWS, Math.floor(limit) || 1)),
  text,
});

/** A page of the audit log from its rows, of which there is one more if another page follows. */
export function toAuditPage(rows: readonly StoredAuditEntry[], size: number): AuditPage {
  const entries = rows.slice(0, size).map((row) => ({ ...row, details: JSON.parse(row.details) }) as AuditEntry);
  return { entries, next: rows.length > size ? (entries.at(-1)?.id ?? null) : null };
}
