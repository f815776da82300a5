import { type JsonObject, setOwn } from '../../accumulate/overlay.ts';

/** Each fragment brings the logprobs of its own tokens: lists grow, everything else is what was said last. */
export function addLogprobs(kept: JsonObject = {}, result: JsonObject): JsonObject {
  for (const key of Object.keys(result)) {
    const value = result[key];
    const list = Object.hasOwn(kept, key) ? kept[key] : undefined;
    if (!Array.isArray(value)) setOwn(kept, key, value);
    else if (Array.isArray(list)) for (const token of value) list.push(token);
    else setOwn(kept, key, [...value]);
  }
  return kept;
}
