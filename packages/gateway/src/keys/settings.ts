/** What can be set for a key, as text: one grammar for the configuration, the command line and the admin API. */

import { findRangeFault } from '../http/client-address.ts';
import { formatBudget, PERIODS, parseBudget } from './amounts.ts';
import { type Budget, type KeyPolicy, UNLIMITED } from './caller.ts';

/** The settings of a key as they are written. Absent ones are not limited. */
export interface KeySettings {
  readonly models?: Listed;
  readonly budget?: Listed;
  readonly rpm?: Amount;
  readonly tpm?: Amount;
  readonly concurrency?: Amount;
  readonly expires?: string | null;
  readonly ip?: Listed;
  readonly tags?: Listed;
}

/** One text, a list of them, or null for none. */
type Listed = string | readonly string[] | null;

type Amount = string | number | null;

/** The names of all settings. */
export const KEY_SETTINGS = ['models', 'budget', 'rpm', 'tpm', 'concurrency', 'expires', 'ip', 'tags'] as const;

/** What a key has beside its secret. */
export interface KeyTerms {
  readonly policy: KeyPolicy;
  readonly tags: readonly string[];
}

/** A setting that is not valid. */
export class KeySettingError extends Error {
  override readonly name = 'KeySettingError';
  /** The setting, such as `budget`. */
  readonly setting: string;

  constructor(setting: string, message: string) {
    super(message);
    this.setting = setting;
  }
}

/** No limits, no tags. */
export const NO_TERMS: KeyTerms = { policy: UNLIMITED, tags: [] };

/** Applies settings; those that are absent stay as in `before`. Throws a `KeySettingError`. `now`: milliseconds since 1970. */
export function readTerms(settings: KeySettings, now: number, before: KeyTerms = NO_TERMS): KeyTerms {
  const { policy } = before;
  const { models, budget, rpm, tpm, concurrency, expires, ip, tags } = settings;
  return {
    policy: {
      models: models === undefined ? policy.models : readList('models', models, readPattern),
      budgets: budget === undefined ? policy.budgets : readBudgets(budget),
      requestsPerMinute: rpm === undefined ? policy.requestsPerMinute : readOptionalCount('rpm', rpm),
      tokensPerMinute: tpm === undefined ? policy.tokensPerMinute : readOptionalCount('tpm', tpm),
      concurrency: concurrency === undefined ? policy.concurrency : readOptionalCount('concurrency', concurrency),
      expiresAt: expires === undefined ? policy.expiresAt : expires === null ? null : readExpiry(expires, now),
      addresses: ip === undefined ? policy.addresses : readList('ip', ip, readRange),
    },
    tags: tags === undefined ? before.tags : readList('tags', tags, readTag),
  };
}

const MAX_LISTED = 64;

function readList(setting: string, value: Listed, read: (text: string) => string): string[] {
  const texts = value === null ? [] : typeof value === 'string' ? [value] : value;
  const max = setting === 'tags' ? MAX_TAGS : MAX_LISTED;
  if (texts.length > max) throw new KeySettingError(setting, `must have at most ${max} entries`);
  return [...new Set(texts.map((text) => read(text.trim())))];
}

/** The ledger keeps twice as many of an exchange: those of its key and those of its header. */
const MAX_TAGS = 16;

const NAME = /^[A-Za-z0-9][\w.@-]{0,63}$/;

/** Checks the name of a key. */
export function readKeyName(text: string): string {
  if (NAME.test(text)) return text;
  throw new KeySettingError(
    'name',
    'must have 1 to 64 letters, digits, ".", "_", "-" or "@", and begin with a letter or digit, such as alice or ci-nightly',
  );
}

function readPattern(text: string): string {
  if (/^[^*\s\p{Cc}]*\*?[^*\s\p{Cc}]*$/u.test(text) && text !== '' && text.length <= 200) return text;
  throw new KeySettingError('models', 'must be names of models with at most one *, such as gpt-* or anthropic/claude-sonnet-4-5');
}

