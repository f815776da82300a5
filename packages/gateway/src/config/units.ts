/** Milliseconds. */
const DURATIONS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
/** Bytes. */
const SIZES: Readonly<Record<string, number>> = {
  B: 1,
  kB: 1e3,
  MB: 1e6,
  GB: 1e9,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
};

/** `500ms`, `5s`, `2m`, `1h` in milliseconds; a mere number is seconds. Undefined: not a duration. */
export const readDuration = (text: string): number | undefined => scaled(text, DURATIONS, 1000);

/** `64KiB`, `32MiB`, `1MB` in bytes; a mere number is bytes. Undefined: not a size. */
export const readSize = (text: string): number | undefined => scaled(text, SIZES, 1);

export const DURATION_PATTERN = '^\\d+(\\.\\d+)?\\s*(ms|s|m|h)$';
export const SIZE_PATTERN = '^\\d+(\\.\\d+)?\\s*(B|kB|MB|GB|KiB|MiB|GiB)$';

function scaled(text: string, units: Readonly<Record<string, number>>, plain: number): number | undefined {
  const [, digits = '', unit = ''] = /^(\d+(?:\.\d+)?)\s*([A-Za-z]*)$/.exec(text.trim()) ?? [];
  if (digits === '') return undefined;
  const factor = unit === '' ? plain : Object.hasOwn(units, unit) ? units[unit] : undefined;
  return factor === undefined ? undefined : Math.round(Number(digits) * factor);
}
