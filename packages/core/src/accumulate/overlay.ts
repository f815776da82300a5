import { getOwn, isObject, type JsonObject, setOwn } from '../json/json.ts';
import { MAX_OVERLAY_DEPTH } from '../json/limits.ts';

/**
 * Lays `source` over `target`: the last non-null value of each field wins, objects field by field. This is the rule for usage and for fields
 * nobody knows: snapshots are repeated on the wire, so nothing is added up and no string grows. Nothing of `source` is mutated later.
 */
export function overlay(target: JsonObject, source: JsonObject, depth = 0): JsonObject {
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null || value === undefined) {
      if (!Object.hasOwn(target, key)) setOwn(target, key, null);
      continue;
    }
    const current = getOwn(target, key);
    const isLaidOver = isObject(value) && depth < MAX_OVERLAY_DEPTH;
    setOwn(target, key, isLaidOver ? overlay(isObject(current) ? current : {}, value, depth + 1) : value);
  }
  return target;
}
