import type { JsonObject } from '../../accumulate/overlay.ts';
import type { JsonSchema } from '../../canonical/protocol.ts';
import { MAX_JSON_DEPTH } from '../../json/limits.ts';
import { mapChildren } from './children.ts';

/**
 * The schema of a function's arguments as OpenAI wants it: an object with `properties`, and no list without `items`. The same object when
 * nothing is missing.
 */
export function completeSchema(schema: JsonSchema): JsonSchema {
  const whole = withItems(schema);
  if (Object.keys(whole).length === 0) return { type: 'object', properties: {} };
  return whole['type'] === 'object' && whole['properties'] === undefined ? { ...whole, properties: {} } : whole;
}

export function withItems(schema: JsonObject, depth = 0): JsonObject {
  if (depth > MAX_JSON_DEPTH) return schema;
  const whole = mapChildren(schema, (child) => withItems(child, depth + 1));
  const isBare = whole['type'] === 'array' && whole['items'] === undefined && whole['prefixItems'] === undefined;
  return isBare ? { ...whole, items: { type: 'string' } } : whole;
}
