import type { JsonSchema } from '../../canonical/protocol.ts';
import { isObject, type JsonObject, sameJson, writeJson } from '../../json/json.ts';
import { MAX_INLINED_SCHEMA, MAX_JSON_DEPTH, MAX_SCHEMA_MERGE_DEPTH } from '../../json/limits.ts';

const NO_REFS: ReadonlySet<string> = new Set();

/** A node without `$ref` and `allOf`. */
export interface Flat {
  /** The node. */
  schema: JsonObject;
  /** The references that were followed to get it. */
  active: ReadonlySet<string>;
}

/** Replaces references by their definitions, and merges the schemas of an `allOf`. */
export class Flattener {
  readonly #root: JsonSchema;
  readonly #allowsRefs: boolean;
  readonly #onLoss: (keyword: string) => void;
  readonly #sizes = new WeakMap<object, number>();
  #left = MAX_INLINED_SCHEMA;

  constructor(root: JsonSchema, keepsRefs: boolean, onLoss: (keyword: string) => void) {
    this.#root = root;
    this.#allowsRefs = keepsRefs;
    this.#onLoss = onLoss;
  }

  /**
   * Keeps a `$ref` if the dialect allows it and it is not `mustInline`. `active` are the references being followed,
   * which are not followed again.
   */
  flatten(schema: JsonObject, active: ReadonlySet<string> = NO_REFS, mustInline = false, depth = 0): Flat {
    const { allOf, ...rest } = schema;
    if (!Array.isArray(allOf)) return this.#follow(rest, active, mustInline, depth);
    const parts = allOf.filter(isObject);
    const [only] = parts;
    // Generators write a reference with a description as an `allOf` with one reference.
    if (!mustInline && parts.length === 1 && only && this.#canKeep(only, rest)) return { schema: { ...only, ...rest }, active };
    if (depth > MAX_SCHEMA_MERGE_DEPTH) {
      this.#onLoss('allOf');
      return { schema: rest, active };
    }
    const flat = this.#follow(rest, active, true, depth);
    const flats = [flat, ...parts.map((part) => this.flatten(part, active, true, depth + 1))];
    const schemas = flats.map(({ schema: one }) => one);
    return {
      schema: mergeSchemas(schemas, () => this.#onLoss('allOf')),
      active: new Set(flats.flatMap(({ active: followed }) => [...followed])),
    };
  }

  /** Whether the reference points to a definition, and has no alternatives beside it. */
  #canKeep({ $ref: ref }: JsonObject, rest: JsonObject): boolean {
    if (!this.#allowsRefs || typeof ref !== 'string' || !isDefinition(ref) || !isObject(resolveRef(ref, this.#root)))
      return false;
    return rest['anyOf'] === undefined && rest['oneOf'] === undefined;
  }

  #follow(schema: JsonObject, active: ReadonlySet<string>, mustInline: boolean, depth: number): Flat {
    const { $ref: ref, ...rest } = schema;
    if (typeof ref !== 'string') return { schema: rest, active };
    if (!mustInline && this.#canKeep(schema, rest)) return { schema, active };
    const target = resolveRef(ref, this.#root);
    if (!isObject(target) || active.has(ref) || depth > MAX_SCHEMA_MERGE_DEPTH || !this.#spend(target)) {
      this.#onLoss('$ref');
      return { schema: describeRef(ref, rest, isObject(target)), active };
    }
    const flat = this.flatten(target, new Set([...active, ref]), true, depth + 1);
    return { schema: mergeSchemas([rest, flat.schema], () => this.#onLoss('$ref')), active: flat.active };
  }

  #spend(target: JsonObject): boolean {
    this.#left -= this.#measure(target, 0);
    return this.#left >= 0;
  }

  /** The approximate length of the JSON. */
  #measure(value: unknown, depth: number): number {
    if (typeof value === 'string') return value.length + 2;
    if (typeof value !== 'object' || value === null || depth > MAX_JSON_DEPTH) return 4;
    const known = this.#sizes.get(value);
    if (known !== undefined) return known;
    let size = 2;
    for (const [key, item] of Object.entries(value)) size += key.length + 3 + this.#measure(item, depth + 1);
    this.#sizes.set(value, size);
    return size;
  }
}

/**
 * One schema that a value fits if it fits all. `onLoss` is called for keywords that cannot be merged; the first then
 * counts. A property of several schemas becomes an `allOf`, which is flattened later.
 */
function mergeSchemas(schemas: readonly JsonObject[], onLoss: () => void): JsonObject {
  const grouped = new Map<string, unknown[]>();
  for (const schema of schemas) for (const [key, value] of Object.entries(schema)) put(grouped, key, value);
  return Object.fromEntries([...grouped].map(([key, values]) => [key, mergeKeyword(key, values, onLoss)]));
}

/** Keywords without effect on validation: the first value is enough. */
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

/** Of several bounds, the narrowest counts. */
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

function mergeKeyword(key: string, values: readonly unknown[], onLoss: () => void): unknown {
  const [first] = values;
  if (values.length === 1 || ANNOTATIONS.has(key)) return first;
  if (key === 'properties' && values.every(isObject)) return mergeProperties(values);
  if (key === 'required' && values.every(Array.isArray)) return [...new Set(values.flat())];
  if (key === 'type' || key === 'enum') return intersect(key, values, onLoss);
  const narrower = Object.hasOwn(NARROWER, key) ? NARROWER[key] : undefined;
  if (narrower && values.every((value) => typeof value === 'number')) return values.reduce((a, b) => narrower(a, b));
  // `additionalProperties: true` is the default.
  const relevant = key === 'additionalProperties' ? values.filter((value) => value !== true) : values;
  if (relevant.some((value) => !sameJson(value, relevant[0]))) onLoss();
  return relevant.length > 0 ? relevant[0] : first;
}

function mergeProperties(all: readonly JsonObject[]): JsonObject {
  const grouped = new Map<string, unknown[]>();
  for (const properties of all) for (const [name, schema] of Object.entries(properties)) put(grouped, name, schema);
  return Object.fromEntries(
    [...grouped].map(([name, [first, ...others]]) => [
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

function intersect(key: string, values: readonly unknown[], onLoss: () => void): unknown {
  const [first, ...others] = values;
  let common = toList(first);
  for (const other of others) {
    const known = new Set(toList(other).map(writeJson));
    common = common.filter((value) => known.has(writeJson(value)));
  }
  if (common.length === 0) {
    onLoss();
    return first;
  }
  return key === 'type' && common.length === 1 ? common[0] : common;
}

const toList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [value]);

const isDefinition = (ref: string): boolean => /^#\/(\$defs|definitions)\/[^/]+$/.test(ref);

/** The target of a local reference; undefined if there is none, or if the reference is not local. */
export function resolveRef(ref: string, root: JsonSchema): unknown {
  if (ref === '#') return root;
  if (!ref.startsWith('#/')) return undefined;
  let node: unknown = root;
  for (const segment of ref.slice(2).split('/')) {
    if (typeof node !== 'object' || node === null) return undefined;
    node = Object.getOwnPropertyDescriptor(node, unescapeSegment(segment))?.value;
  }
  return node;
}

/** The replacement of a reference that is not followed: an object that names it. */
function describeRef(ref: string, rest: JsonObject, isKnown: boolean): JsonObject {
  const see = `see ${readRefName(ref).slice(0, 64)}`;
  const description = typeof rest['description'] === 'string' ? `${rest['description']} (${see})` : see;
  return { ...(isKnown && { type: 'object' }), ...rest, description };
}

/** The last segment of a reference, as its name in texts. */
export const readRefName = (ref: string): string => unescapeSegment(ref.slice(ref.lastIndexOf('/') + 1)) || ref;

/** Decodes a segment of a JSON pointer in a URL: `%24defs`, `~1` for a slash, `~0` for a tilde. */
function unescapeSegment(segment: string): string {
  let text = segment;
  try {
    text = decodeURIComponent(segment);
  } catch {
    // The segment is not percent-encoded.
  }
  return text.replaceAll('~1', '/').replaceAll('~0', '~');
}
