/** Converts schemas between dialects. Keywords that a dialect does not support become hints in descriptions. */

import { isClientCall } from '../../canonical/message.ts';
import type { JsonSchema } from '../../canonical/protocol.ts';
import type { CanonicalRequest, CanonicalTool } from '../../canonical/request.ts';
import { isObject, type JsonObject, sameJson, writeJson } from '../../json/json.ts';
import { MAX_SCHEMA_DEPTH } from '../../json/limits.ts';
import { changeAll } from '../content.ts';
import type { Rules, SchemaDialect } from '../rules.ts';
import { DIALECTS, type Dialect } from './dialects.ts';
import { Flattener, readRefName } from './flatten.ts';
import {
  asObjectRoot,
  completeSchema,
  inferType,
  isObjectRoot,
  isStrictShape,
  readTypes,
  splitTypeUnion,
  withItems,
} from './nodes.ts';

/** Converts the schemas of tools and output format to the target's dialect ("Schema dialects" in docs/canonical.md). */
export function convertSchemas(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  const { output_format: format } = request;
  const tools = request.tools && changeAll(request.tools, (tool, i) => convertTool(tool, `/tools/${i}`, rules));
  const converted = tools === request.tools ? request : { ...request, ...(tools && { tools }) };
  if (format?.type !== 'json_schema') return converted;
  const { schema, strict, name = 'the response' } = format.json_schema;
  const dialect = strict ? rules.target.schemas.strictOutput : rules.target.schemas.output;
  const place = { path: '/output_format/json_schema/schema', feature: 'output_format.schema', name };
  const after = dialect === 'openai' ? withItems(schema) : convert(schema, dialect, place, rules);
  return after === schema
    ? converted
    : { ...converted, output_format: { ...format, json_schema: { ...format.json_schema, schema: after } } };
}

function convertTool(tool: CanonicalTool, path: string, rules: Rules): CanonicalTool {
  if (!isClientCall(tool.kind) || tool.kind === 'custom') return tool;
  const { input_schema: schema, ...rest } = tool;
  const dialect = tool.strict ? rules.target.schemas.strictTool : rules.target.schemas.tool;
  const place = { path: `${path}/input_schema`, feature: 'tools.schema', name: tool.name };
  const after = convertArguments(schema, dialect, place, rules);
  if (after === schema) return tool;
  return { ...rest, ...(after && { input_schema: after }) };
}

/** Where a schema is, for notes. */
interface Place {
  path: string;
  feature: string;
  name: string;
}

const NO_ARGUMENTS: JsonSchema = { type: 'object', properties: {} };

/** Arguments are an object. Without a schema that is clear, but not that other properties are forbidden. */
function convertArguments(
  schema: JsonSchema | undefined,
  dialect: SchemaDialect,
  place: Place,
  rules: Rules,
): JsonSchema | undefined {
  if (!schema) return isClosed(dialect) ? convert(NO_ARGUMENTS, dialect, place, rules) : undefined;
  const root = isObjectRoot(schema) ? asObjectRoot(schema) : schema;
  if (dialect === 'anthropic') return root;
  if (dialect === 'openai') return complete(schema, root, place, rules);
  const after = convert(root, dialect, place, rules);
  // Gemini rejects an object without properties (P53).
  if (dialect === 'gemini-openapi' && after['type'] === 'OBJECT' && after['properties'] === undefined) return undefined;
  return sameJson(after, schema) ? schema : after;
}

const isClosed = (dialect: SchemaDialect): boolean =>
  dialect !== 'openai' && dialect !== 'anthropic' && DIALECTS[dialect].isClosed;

function complete(schema: JsonSchema, root: JsonSchema, { path, feature, name }: Place, rules: Rules): JsonSchema {
  const whole = completeSchema(root);
  if (whole === schema) return schema;
  rules.note({ code: 'REPAIRED', path, feature, message: `the schema of ${name} has no type, properties or items; added` });
  return whole;
}

/** Keywords about the schema rather than the value: a strict policy allows dropping them. */
const MINOR_KEYWORDS: ReadonlySet<string> = new Set(['$id', '$anchor', '$comment', 'title', 'examples', 'optional properties']);

