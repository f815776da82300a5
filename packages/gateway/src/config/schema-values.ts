/** Values that several settings have: counts, durations, sizes, keys and names. */

import { z } from 'zod';
import type { LimitRow } from './options.ts';
import { Secret } from './secrets.ts';

/** Yes or no. */
export const flag = z.boolean();

/** A whole number of at least 1. */
export const count = z.int().min(1);

/** Milliseconds per unit. */
const DURATION_UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Bytes per unit. */
const SIZE_UNITS: Readonly<Record<string, number>> = {
  B: 1,
  kB: 1e3,
  MB: 1e6,
  GB: 1e9,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
};

/** Milliseconds of `500ms`, `5s`, `2m`, `1h`; a number without a unit is seconds. Undefined when invalid. */
export const readDuration = (text: string): number | undefined => parseQuantity(text, DURATION_UNITS, 1000);

/** Bytes of `64KiB`, `32MiB`, `1MB`; a number without a unit is bytes. Undefined when invalid. */
export const readSize = (text: string): number | undefined => parseQuantity(text, SIZE_UNITS, 1);

/** A duration, for JSON Schema. */
export const DURATION_PATTERN = '^\\d+(\\.\\d+)?\\s*(ms|s|m|h)$';

const SIZE_PATTERN = '^\\d+(\\.\\d+)?\\s*(B|kB|MB|GB|KiB|MiB|GiB)$';

function parseQuantity(text: string, units: Readonly<Record<string, number>>, plain: number): number | undefined {
  const [, digits = '', unit = ''] = /^(\d+(?:\.\d+)?)\s*([A-Za-z]*)$/.exec(text.trim()) ?? [];
  if (digits === '') return undefined;
  const factor = unit === '' ? plain : Object.hasOwn(units, unit) ? units[unit] : undefined;
  return factor === undefined ? undefined : Math.round(Number(digits) * factor);
}

/** One word that a header can carry. */
export const KEY = /^[\x21-\x7e]+$/;

/** A secret. */
export const key = z
  .string()
  .trim()
  .regex(KEY, { error: 'must be printable ASCII without spaces' })
  .transform((text) => new Secret(text));

/** Milliseconds, written as 500ms, 5s, 2m or 1h. */
export const duration = createQuantity('must be a duration: 500ms, 5s, 2m, 1h', DURATION_PATTERN, readDuration);

/** Bytes, written as 64KiB or 32MiB. */
export const size = createQuantity('must be a size: 64KiB, 32MiB', SIZE_PATTERN, readSize);

/** A number, or text with a unit. */
function createQuantity(error: string, pattern: string, read: (text: string) => number | undefined) {
  return z
    .union([z.number(), z.string().regex(new RegExp(pattern), { error })], { error })
    .transform((value) => read(String(value)) ?? 0)
    .refine((amount) => amount > 0, { error: 'must be greater than 0' });
}

/** A duration of at most `most`. */
const limitDuration = (most: string | undefined) =>
  most === undefined ? duration : duration.refine((ms) => ms <= (readDuration(most) ?? 0), { error: `must be at most ${most}` });

type Limit = z.ZodPrefault<z.ZodType<number, string | number>>;

/** The schema of a limit. */
export function createLimit(row: LimitRow): Limit {
  switch (row.kind) {
    case 'duration':
      return (row.preset === 'off' ? durationOrOff : limitDuration(row.most)).prefault(row.preset).describe(row.about);
    case 'bytes':
      return size.prefault(row.preset).describe(row.about);
    case 'count':
      return z
        .int()
        .min(row.least ?? 1)
        .prefault(row.preset)
        .describe(row.about);
    case 'share':
      return z.number().gt(0).max(1).prefault(row.preset).describe(row.about);
    default:
      return row satisfies never;
  }
}

/** The keys of a table, with their types. */
export function listKeys<K extends string>(record: Readonly<Record<K, unknown>>): K[] {
  return Object.keys(record) as K[]; // records passed here are literals
}

/** A name with at most one `*`. */
export const namePattern = z
  .string()
  .regex(/^[^*]*\*?[^*]*$/, { error: 'must have at most one *' })
  .min(1);

/** One text, or several of which one is needed. */
export const oneOrMore = (item: z.ZodType<string>) =>
  z
    .union([item, z.array(item).min(1)], { error: 'must be text, or a list of texts' })
    .transform((value): readonly string[] => [value].flat());

/** A duration; 0 for off. */
export const durationOrOff = z.union([z.literal('off').transform(() => 0), duration], {
  error: 'must be a duration such as 2s, or off',
});

/** The name of a header. */
export const HEADER_NAME = /^[!#$%&'*+.^_`|~\w-]+$/;
