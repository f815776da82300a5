import type { JsonObject } from '../../accumulate/overlay.ts';
import type { Dialect } from './dialects.ts';
import type { Values } from './enums.ts';

const TYPES: ReadonlySet<string> = new Set(['string', 'number', 'integer', 'boolean', 'array', 'object', 'null']);

/** The types a schema names, in lower case: Gemini writes them in capitals. What is no type is left out. */
function namesIn(type: unknown): string[] {
  const named = (Array.isArray(type) ? type : [type])
    .filter((name) => typeof name === 'string')
    .map((name) => name.toLowerCase());
  return [...new Set(named)].filter((name) => TYPES.has(name));
}

interface Types {
  names: string[];
  isNullable: boolean;
}

/** In JSON schema null is a type among others; in OpenAPI a flag. */
export function typesOf(schema: JsonObject, values: Values, { isOpenApi }: Dialect): Types {
  const names = namesIn(schema['type']);
  const isNullable = schema['nullable'] === true || values.hasNull || names.includes('null');
  if (!isOpenApi)
    return { names: isNullable && names.length > 0 && !names.includes('null') ? [...names, 'null'] : names, isNullable };
  const others = names.filter((name) => name !== 'null');
  return others.length === 0 && names.length > 0 ? { names, isNullable: false } : { names: others, isNullable };
}

/** Which keywords speak of which type only. */
const SPEAKS_OF: Readonly<Record<string, readonly string[]>> = {
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

/** The type of a schema that names none: what its keywords speak of. */
export function inferType(schema: JsonObject): string | undefined {
  if (schema['enum'] !== undefined || schema['const'] !== undefined) return typeOfValues(schema);
  const spoken = Object.keys(schema).find((key) => key !== 'format' && Object.hasOwn(SPEAKS_OF, key));
  return spoken === undefined ? undefined : SPEAKS_OF[spoken]?.[0];
}

function typeOfValues({ enum: listed, const: only }: JsonObject): string {
  const values = (Array.isArray(listed) ? listed : [only]).filter((value) => value !== null);
  if (values.length > 0 && values.every((value) => typeof value === 'number')) return 'number';
  return values.length > 0 && values.every((value) => typeof value === 'boolean') ? 'boolean' : 'string';
}

/** For OpenAPI several types become branches, each with the keywords that speak of it. Other schemas are the same. */
export function branches(schema: JsonObject, { isOpenApi }: Dialect): JsonObject {
  const names = isOpenApi ? namesIn(schema['type']).filter((name) => name !== 'null') : [];
  if (names.length < 2) return schema;
  const isFree = schema['anyOf'] === undefined && schema['oneOf'] === undefined && schema['enum'] === undefined;
  return isFree ? split(schema, names) : { ...schema, type: undefined };
}

function split(schema: JsonObject, names: readonly string[]): JsonObject {
  const isNullable = namesIn(schema['type']).includes('null');
  const { type: _, ...rest } = schema;
  const spoken = Object.entries(rest).filter(([key]) => Object.hasOwn(SPEAKS_OF, key));
  const general = Object.entries(rest).filter(([key]) => !Object.hasOwn(SPEAKS_OF, key));
  const anyOf = names.map((type) => ({
    type,
    ...Object.fromEntries(spoken.filter(([key]) => SPEAKS_OF[key]?.includes(type))),
  }));
  return { ...Object.fromEntries(general), ...(isNullable && { nullable: true }), anyOf };
}
