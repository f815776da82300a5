import { isObject, type JsonObject } from '../../accumulate/overlay.ts';

const ONE = ['items', 'additionalProperties', 'not', 'if', 'then', 'else', 'contains'];
const LIST = ['anyOf', 'oneOf', 'allOf', 'prefixItems'];
const NAMED = ['properties', '$defs', 'definitions', 'patternProperties'];

/** The schemas directly inside a schema. */
export function* childrenOf(schema: JsonObject): Iterable<JsonObject> {
  for (const key of ONE) if (isObject(schema[key])) yield schema[key];
  for (const key of LIST) if (Array.isArray(schema[key])) yield* schema[key].filter(isObject);
  for (const key of NAMED) if (isObject(schema[key])) yield* Object.values(schema[key]).filter(isObject);
}

/** The schema with the schemas directly inside it changed; the same object when none was. */
export function mapChildren(schema: JsonObject, change: (child: JsonObject) => JsonObject): JsonObject {
  const changed: [string, unknown][] = [];
  const set = (key: string, after: unknown): void => {
    if (after !== schema[key]) changed.push([key, after]);
  };
  for (const key of ONE) if (isObject(schema[key])) set(key, change(schema[key]));
  for (const key of LIST) if (Array.isArray(schema[key])) set(key, mapList(schema[key], change));
  for (const key of NAMED) if (isObject(schema[key])) set(key, mapNamed(schema[key], change));
  return changed.length === 0 ? schema : { ...schema, ...Object.fromEntries(changed) };
}

function mapList(list: readonly unknown[], change: (child: JsonObject) => JsonObject): readonly unknown[] {
  const mapped = list.map((item) => (isObject(item) ? change(item) : item));
  return mapped.some((item, i) => item !== list[i]) ? mapped : list;
}

/** fromEntries defines, it does not assign: a property may be called `__proto__`. */
function mapNamed(named: JsonObject, change: (child: JsonObject) => JsonObject): JsonObject {
  const entries = Object.entries(named);
  const mapped = entries.map(([name, value]) => [name, isObject(value) ? change(value) : value] as const);
  return mapped.some(([, value], i) => value !== entries[i]?.[1]) ? Object.fromEntries(mapped) : named;
}
