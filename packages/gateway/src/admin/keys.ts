/** Client keys and the audit log in the admin API: what requests have, and what responses show. */

import { z } from 'zod';
import { isExpired } from '../keys/key-book.ts';
import type { AuditEntry, KeyRecord } from '../keys/records.ts';
import { type KeySettings, type WrittenTerms, writeTerms } from '../keys/settings.ts';

const MAX_TEXT = 200;

const setting = z.string().max(MAX_TEXT);

const listed = z.union([setting, z.array(setting).max(64)]).nullable();

const amount = z.union([z.number(), setting]).nullable();

/** The settings of a key; null removes one. */
const SETTINGS = {
  models: listed.describe('Models that the key allows, with at most one *; empty or null for all.').optional(),
  budget: listed.describe('`20usd/month`; periods are day, week, month and total.').optional(),
  rpm: amount.describe('Requests per minute.').optional(),
  tpm: amount.describe('Tokens per minute: `100k`.').optional(),
  concurrency: amount.describe('Requests at the same time.').optional(),
  expires: setting.nullable().describe('`90d` from now, or a time such as `2027-01-31T08:00Z`.').optional(),
  ip: listed.describe('Addresses and ranges that the key may be used from: `10.0.0.0/8`.').optional(),
  tags: listed.describe('Added to the tags of every request: `team=a`.').optional(),
} satisfies Record<keyof WrittenTerms, z.ZodType>;

/** The body that creates a key. */
export const NEW_KEY = z.strictObject({ name: setting, ...SETTINGS });

/** The body that changes a key; absent settings stay. */
export const CHANGED_KEY = z.strictObject({ name: setting.optional(), ...SETTINGS });

/** The body that rotates a key. */
export const ROTATION = z.strictObject({
  overlap: setting.describe('How long the previous secret stays valid: `24h` by default, `0` for not at all.').optional(),
});

const time = z.iso.datetime().nullable();

const texts = z.array(z.string());

/** What a key can be. */
export const KEY_STATES = ['active', 'expired', 'revoked'] as const;

/** A key, without its secret. */
export const KEY = z.strictObject({
  id: z.string().describe('The public id, as in `key_id` of exchanges.'),
  name: z.string(),
  state: z.enum(KEY_STATES),
  models: texts,
  budget: texts,
  rpm: z.int().nullable(),
  tpm: z.int().nullable(),
  concurrency: z.int().nullable(),
  expires: time,
  ip: texts,
  tags: texts,
  created_at: z.iso.datetime(),
  rotated_at: time,
  previous_valid_until: time.describe('Until when the secret before the last rotation is valid.'),
  revoked_at: time,
  last_used_at: time.describe('Exact to a minute or so.'),
});

/** A key with its secret, which is shown once. */
export const ISSUED_KEY = z.strictObject({
  key: KEY,
  secret: z.string().describe('Shown once; the gateway does not keep it.'),
  is_persistent: z.boolean().describe('False when the gateway keeps its data in memory: the key is lost when it stops.'),
});

/** A line of the audit log. */
export const AUDIT_ENTRY = z.strictObject({
  id: z.string(),
  at: z.iso.datetime(),
  actor: z.string().describe('`key`, `session` or `local`: by the admin API; `cli`: on the data folder; `config`: the file.'),
  action: z.string(),
  object: z.string().describe('The id of the key that was changed; empty for the gateway.'),
  details: z.record(z.string(), z.unknown()),
});

/** Whether a key can be used. */
function readKeyState({ revoked_ts, policy }: KeyRecord, now: number): (typeof KEY_STATES)[number] {
  if (revoked_ts !== null) return 'revoked';
  return isExpired(policy.expiresAt, now) ? 'expired' : 'active';
}

const formatTime = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());

/** A key. Lists every field by name: the record has digests. */
export const viewKey = (record: KeyRecord, now: number): z.infer<typeof KEY> => {
  const { models, budget, rpm, tpm, concurrency, expires, ip, tags } = writeTerms(record);
  return {
    id: record.id,
    name: record.name,
    state: readKeyState(record, now),
    models: [...models],
    budget: [...budget],
    rpm,
    tpm,
    concurrency,
    expires,
    ip: [...ip],
    tags: [...tags],
    created_at: new Date(record.created_ts).toISOString(),
    rotated_at: formatTime(record.rotated_ts),
    previous_valid_until: formatTime(record.previous_until),
    revoked_at: formatTime(record.revoked_ts),
    last_used_at: formatTime(record.last_used_ts),
  };
};

/** A line of the audit log. */
export const viewAuditEntry = ({ id, ts, actor, action, object, details }: AuditEntry): z.infer<typeof AUDIT_ENTRY> => ({
  id,
  at: new Date(ts).toISOString(),
  actor,
  action,
  object,
  details: { ...details },
});

/** The settings of a body without those that are absent. */
export function pickSettings<Body extends Record<string, unknown>>(body: Body): KeySettings & { name?: string } {
  // Every field of the bodies is a setting or the name, by their schemas.
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined)) as KeySettings;
}

/** A page of keys, oldest first, after the key with the id `cursor`. */
export function listPage(
  records: Iterable<KeyRecord>,
  { state, cursor, limit = 100 }: { state?: string | undefined; cursor?: string | undefined; limit?: number | undefined },
  now: number,
): { keys: z.infer<typeof KEY>[]; next: string | null } {
  const keys: z.infer<typeof KEY>[] = [];
  let isReached = cursor === undefined;
  for (const record of records) {
    if (!isReached) isReached = record.id === cursor;
    else if (state === undefined || readKeyState(record, now) === state) {
      if (keys.length === limit) return { keys, next: keys.at(-1)?.id ?? null };
      keys.push(viewKey(record, now));
    }
  }
  return { keys, next: null };
}