function convert(schema: JsonSchema, dialect: SchemaDialect, { path, feature, name }: Place, rules: Rules): JsonSchema {
  if (dialect === 'openai' || dialect === 'anthropic') return schema;
  if (dialect === 'openai-strict' && isStrictShape(schema)) return schema;
  const { schema: after, lost } = convertSchema(schema, DIALECTS[dialect]);
  if (lost.size > 0) {
    const loss = {
      path,
      feature,
      message: `the schema of ${name} uses keywords that the target does not support; dropped: ${[...lost].join(', ')}`,
    };
    if ([...lost].every((keyword) => MINOR_KEYWORDS.has(keyword))) rules.note({ code: 'DROPPED', ...loss });
    else rules.drop(loss);
  }
  return sameJson(after, schema) ? schema : after;
}

/** Whether OpenAI's strict mode accepts a schema unchanged. */
export const fitsStrictMode = (schema: JsonSchema): boolean =>
  schema['type'] === 'object' &&
  isStrictShape(schema) &&
  sameJson(convertSchema(schema, DIALECTS['openai-strict']).schema, schema);

/** A converted schema. */
export interface Converted {
  /** The schema in the new dialect. */
  schema: JsonSchema;
  /** Keywords that were left out or moved into descriptions. */
  lost: ReadonlySet<string>;
}

/** Converts a schema to a dialect. Unsupported keywords become hints in descriptions. */
export function convertSchema(schema: JsonSchema, dialect: Dialect): Converted {
  const lost = new Set<string>();
  return { schema: new Converter(schema, dialect, lost).root(schema), lost };
}

/** The references that are being followed. */
type Active = ReadonlySet<string>;

/** The output for one node. */
interface Draft {
  out: JsonObject;
  hints: string[];
}

/** Keywords that `#node` converts, and `$schema`, which no longer applies. */
const HANDLED: ReadonlySet<string> = new Set([
  '$schema',
  '$ref',
  '$defs',
  'definitions',
  'allOf',
  'anyOf',
  'oneOf',
  'type',
  'nullable',
  'const',
  'enum',
  'format',
  'description',
  'properties',
  'required',
  'additionalProperties',
  'items',
  'prefixItems',
]);

/** The values that a schema lists, as the dialect lists them. */
export interface Values {
  /** The listed values. */
  enum?: readonly unknown[];
  /** The only value. */
  const?: unknown;
  /** OpenAPI marks an enum whose values are not all texts. */
  format?: string;
  /** Null was listed, but the dialect expresses it differently. */
  hasNull: boolean;
  /** Keywords that the dialect does not support, with their values. */
  lost: readonly (readonly [keyword: string, value: unknown])[];
}

/** Converts the nodes of one schema. */
class Converter {
  readonly #dialect: Dialect;
  readonly #lost: Set<string>;
  readonly #flattener: Flattener;

  constructor(root: JsonSchema, dialect: Dialect, lost: Set<string>) {
    this.#dialect = dialect;
    this.#lost = lost;
    this.#flattener = new Flattener(root, dialect.refs === 'alone', (keyword) => lost.add(keyword));
  }

  root(schema: JsonSchema): JsonSchema {
    const converted = this.#schema(schema, new Set(), 0);
    if (this.#dialect.refs === 'inline') return converted;
    const definitions = { ...objectOrEmpty(schema['definitions']), ...objectOrEmpty(schema['$defs']) };
    const $defs = this.#named(definitions, new Set(), 0);
    return Object.keys($defs).length > 0 ? { ...converted, $defs } : converted;
  }

  /** `true`, and anything that is not a schema, allows any value. */
  #schema(value: unknown, active: Active, depth: number): JsonObject {
    if (!isObject(value)) {
      if (value === false) this.#lost.add('false');
      return this.#node({}, active, depth);
    }
    if (depth > MAX_SCHEMA_DEPTH) {
      this.#lost.add('depth');
      return { type: this.#typeName('object') };
    }
    const flat = this.#flattener.flatten(value, active);
    return typeof flat.schema['$ref'] === 'string'
      ? this.#reference(flat.schema, active, depth)
      : this.#node(flat.schema, flat.active, depth);
  }

  /** A reference must be alone; other keywords go into a node around it. */
  #reference({ $ref, ...rest }: JsonObject, active: Active, depth: number): JsonObject {
    const reference = { $ref: `#/$defs/${escapeSegment(readRefName(String($ref)))}` };
    const around = this.#node(rest, active, depth);
    return Object.keys(around).length > 0 ? { ...around, anyOf: [reference] } : reference;
  }

