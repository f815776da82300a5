import { getOwn, isObject, type JsonObject, setOwn } from '../json/json.ts';
import { MAX_OVERLAY_DEPTH } from '../json/limits.ts';

/**
 * Lays `source` over `target`: the last non-null value of each field wins, objects are merged field by field. This is
 * the rule for usage and unknown fields: servers repeat snapshots of them, so nothing is added or concatenated.
 * `source` is never changed afterwards.
 */
export function overlay(target: JsonObject, source: JsonObject, depth = 0): JsonObject {
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null || value === undefined) {
      if (!Object.hasOwn(target, key)) setOwn(target, key, null);
      continue;
    }
    const current = getOwn(target, key);
    const isMerged = isObject(value) && depth < MAX_OVERLAY_DEPTH;
    setOwn(target, key, isMerged ? overlay(isObject(current) ? current : {}, value, depth + 1) : value);
  }
  return target;
}