function readTag(text: string): string {
  if (/^[^\s"\\,[\]\p{Cc}]{1,64}$/u.test(text)) return text;
  throw new KeySettingError('tags', 'must be texts of at most 64 characters without spaces, quotes and commas, such as team=a');
}

/** An address or a range in CIDR notation. */
function readRange(text: string): string {
  const fault = findRangeFault(text);
  if (fault === undefined) return text;
  throw new KeySettingError('ip', fault);
}

// ---- amounts

/** `20usd/month` */
function readBudget(text: string): Budget {
  const budget = parseBudget(text);
  if (budget && budget.micros > 0) return budget;
  throw new KeySettingError('budget', `must be an amount and a period such as 20usd/month; periods are ${PERIODS.join(', ')}`);
}

function readBudgets(value: Listed): Budget[] {
  const budgets = readList('budget', value, (text) => text).map(readBudget);
  const periods = new Set(budgets.map(({ period }) => period));
  if (periods.size < budgets.length) throw new KeySettingError('budget', 'must have at most one amount for a period');
  return budgets;
}

const FACTORS: Readonly<Record<string, number>> = { '': 1, k: 1e3, m: 1e6 };

/** `60`, `100k`, `1.5m` */
function readCount(setting: string, value: string | number): number {
  const [, digits = '', unit = ''] = /^(\d{1,13}(?:\.\d{1,6})?)([km]?)$/i.exec(String(value).trim()) ?? [];
  const count = digits === '' ? Number.NaN : Math.round(Number(digits) * 1e6 * (FACTORS[unit.toLowerCase()] ?? 1)) / 1e6;
  if (Number.isInteger(count) && count >= 1 && count <= MAX_COUNT) return count;
  throw new KeySettingError(setting, 'must be a whole number from 1 to 1000000000000, such as 60, 100k or 2m');
}

const MAX_COUNT = 1_000_000_000_000;

const readOptionalCount = (setting: string, value: Amount): number | null => (value === null ? null : readCount(setting, value));

const UNIT_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** Milliseconds of `30m`, `24h`, `90d`; `0` is none. */
export function readSpan(setting: string, text: string): number {
  const [, digits = '', unit = ''] = /^(\d{1,6})([smhdw])$/.exec(text.trim()) ?? [];
  if (digits !== '') return Number(digits) * (UNIT_MS[unit] ?? 0);
  if (text.trim() === '0') return 0;
  throw new KeySettingError(setting, 'must be a duration such as 30m, 24h or 90d');
}

const DATE = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?(?:Z|[+-]\d{2}:\d{2}))?$/;

/** Whether the text is a moment by itself, not one that is counted from now. */
export const isDate = (text: string): boolean => DATE.test(text.trim()) && !Number.isNaN(Date.parse(text.trim()));

/** A moment: `90d` from now, `2027-01-31` (its beginning in UTC) or `2027-01-31T08:00Z`. */
function readExpiry(text: string, now: number): number {
  const isSpan = /^\d+[a-z]$/.test(text.trim());
  if (!isSpan && !isDate(text))
    throw new KeySettingError('expires', 'must be a duration such as 90d, or a time such as 2027-01-31 or 2027-01-31T08:00Z');
  const moment = isSpan ? now + readSpan('expires', text) : Date.parse(text.trim());
  if (isSpan && moment <= now) throw new KeySettingError('expires', 'must be in the future');
  return moment;
}

/** Terms as they are written, for people and programs. */
export interface WrittenTerms {
  readonly models: readonly string[];
  readonly budget: readonly string[];
  readonly rpm: number | null;
  readonly tpm: number | null;
  readonly concurrency: number | null;
  /** RFC 3339. */
  readonly expires: string | null;
  readonly ip: readonly string[];
  readonly tags: readonly string[];
}

/** Writes terms in the form in which they can be set again. */
export const writeTerms = ({ policy, tags }: KeyTerms): WrittenTerms => ({
  models: policy.models,
  budget: policy.budgets.map(formatBudget),
  rpm: policy.requestsPerMinute,
  tpm: policy.tokensPerMinute,
  concurrency: policy.concurrency,
  expires: policy.expiresAt === null ? null : new Date(policy.expiresAt).toISOString(),
  ip: policy.addresses,
  tags,
});