  #node(source: JsonObject, active: Active, depth: number): JsonObject {
    const schema = splitTypeUnion(source, this.#dialect);
    const draft: Draft = { out: {}, hints: [] };
    const values = this.#values(schema, draft);
    this.#alternatives(schema, draft, active, depth);
    const { names, isNullable } = readTypes(schema, values, this.#dialect);
    const types = this.#types(names, schema, draft);
    if (types.length > 0) draft.out['type'] = types.length === 1 ? this.#typeName(types[0] ?? '') : types;
    if (isNullable && this.#dialect.isOpenApi) draft.out['nullable'] = true;
    this.#format(schema, types[0], values, draft);
    if (values.enum) draft.out['enum'] = values.enum;
    if (values.const !== undefined) draft.out['const'] = values.const;
    this.#object(schema, types.includes('object'), draft, active, depth);
    this.#list(schema, types.includes('array'), draft, active, depth);
    this.#others(schema, draft);
    const description = describe(schema['description'], draft.hints);
    const out = description ? { description, ...draft.out } : draft.out;
    return this.#dialect.isOpenApi ? joinBranches(out) : out;
  }

  #others(schema: JsonObject, draft: Draft): void {
    for (const [key, value] of Object.entries(schema)) {
      if (HANDLED.has(key) || value === undefined) continue;
      const check = Object.hasOwn(this.#dialect.keywords, key) ? this.#dialect.keywords[key] : undefined;
      if (check?.(value)) draft.out[key] = value;
      else this.#addHint(key, value, draft);
    }
  }

  #addHint(keyword: string, value: unknown, { hints }: Draft): void {
    this.#lost.add(keyword);
    const hint = buildHint(keyword, value);
    if (hint !== undefined) hints.push(hint);
  }

  #typeName = (type: string): string => (this.#dialect.isOpenApi ? type.toUpperCase() : type);

  #values(schema: JsonObject, draft: Draft): Values {
    const values = convertEnum(schema, this.#dialect);
    for (const [keyword, value] of values.lost) this.#addHint(keyword, value, draft);
    return values;
  }

  /** OpenAPI requires a type: a schema without one becomes a string. */
  #types(names: readonly string[], schema: JsonObject, { out, hints }: Draft): readonly string[] {
    if (names.length > 0 || !this.#dialect.isOpenApi || out['anyOf'] !== undefined) return names;
    const inferred = inferType(schema);
    if (inferred !== undefined) return [inferred];
    this.#lost.add('type');
    hints.push('any value');
    return ['string'];
  }

  #format({ format }: JsonObject, type: string | undefined, values: Values, draft: Draft): void {
    if (values.format !== undefined && this.#dialect.formats(values.format, type)) draft.out['format'] = values.format;
    else if (typeof format === 'string' && this.#dialect.formats(format, type)) draft.out['format'] = format;
    else if (format !== undefined) this.#addHint('format', format, draft);
  }

  /** `oneOf` is converted to `anyOf`. */
  #alternatives({ anyOf, oneOf }: JsonObject, draft: Draft, active: Active, depth: number): void {
    if (anyOf !== undefined && oneOf !== undefined) this.#addHint('oneOf', oneOf, draft);
    const list = Array.isArray(anyOf ?? oneOf) ? (anyOf ?? oneOf) : undefined;
    if (!Array.isArray(list) || list.length === 0) {
      if ((anyOf ?? oneOf) !== undefined) this.#lost.add(anyOf === undefined ? 'oneOf' : 'anyOf');
      return;
    }
    draft.out['anyOf'] = list.map((item) => this.#schema(item, active, depth + 1));
  }

  #object(schema: JsonObject, isObjectType: boolean, draft: Draft, active: Active, depth: number): void {
    const { properties: named, required, additionalProperties: others } = schema;
    const properties = isObject(named) ? this.#named(named, active, depth + 1) : undefined;
    if (named !== undefined && !properties) this.#lost.add('properties');
    const names = Array.isArray(required) ? required : [];
    const isRequired = new Set(names.filter((name) => typeof name === 'string' && properties && Object.hasOwn(properties, name)));
    if (properties) this.#properties(properties, isRequired, draft);
    if (isRequired.size < new Set(names).size) this.#lost.add('required');
    if (this.#dialect.isClosed && (properties || isObjectType)) {
      if (others !== undefined && others !== false) this.#addHint('additionalProperties', others, draft);
      draft.out['additionalProperties'] = false;
    } else if (this.#dialect.additionalProperties && (typeof others === 'boolean' || isObject(others)))
      draft.out['additionalProperties'] = isObject(others) ? this.#schema(others, active, depth + 1) : others;
    else if (others !== undefined) this.#addHint('additionalProperties', others, draft);
  }

  #properties(properties: JsonObject, isRequired: ReadonlySet<unknown>, { out }: Draft): void {
    const names = Object.keys(properties);
    if (names.length === 0 && this.#dialect.isOpenApi) return;
    out['properties'] = properties;
    if (!this.#dialect.allRequired) {
      if (isRequired.size > 0) out['required'] = names.filter((name) => isRequired.has(name));
      return;
    }
    if (isRequired.size < names.length) this.#lost.add('optional properties');
    out['properties'] = Object.fromEntries(
      Object.entries(properties).map(([name, value]) => [
        name,
        isRequired.has(name) || !isObject(value) ? value : nullable(value),
      ]),
    );
    out['required'] = names;
  }

  /** `fromEntries` defines instead of assigning, so that a property named `__proto__` is safe. */
  #named(schemas: JsonObject, active: Active, depth: number): JsonObject {
    return Object.fromEntries(Object.entries(schemas).map(([name, value]) => [name, this.#schema(value, active, depth)]));
  }

  /** Without `prefixItems`, a tuple (of either draft's form) becomes a list of any of its members. */
  #list(schema: JsonObject, isList: boolean, draft: Draft, active: Active, depth: number): void {
    const { items, prefixItems } = schema;
    const tuple = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : undefined;
    const rest = isObject(items) ? items : undefined;
    if (tuple && tuple.length > 0 && this.#dialect.prefixItems)
      draft.out['prefixItems'] = tuple.map((item) => this.#schema(item, active, depth + 1));
    else if (tuple && tuple.length > 0) {
      this.#lost.add('prefixItems');
      draft.hints.push(`${tuple.length} items in order`);
      draft.out['items'] = this.#schema({ anyOf: rest ? [...tuple, rest] : tuple }, active, depth + 1);
      return;
    }
    if (rest) draft.out['items'] = this.#schema(rest, active, depth + 1);
    else if (this.#dialect.needsItems && isList && !draft.out['prefixItems'])
      draft.out['items'] = { type: this.#typeName('string') };
    if (items !== undefined && !rest && !tuple && items !== true) this.#lost.add('items');
  }
}

const objectOrEmpty = (value: unknown): JsonObject => (isObject(value) ? value : {});

const escapeSegment = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1');

/** The description followed by the hints: `Pages to read. (min 1, max 10)`. */
function describe(description: unknown, hints: readonly string[]): string | undefined {
  const text = typeof description === 'string' ? description : undefined;
  if (hints.length === 0) return text;
  const suffix = `(${hints.join(', ')})`;
  return text ? `${text} ${suffix}` : suffix;
}

/** Keywords for which the outer schema wins. */
const SHARED: ReadonlySet<string> = new Set(['description', 'nullable']);

/**
 * In OpenAPI, null is a flag instead of a branch, and a single branch is merged into the schema unless keywords
 * collide.
 */
function joinBranches(schema: JsonObject): JsonObject {
  const { anyOf: list, ...rest } = schema;
  if (!Array.isArray(list)) return schema;
  const others = list.filter((branch) => !isOnlyNull(branch));
  const [only] = others;
  if (!isObject(only)) return { ...rest, type: 'NULL' };
  const flag = others.length < list.length && { nullable: true };
  const isJoined = others.length === 1 && Object.keys(only).every((key) => rest[key] === undefined || SHARED.has(key));
  return isJoined ? { ...only, ...rest, ...flag } : { ...rest, anyOf: others, ...flag };
}

const isOnlyNull = (branch: unknown): boolean => isObject(branch) && branch['type'] === 'NULL';

const withValue = (label: string) => (value: unknown) => `${label} ${short(value)}`;

const ifTrue = (label: string) => (value: unknown) => (value === true ? label : undefined);

const noHint = (): undefined => undefined;

/** How a description expresses an unsupported keyword. Keywords that do not concern the value have no hint. */
const HINTS: Readonly<Record<string, (value: unknown) => string | undefined>> = {
  minimum: withValue('min'),
  maximum: withValue('max'),
  exclusiveMinimum: withValue('more than'),
  exclusiveMaximum: withValue('less than'),
  multipleOf: withValue('multiple of'),
  minLength: withValue('min length'),
  maxLength: withValue('max length'),
  minItems: withValue('min items'),
  maxItems: withValue('max items'),
  minProperties: withValue('min properties'),
  maxProperties: withValue('max properties'),
  pattern: withValue('pattern'),
  format: withValue('format'),
  default: withValue('default'),
  const: withValue('always'),
  enum: (value) => `one of ${Array.isArray(value) ? value.map(short).join(', ') : short(value)}`,
  examples: (value) => `for example ${Array.isArray(value) ? value.map(short).join(', ') : short(value)}`,
  example: withValue('for example'),
  uniqueItems: ifTrue('unique items'),
  deprecated: ifTrue('deprecated'),
  readOnly: ifTrue('read only'),
  writeOnly: ifTrue('write only'),
  additionalProperties: (value) =>
    value === false ? 'no other properties' : value === true ? undefined : `other properties ${short(value)}`,
  required: noHint,
  title: noHint,
  $id: noHint,
  $anchor: noHint,
  $comment: noHint,
  $vocabulary: noHint,
  $dynamicAnchor: noHint,
};

/** Keywords of schema tools about the schema, not about the value. */
const ABOUT_SCHEMA = /^(\$|x-)/;

function buildHint(keyword: string, value: unknown): string | undefined {
  const hint = Object.hasOwn(HINTS, keyword) ? HINTS[keyword] : undefined;
  if (hint) return clip(hint(value));
  return ABOUT_SCHEMA.test(keyword) ? undefined : clip(`${keyword} ${short(value)}`);
}

const MAX_HINT = 200;

/** Long hints would only cost tokens. */
function clip(hint: string | undefined): string | undefined {
  if (hint === undefined || hint.length <= MAX_HINT) return hint;
  return `${hint.slice(0, MAX_HINT).replace(/[\ud800-\udbff]$/, '')}…`;
}

type Kind = 'text' | 'number' | 'boolean' | 'null' | 'other';

/** The kinds of values that enums of a dialect may list. */
const ACCEPTED: Readonly<Record<Dialect['enums'], ReadonlySet<Kind>>> = {
  scalars: new Set(['text', 'number', 'boolean', 'null']),
  'texts and numbers': new Set(['text', 'number']),
  // Numbers are converted to text.
  texts: new Set(['text', 'number']),
};

/** An enum that the dialect cannot list completely becomes a hint: a partial list would forbid the rest. */
function convertEnum(schema: JsonObject, dialect: Dialect): Values {
  const { enum: listed, const: only } = schema;
  if (listed === undefined && only === undefined) return { hasNull: false, lost: [] };
  const accepted = ACCEPTED[dialect.enums];
  if (listed === undefined && dialect.constants)
    return accepted.has(findKind(only)) ? { const: only, hasNull: false, lost: [] } : { hasNull: false, lost: [['const', only]] };
  const keyword = listed === undefined ? 'const' : 'enum';
  const values: readonly unknown[] = Array.isArray(listed) ? listed : listed === undefined ? [only] : [];
  const isNullApart = !accepted.has('null');
  const rest = isNullApart ? values.filter((value) => value !== null) : values;
  const hasNull = rest.length < values.length;
  const lost: [string, unknown][] = listed !== undefined && only !== undefined ? [['const', only]] : [];
  if (rest.length === 0 || !rest.every((value) => accepted.has(findKind(value))))
    return { hasNull, lost: hasNull && rest.length === 0 ? lost : [...lost, [keyword, listed ?? only]] };
  return { ...(dialect.enums === 'texts' ? asTexts(rest, lost) : { enum: rest, lost }), hasNull };
}

function findKind(value: unknown): Kind {
  if (value === null) return 'null';
  if (typeof value === 'string') return 'text';
  if (typeof value === 'number') return 'number';
  return typeof value === 'boolean' ? 'boolean' : 'other';
}

/** Gemini rejects an empty text in an enum. */
function asTexts(values: readonly unknown[], lost: readonly (readonly [string, unknown])[]): Omit<Values, 'hasNull'> {
  const texts = values.map(String).filter((text) => text !== '');
  if (texts.length < values.length) return { lost: [...lost, ['enum', values]] };
  const isMarked = values.some((value) => typeof value !== 'string');
  return { enum: texts, lost, ...(isMarked && { format: 'enum' }) };
}

const short = (value: unknown): string => (typeof value === 'string' ? value : (writeJson(value) ?? '…'));

const NULL: JsonObject = { type: 'null' };

/** Adds null, which is how OpenAI's strict mode expresses an optional property. */
function nullable(schema: JsonObject): JsonObject {
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

const allowsNull = (schema: JsonObject): boolean => {
  const { type, enum: listed, anyOf } = schema;
  if (Array.isArray(anyOf)) return anyOf.some((branch) => isObject(branch) && allowsNull(branch));
  const types = Array.isArray(type) ? type : [type];
  if (types.includes('null')) return !Array.isArray(listed) || listed.includes(null);
  return type === undefined && schema['$ref'] === undefined && schema['const'] === undefined && listed === undefined;
};
