import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { JsonSchema } from '../../canonical/protocol.ts';
import { MAX_SCHEMA_DEPTH } from '../../json/limits.ts';
import type { Dialect } from './dialects.ts';
import { convertEnum, type Values } from './enums.ts';
import { Flattener } from './flatten.ts';
import { describe, hintOf } from './hints.ts';
import { joinBranches, nullable } from './nullable.ts';
import { nameOfRef } from './refs.ts';
import { branches, inferType, typesOf } from './types.ts';

export interface Converted {
  schema: JsonSchema;
  /** Keywords that were left out or moved into descriptions. */
  lost: ReadonlySet<string>;
}

/** The schema in another dialect. What the dialect cannot say is told in the descriptions. */
export function convertSchema(schema: JsonSchema, dialect: Dialect): Converted {
  const lost = new Set<string>();
  return { schema: new Converter(schema, dialect, lost).root(schema), lost };
}

/** Keywords that the steps of `#node` see to, and the one that names the language: what is written here is in another. */
const SEEN: ReadonlySet<string> = new Set([
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

type Active = ReadonlySet<string>;

/** What is being written of one node. */
interface Draft {
  out: JsonObject;
  hints: string[];
}

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
    const definitions = { ...objectOf(schema['definitions']), ...objectOf(schema['$defs']) };
    const $defs = this.#named(definitions, new Set(), 0);
    return Object.keys($defs).length > 0 ? { ...converted, $defs } : converted;
  }

  /** `true` and what is no schema allow anything. */
  #schema(value: unknown, active: Active, depth: number): JsonObject {
    if (!isObject(value)) {
      if (value === false) this.#lost.add('false');
      return this.#node({}, active, depth);
    }
    if (depth > MAX_SCHEMA_DEPTH) {
      this.#lost.add('depth');
      return { type: this.#word('object') };
    }
    const flat = this.#flattener.flatten(value, active);
    return typeof flat.schema['$ref'] === 'string'
      ? this.#reference(flat.schema, active, depth)
      : this.#node(flat.schema, flat.active, depth);
  }

  /** A reference stands alone; what is said beside it is said around it. */
  #reference({ $ref, ...rest }: JsonObject, active: Active, depth: number): JsonObject {
    const reference = { $ref: `#/$defs/${escapeSegment(nameOfRef(String($ref)))}` };
    const around = this.#node(rest, active, depth);
    return Object.keys(around).length > 0 ? { ...around, anyOf: [reference] } : reference;
  }

  #node(source: JsonObject, active: Active, depth: number): JsonObject {
    const schema = branches(source, this.#dialect);
    const draft: Draft = { out: {}, hints: [] };
    const values = this.#values(schema, draft);
    this.#alternatives(schema, draft, active, depth);
    const { names, isNullable } = typesOf(schema, values, this.#dialect);
    const types = this.#types(names, schema, draft);
    if (types.length > 0) draft.out['type'] = types.length === 1 ? this.#word(types[0] ?? '') : types;
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
      if (SEEN.has(key) || value === undefined) continue;
      const check = Object.hasOwn(this.#dialect.keywords, key) ? this.#dialect.keywords[key] : undefined;
      if (check?.(value)) draft.out[key] = value;
      else this.#tell(key, value, draft);
    }
  }

  #tell(keyword: string, value: unknown, { hints }: Draft): void {
    this.#lost.add(keyword);
    const hint = hintOf(keyword, value);
    if (hint !== undefined) hints.push(hint);
  }

  #word = (type: string): string => (this.#dialect.isOpenApi ? type.toUpperCase() : type);

  #values(schema: JsonObject, draft: Draft): Values {
    const values = convertEnum(schema, this.#dialect);
    for (const [keyword, value] of values.lost) this.#tell(keyword, value, draft);
    return values;
  }

  /** OpenAPI has no schema without a type: what may be anything is sent as a text. */
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
    else if (format !== undefined) this.#tell('format', format, draft);
  }

  /** What fits exactly one fits one. */
  #alternatives({ anyOf, oneOf }: JsonObject, draft: Draft, active: Active, depth: number): void {
    if (anyOf !== undefined && oneOf !== undefined) this.#tell('oneOf', oneOf, draft);
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
      if (others !== undefined && others !== false) this.#tell('additionalProperties', others, draft);
      draft.out['additionalProperties'] = false;
    } else if (this.#dialect.additionalProperties && (typeof others === 'boolean' || isObject(others)))
      draft.out['additionalProperties'] = isObject(others) ? this.#schema(others, active, depth + 1) : others;
    else if (others !== undefined) this.#tell('additionalProperties', others, draft);
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

  /** fromEntries defines, it does not assign: a property may be called `__proto__`. */
  #named(schemas: JsonObject, active: Active, depth: number): JsonObject {
    return Object.fromEntries(Object.entries(schemas).map(([name, value]) => [name, this.#schema(value, active, depth)]));
  }

  /** A tuple, in the words of two drafts, is a list of any of its members where there are none. */
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
    else if (this.#dialect.needsItems && isList && !draft.out['prefixItems']) draft.out['items'] = { type: this.#word('string') };
    if (items !== undefined && !rest && !tuple && items !== true) this.#lost.add('items');
  }
}

const objectOf = (value: unknown): JsonObject => (isObject(value) ? value : {});

const escapeSegment = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1');
