import { safeJson } from './escape.ts';

/**
 * A record as one line of JSON, field by field: the whole of a long message may be more than one string can hold, although each field is not.
 * Undefined when even a field is too long.
 */
export function jsonLine(record: object): string[] | undefined {
  try {
    const fields = Object.entries(record).filter(([, value]) => value !== undefined);
    return [
      ...fields.map(([key, value], i) => `${i === 0 ? '{' : ','}${JSON.stringify(key)}:${safeJson(JSON.stringify(value))}`),
      '}\n',
    ];
  } catch (error) {
    if (error instanceof RangeError) return undefined; // "Invalid string length"
    throw error;
  }
}
