import type { JsonSchema } from '../../canonical/protocol.ts';
import { isObject, type JsonObject, sameJson, writeJson } from '../../json/json.ts';
import { MAX_INLINED_SCHEMA, MAX_JSON_DEPTH, MAX_SCHEMA_MERGE_DEPTH } from '../../json/limits.ts';

const NONE: ReadonlySet<string> = new Set();

/** A node without `$ref` and `allOf`, and the references that were followed to get it. */
export interface Flat {
  schema: JsonObject;
  active: ReadonlySet<string>;
}

/** Puts what is referred to in the place of references, and makes one schema of those that all must fit. */
export class Flattener {
  readonly #root: JsonSchema;
  readonly #keepsRefs: boolean;
  readonly #lose: (keyword: string) => void;
  readonly #sizes = new WeakMap<object, number>();
  #left = MAX_INLINED_SCHEMA;

  constructor(root: JsonSchema, keepsRefs: boolean, lose: (keyword: string) => void) {
    this.#root = root;
    this.#keepsRefs = keepsRefs;
    this.#lose = lose;
  }

  /**
   * A reference that may stay keeps its `$ref`, unless it `mustInline`. `active`: those that are being followed; to follow one again would
   * never end.
   */
  flatten(schema: JsonObject, active: ReadonlySet<string> = NONE, mustInline = false, depth = 0): Flat {
    const { allOf, ...rest } = schema;
    if (!Array.isArray(allOf)) return this.#follow(rest, active, mustInline, depth);
    const parts = allOf.filter(isObject);
    const [only] = parts;
    // `allOf` with one reference is how generators write a reference with a description.
    if (!mustInline && parts.length === 1 && only && this.#canKeep(only, rest)) return { schema: { ...only, ...rest }, active };
    if (depth > MAX_SCHEMA_MERGE_DEPTH) {
      this.#lose('allOf');
      return { schema: rest, active };
    }
    const flat = this.#follow(rest, active, true, depth);
    const flats = [flat, ...parts.map((part) => this.flatten(part, active, true, depth + 1))];
    const schemas = flats.map(({ schema: one }) => one);
    return {
      schema: mergeSchemas(schemas, () => this.#lose('allOf')),
      active: new Set(flats.flatMap(({ active: followed }) => [...followed])),
    };
  }

  /** A definition that is referred to, and nothing beside it that could not stand around it. */
  #canKeep({ $ref: ref }: JsonObject, rest: JsonObject): boolean {
    if (!this.#keepsRefs || typeof ref !== 'string' || !isDefinition(ref) || !isObject(resolveRef(ref, this.#root))) return false;
    return rest['anyOf'] === undefined && rest['oneOf'] === undefined;
  }

  #follow(schema: JsonObject, active: ReadonlySet<string>, mustInline: boolean, depth: number): Flat {
    const { $ref: ref, ...rest } = schema;
    if (typeof ref !== 'string') return { schema: rest, active };
    if (!mustInline && this.#canKeep(schema, rest)) return { schema, active };
    const target = resolveRef(ref, this.#root);
    if (!isObject(target) || active.has(ref) || depth > MAX_SCHEMA_MERGE_DEPTH || !this.#pay(target)) {
      this.#lose('$ref');
      return { schema: cut(ref, rest, isObject(target)), active };
    }
    const flat = this.flatten(target, new Set([...active, ref]), true, depth + 1);
    return { schema: mergeSchemas([rest, flat.schema], () => this.#lose('$ref')), active: flat.active };
  }

  #pay(target: JsonObject): boolean {
    this.#left -= this.#sizeOf(target, 0);
    return this.#left >= 0;
  }

  /** About the length of its JSON. */
  #sizeOf(value: unknown, depth: number): number {
    if (typeof value === 'string') return value.length + 2;
    if (typeof value !== 'object' || value === null || depth > MAX_JSON_DEPTH) return 4;
    const known = this.#sizes.get(value);
    if (known !== undefined) return known;
    let size = 2;
    for (const [key, item] of Object.entries(value)) size += key.length + 3 + this.#sizeOf(item, depth + 1);
    this.#sizes.set(value, size);
    return size;
  }
}

/**
 * Many schemas in one: a value fits when it fits all. `lose` is called where they cannot be one; the first counts then. A property that
 * several know is left as an `allOf`, for whoever walks on.
 */
function mergeSchemas(schemas: readonly JsonObject[], lose: () => void): JsonObject {
  const said = new Map<string, unknown[]>();
  for (const schema of schemas) for (const [key, value] of Object.entries(schema)) put(said, key, value);
  return Object.fromEntries([...said].map(([key, values]) => [key, mergeKeyword(key, values, lose)]));
}

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

function put(lists: Map<string, unknown[]>, key: string, value: unknown): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}

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

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [value]);

const isDefinition = (ref: string): boolean => /^#\/(\$defs|definitions)\/[^/]+$/.test(ref);

/** What a local reference points to; undefined for those that lead nowhere or elsewhere. */
export function resolveRef(ref: string, root: JsonSchema): unknown {
  if (ref === '#') return root;
  if (!ref.startsWith('#/')) return undefined;
  let node: unknown = root;
  for (const segment of ref.slice(2).split('/')) {
    if (typeof node !== 'object' || node === null) return undefined;
    node = Object.getOwnPropertyDescriptor(node, unescaped(segment))?.value;
  }
  return node;
}

/** Where following ends: an object of which only the name is known. */
function cut(ref: string, rest: JsonObject, isKnown: boolean): JsonObject {
  const see = `see ${nameOfRef(ref).slice(0, 64)}`;
  const description = typeof rest['description'] === 'string' ? `${rest['description']} (${see})` : see;
  return { ...(isKnown && { type: 'object' }), ...rest, description };
}

/** How a reference is called in a text: its last segment. */
export const nameOfRef = (ref: string): string => unescaped(ref.slice(ref.lastIndexOf('/') + 1)) || ref;

/** A pointer in a URL: `%24defs`, `~1` for a slash, `~0` for a tilde. */
function unescaped(segment: string): string {
  let text = segment;
  try {
    text = decodeURIComponent(segment);
  } catch {
    // Not escaped, then.
  }
  return text.replaceAll('~1', '/').replaceAll('~0', '~');
}
