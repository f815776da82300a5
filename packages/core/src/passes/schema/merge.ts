import { isObject, type JsonObject, sameJson, writeJson } from '../../accumulate/overlay.ts';

/** Of several bounds the narrowest counts. */
const NARROWER: Readonly<Record<string, (a: number, b: number) => number>> = {
  minimum: Math.max,
  exclusiveMinimum: Math.max,
  minLength: Math.max,
  minItems: Math.max,
  minProperties: Math.max,
  maximum: Math.min,
  exclusiveMaximum: Math.min,
  maxLength: Math.min,
  maxItems: Math.min,
  maxProperties: Math.min,
};

/** Of what describes, the first is enough. */
const ANNOTATIONS: ReadonlySet<string> = new Set([
  'title',
  'description',
  'default',
  'examples',
  'example',
  '$comment',
  '$id',
  '$schema',
]);

/**
 * Many schemas in one: a value fits when it fits all. `lose` is called where they cannot be one; the first counts then. A property that
 * several know is left as an `allOf`, for whoever walks on.
 */
export function mergeSchemas(schemas: readonly JsonObject[], lose: () => void): JsonObject {
  const said = new Map<string, unknown[]>();
  for (const schema of schemas) for (const [key, value] of Object.entries(schema)) put(said, key, value);
  return Object.fromEntries([...said].map(([key, values]) => [key, mergeKeyword(key, values, lose)]));
}

function put(lists: Map<string, unknown[]>, key: string, value: unknown): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}

function mergeKeyword(key: string, values: readonly unknown[], lose: () => void): unknown {
  const [first] = values;
  if (values.length === 1 || ANNOTATIONS.has(key)) return first;
  if (key === 'properties' && values.every(isObject)) return mergeProperties(values);
  if (key === 'required' && values.every(Array.isArray)) return [...new Set(values.flat())];
  if (key === 'type' || key === 'enum') return intersect(key, values, lose);
  const narrower = Object.hasOwn(NARROWER, key) ? NARROWER[key] : undefined;
  if (narrower && values.every((value) => typeof value === 'number')) return values.reduce((a, b) => narrower(a, b));
  // To allow everything else is to say nothing.
  const telling = key === 'additionalProperties' ? values.filter((value) => value !== true) : values;
  if (telling.some((value) => !sameJson(value, telling[0]))) lose();
  return telling.length > 0 ? telling[0] : first;
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [value]);

function intersect(key: string, values: readonly unknown[], lose: () => void): unknown {
  const [first, ...others] = values;
  let common = listOf(first);
  for (const other of others) {
    const known = new Set(listOf(other).map(writeJson));
    common = common.filter((value) => known.has(writeJson(value)));
  }
  if (common.length === 0) {
    lose();
    return first;
  }
  return key === 'type' && common.length === 1 ? common[0] : common;
}

function mergeProperties(all: readonly JsonObject[]): JsonObject {
  const said = new Map<string, unknown[]>();
  for (const properties of all) for (const [name, schema] of Object.entries(properties)) put(said, name, schema);
  return Object.fromEntries(
    [...said].map(([name, [first, ...others]]) => [
      name,
      others.every((other) => sameJson(first, other)) ? first : { allOf: [first, ...others] },
    ]),
  );
}
