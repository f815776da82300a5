import { isObject, type JsonObject } from '../../accumulate/overlay.ts';

const NULL: JsonObject = { type: 'null' };

const allowsNull = (schema: JsonObject): boolean => {
  const { type, enum: listed, anyOf } = schema;
  if (Array.isArray(anyOf)) return anyOf.some((branch) => isObject(branch) && allowsNull(branch));
  const types = Array.isArray(type) ? type : [type];
  if (types.includes('null')) return !Array.isArray(listed) || listed.includes(null);
  return type === undefined && schema['$ref'] === undefined && schema['const'] === undefined && listed === undefined;
};

/** The same schema, and null: how strict OpenAI says that a property need not be there. */
export function nullable(schema: JsonObject): JsonObject {
  if (allowsNull(schema)) return schema;
  const { type, enum: listed, anyOf } = schema;
  if (Array.isArray(anyOf)) return { ...schema, anyOf: [...anyOf, NULL] };
  if (type === undefined || schema['const'] !== undefined) {
    const { description, ...rest } = schema;
    return { ...(description !== undefined && { description }), anyOf: [rest, NULL] };
  }
  const types = Array.isArray(type) ? type : [type];
  return {
    ...schema,
    type: types.includes('null') ? types : [...types, 'null'],
    ...(Array.isArray(listed) && !listed.includes(null) && { enum: [...listed, null] }),
  };
}

const isOnlyNull = (branch: unknown): boolean => isObject(branch) && branch['type'] === 'NULL';

/** In OpenAPI null is no branch but a flag, and an only branch is the schema itself where they do not speak of the same. */
export function joinBranches(schema: JsonObject): JsonObject {
  const { anyOf: list, ...rest } = schema;
  if (!Array.isArray(list)) return schema;
  const others = list.filter((branch) => !isOnlyNull(branch));
  const [only] = others;
  if (!isObject(only)) return { ...rest, type: 'NULL' };
  const flag = others.length < list.length && { nullable: true };
  const isJoined = others.length === 1 && Object.keys(only).every((key) => rest[key] === undefined || SHARED.has(key));
  return isJoined ? { ...only, ...rest, ...flag } : { ...rest, anyOf: others, ...flag };
}

/** Of these the schema's own counts. */
const SHARED: ReadonlySet<string> = new Set(['description', 'nullable']);
