import { isObject, type JsonObject, setOwn } from '../accumulate/overlay.ts';
import type { JsonSchema } from '../canonical/protocol.ts';

const ONE = ['items', 'additionalProperties', 'not', 'if', 'then', 'else', 'contains'];
const LIST = ['anyOf', 'oneOf', 'allOf', 'prefixItems'];
const NAMED = ['properties', '$defs', 'definitions', 'patternProperties'];

/**
 * The schema of a function's arguments as OpenAI wants it: an object with `properties`, and no list without `items`. The same object when
 * nothing is missing.
 */
export function completeSchema(schema: JsonSchema): JsonSchema {
  const whole = withItems(schema);
  if (Object.keys(whole).length === 0) return { type: 'object', properties: {} };
  return whole['type'] === 'object' && whole['properties'] === undefined ? { ...whole, properties: {} } : whole;
}

function withItems(schema: JsonObject): JsonObject {
  let changed: JsonObject | undefined;
  const set = (key: string, before: unknown, after: unknown): void => {
    if (before === after) return;
    changed ??= { ...schema };
    setOwn(changed, key, after);
  };
  for (const key of ONE) if (isObject(schema[key])) set(key, schema[key], withItems(schema[key]));
  for (const key of LIST) if (Array.isArray(schema[key])) set(key, schema[key], mapList(schema[key]));
  for (const key of NAMED) if (isObject(schema[key])) set(key, schema[key], mapNamed(schema[key]));
  const isBareList = schema['type'] === 'array' && schema['items'] === undefined && schema['prefixItems'] === undefined;
  if (isBareList) set('items', undefined, { type: 'string' });
  return changed ?? schema;
}

function mapList(list: readonly unknown[]): readonly unknown[] {
  const mapped = list.map((item) => (isObject(item) ? withItems(item) : item));
  return mapped.some((item, i) => item !== list[i]) ? mapped : list;
}

function mapNamed(named: JsonObject): JsonObject {
  let changed: JsonObject | undefined;
  for (const [name, value] of Object.entries(named)) {
    const after = isObject(value) ? withItems(value) : value;
    if (after === value) continue;
    changed ??= { ...named };
    setOwn(changed, name, after);
  }
  return changed ?? named;
}
