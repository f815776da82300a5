import { isObject, type JsonObject, setOwn } from '../../accumulate/overlay.ts';
import type { JsonSchema } from '../../canonical/protocol.ts';
import { camelOf } from './wire.ts';

/** Keywords whose values are schemas, lists of schemas, and schemas by name. */
const ONE: ReadonlySet<string> = new Set(['items', 'additionalProperties']);
const LIST: ReadonlySet<string> = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems']);
const NAMED: ReadonlySet<string> = new Set(['properties', '$defs', 'defs']);

/** int64 comes as text in proto3 JSON. */
const COUNTS: ReadonlySet<string> = new Set(['minItems', 'maxItems', 'minLength', 'maxLength', 'minProperties', 'maxProperties']);

/** proto3 JSON may say an enum by its number. */
const TYPES: readonly string[] = ['type_unspecified', 'string', 'number', 'integer', 'boolean', 'array', 'object', 'null'];

/** Google's `Schema` (a subset of OpenAPI 3.0: `STRING`, `nullable`) as JSON Schema. What is JSON Schema already stays as it is. */
export function decodeSchema(schema: JsonObject): JsonSchema {
  const out: JsonObject = {};
  for (const [key, value] of Object.entries(schema)) setOwn(out, camelOf(key), decodeKeyword(camelOf(key), value));
  const { type, nullable, format, ...rest }: JsonObject = out;
  const isEnum = format === 'enum';
  const named = typeof type === 'number' ? TYPES[type] : typeof type === 'string' ? type.toLowerCase() : type;
  const word = named === 'type_unspecified' ? undefined : named;
  return {
    ...(word !== undefined && { type: nullable === true && typeof word === 'string' ? [word, 'null'] : word }),
    ...(format !== undefined && !isEnum && { format }),
    ...withNull(rest, nullable === true),
  };
}

/** A value that may be null may be that in a list of values or of schemas too. Of one without a type that need not be said. */
function withNull(rest: JsonObject, isNullable: boolean): JsonObject {
  if (!isNullable) return rest;
  const { enum: values, anyOf: schemas } = rest;
  return {
    ...rest,
    ...(Array.isArray(values) && !values.includes(null) && { enum: [...values, null] }),
    ...(Array.isArray(schemas) && { anyOf: [...schemas, { type: 'null' }] }),
  };
}

function decodeKeyword(key: string, value: unknown): unknown {
  if (ONE.has(key) && isObject(value)) return decodeSchema(value);
  if (LIST.has(key) && Array.isArray(value)) return value.map((item: unknown) => (isObject(item) ? decodeSchema(item) : item));
  if (NAMED.has(key) && isObject(value))
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, isObject(item) ? decodeSchema(item) : item]));
  return COUNTS.has(key) && typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
}
