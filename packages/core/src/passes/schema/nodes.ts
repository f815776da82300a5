/** Reading and changing single nodes of a schema: roots, children and types. */

import type { JsonSchema } from '../../canonical/protocol.ts';
import { isObject, type JsonObject } from '../../json/json.ts';
import { MAX_JSON_DEPTH } from '../../json/limits.ts';
import type { Values } from './convert.ts';
import type { Dialect } from './dialects.ts';
import { resolveRef } from './flatten.ts';

/**
 * Completes the schema of a function's arguments for OpenAI: an object with `properties`, and no array without
 * `items`. Returns the same object if nothing is missing.
 */
export function completeSchema(schema: JsonSchema): JsonSchema {
  const whole = withItems(schema);
  if (Object.keys(whole).length === 0) return { type: 'object', properties: {} };
  return whole['type'] === 'object' && whole['properties'] === undefined ? { ...whole, properties: {} } : whole;
}

/** Adds `items` to arrays without them. Returns the same object if nothing is missing. */
export function withItems(schema: JsonObject, depth = 0): JsonObject {
  if (depth > MAX_JSON_DEPTH) return schema;
  const whole = mapChildren(schema, (child) => withItems(child, depth + 1));
  const isBare = whole['type'] === 'array' && whole['items'] === undefined && whole['prefixItems'] === undefined;
  return isBare ? { ...whole, items: { type: 'string' } } : whole;
}

/** Keywords whose value is a schema. */
const ONE = ['items', 'additionalProperties', 'not', 'if', 'then', 'else', 'contains'];

/** Keywords whose value is a list of schemas. */
const LIST = ['anyOf', 'oneOf', 'allOf', 'prefixItems'];

/** Keywords whose value maps names to schemas. */
const NAMED = ['properties', '$defs', 'definitions', 'patternProperties'];

/** Changes the schemas directly inside a schema; returns the same object if none changed. */
function mapChildren(schema: JsonObject, change: (child: JsonObject) => JsonObject): JsonObject {
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

/** `fromEntries` defines instead of assigning, so that a property named `__proto__` is safe. */
function mapNamed(named: JsonObject, change: (child: JsonObject) => JsonObject): JsonObject {
  const entries = Object.entries(named);
  const mapped = entries.map(([name, value]) => [name, isObject(value) ? change(value) : value] as const);
  return mapped.some(([, value], i) => value !== entries[i]?.[1]) ? Object.fromEntries(mapped) : named;
}

/**
 * Keywords that APIs reject at the root, because the value may then be something else than an object of known shape.
 */
const ALTERNATIVES = ['anyOf', 'oneOf', 'allOf', 'not', 'enum', 'const', '$ref', 'items', 'prefixItems'];

/** Whether the arguments of a tool are always an object. No schema means an object without properties. */
export function isObjectRoot(schema: JsonSchema = {}): boolean {
  const root = resolveRoot(schema);
  if (ALTERNATIVES.some((keyword) => root[keyword] !== undefined)) return false;
  return root['type'] === undefined || isObjectType(root['type']);
}

const isObjectType = (type: unknown): boolean =>
  type === 'object' ||
  type === 'OBJECT' ||
  (Array.isArray(type) && type.includes('object') && type.every((name) => name === 'object' || name === 'null'));

/** The schema of an object with its type; the same schema if it has one. */
export function asObjectRoot(schema: JsonSchema): JsonSchema {
  const root = resolveRoot(schema);
  return root['type'] === 'object' || root['type'] === 'OBJECT' ? root : { ...root, type: 'object' };
}

/** Generators write some roots as a single reference, which is replaced by its target. */
function resolveRoot(schema: JsonSchema): JsonSchema {
  const { $ref: ref, ...rest } = schema;
  if (typeof ref !== 'string') return schema;
  const target = resolveRef(ref, schema);
  return isObject(target) && target !== schema && target['$ref'] === undefined ? { ...target, ...rest } : schema;
}

/** Makes the value the only property of an object. Definitions stay at the root, where references point to. */
export function wrapRoot(schema: JsonSchema): JsonSchema {
  const { $schema, $defs, definitions, ...inner } = schema;
  return {
    ...($schema !== undefined && { $schema }),
    type: 'object',
    properties: { input: moveRefs(inner) },
    required: ['input'],
    ...($defs !== undefined && { $defs: moveRefs($defs) }),
    ...(definitions !== undefined && { definitions: moveRefs(definitions) }),
  };
}

const INPUT = '#/properties/input';

/** References into the schema itself now point one level deeper. */
function moveRefs(value: unknown, depth = 0): unknown {
  if (depth > MAX_JSON_DEPTH || typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => moveRefs(item, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) =>
      key === '$ref' && typeof item === 'string' && item.startsWith('#') && !isDefinitionRef(item)
        ? [key, `${INPUT}${item.slice(1)}`]
        : [key, moveRefs(item, depth + 1)],
    ),
  );
}

const isDefinitionRef = (ref: string): boolean => /^#\/(\$defs|definitions)\//.test(ref);

/**
 * Whether every object is closed and requires all its properties, as schemas for OpenAI's strict mode do. Such
 * schemas are sent unchanged, and OpenAI validates them.
 */
export function isStrictShape(schema: JsonObject, depth = 0): boolean {
  if (depth > MAX_JSON_DEPTH || !isClosed(schema)) return false;
  for (const child of listChildren(schema)) if (!isStrictShape(child, depth + 1)) return false;
  return true;
}

function isClosed({ type, properties, required, additionalProperties: others }: JsonObject): boolean {
  if (type !== 'object' && !isObject(properties)) return true;
  const names = isObject(properties) ? Object.keys(properties) : [];
  const isRequired = new Set(Array.isArray(required) ? required : []);
  return others === false && names.every((name) => isRequired.has(name));
}

/** The schemas directly inside a schema. */
export function* listChildren(schema: JsonObject): Iterable<JsonObject> {
  for (const key of ONE) if (isObject(schema[key])) yield schema[key];
  for (const key of LIST) if (Array.isArray(schema[key])) yield* schema[key].filter(isObject);
  for (const key of NAMED) if (isObject(schema[key])) yield* Object.values(schema[key]).filter(isObject);
}

interface Types {
  names: string[];
  isNullable: boolean;
}

/** The types of a node. In JSON Schema null is one of the types, in OpenAPI a flag. */
export function readTypes(schema: JsonObject, values: Values, { isOpenApi }: Dialect): Types {
  const named = readTypeNames(schema['type']);
  // Without a type, what is listed shows it; null would be forbidden by the rest of the list, or everything be allowed.
  const names = named.length === 0 && values.hasNull ? listValueTypes(schema, values, isOpenApi) : named;
  const isNullable = schema['nullable'] === true || values.hasNull || names.includes('null');
  if (!isOpenApi)
    return { names: isNullable && names.length > 0 && !names.includes('null') ? [...names, 'null'] : names, isNullable };
  const others = names.filter((name) => name !== 'null');
  return others.length === 0 && names.length > 0 ? { names, isNullable: false } : { names: others, isNullable };
}

/** The types of the values that a schema lists beside null; null alone if there are none. */
function listValueTypes({ enum: listed }: JsonObject, values: Values, isOpenApi: boolean): string[] {
  const others = Array.isArray(listed) ? listed.filter((value) => value !== null) : [];
  if (others.length === 0) return ['null'];
  // OpenAPI has one type, which is inferred later.
  return isOpenApi || !values.enum ? [] : [...new Set(others.map((value) => typeof value))];
}

/** Types that a keyword applies to. */
const KEYWORD_TYPES: Readonly<Record<string, readonly string[]>> = {
  properties: ['object'],
  required: ['object'],
  additionalProperties: ['object'],
  minProperties: ['object'],
  maxProperties: ['object'],
  items: ['array'],
  prefixItems: ['array'],
  minItems: ['array'],
  maxItems: ['array'],
  uniqueItems: ['array'],
  minLength: ['string'],
  maxLength: ['string'],
  pattern: ['string'],
  format: ['string', 'number', 'integer'],
  minimum: ['number', 'integer'],
  maximum: ['number', 'integer'],
  exclusiveMinimum: ['number', 'integer'],
  exclusiveMaximum: ['number', 'integer'],
  multipleOf: ['number', 'integer'],
};

/** The type that the keywords of a schema imply, if it has none. */
export function inferType(schema: JsonObject): string | undefined {
  if (schema['enum'] !== undefined || schema['const'] !== undefined) return inferValueType(schema);
  const keyword = Object.keys(schema).find((key) => key !== 'format' && Object.hasOwn(KEYWORD_TYPES, key));
  return keyword === undefined ? undefined : KEYWORD_TYPES[keyword]?.[0];
}

function inferValueType({ enum: listed, const: only }: JsonObject): string {
  const values = (Array.isArray(listed) ? listed : [only]).filter((value) => value !== null);
  if (values.length > 0 && values.every((value) => typeof value === 'number')) return 'number';
  return values.length > 0 && values.every((value) => typeof value === 'boolean') ? 'boolean' : 'string';
}

/** For OpenAPI, several types become branches, each with the keywords that apply to it. Other schemas stay the same. */
export function splitTypeUnion(schema: JsonObject, { isOpenApi }: Dialect): JsonObject {
  const names = isOpenApi ? readTypeNames(schema['type']).filter((name) => name !== 'null') : [];
  if (names.length < 2) return schema;
  const isFree = schema['anyOf'] === undefined && schema['oneOf'] === undefined && schema['enum'] === undefined;
  return isFree ? splitTypes(schema, names) : { ...schema, type: undefined };
}

function splitTypes(schema: JsonObject, names: readonly string[]): JsonObject {
  const isNullable = readTypeNames(schema['type']).includes('null');
  const { type: _, ...rest } = schema;
  const typed = Object.entries(rest).filter(([key]) => Object.hasOwn(KEYWORD_TYPES, key));
  const general = Object.entries(rest).filter(([key]) => !Object.hasOwn(KEYWORD_TYPES, key));
  const anyOf = names.map((type) => ({
    type,
    ...Object.fromEntries(typed.filter(([key]) => KEYWORD_TYPES[key]?.includes(type))),
  }));
  return { ...Object.fromEntries(general), ...(isNullable && { nullable: true }), anyOf };
}

const TYPES: ReadonlySet<string> = new Set(['string', 'number', 'integer', 'boolean', 'array', 'object', 'null']);

/** The type names of a schema in lower case (Gemini writes capitals); unknown ones are ignored. */
function readTypeNames(type: unknown): string[] {
  const named = (Array.isArray(type) ? type : [type])
    .filter((name) => typeof name === 'string')
    .map((name) => name.toLowerCase());
  return [...new Set(named)].filter((name) => TYPES.has(name));
}
