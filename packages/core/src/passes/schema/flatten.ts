import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { JsonSchema } from '../../canonical/protocol.ts';
import { MAX_INLINED_SCHEMA, MAX_JSON_DEPTH, MAX_SCHEMA_MERGE_DEPTH } from '../../json/limits.ts';
import { mergeSchemas } from './merge.ts';
import { nameOfRef, resolveRef } from './refs.ts';

/** A node without `$ref` and `allOf`, and the references that were followed to get it. */
export interface Flat {
  schema: JsonObject;
  active: ReadonlySet<string>;
}

const NONE: ReadonlySet<string> = new Set();

const isDefinition = (ref: string): boolean => /^#\/(\$defs|definitions)\/[^/]+$/.test(ref);

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

/** Where following ends: an object of which only the name is known. */
function cut(ref: string, rest: JsonObject, isKnown: boolean): JsonObject {
  const see = `see ${nameOfRef(ref).slice(0, 64)}`;
  const description = typeof rest['description'] === 'string' ? `${rest['description']} (${see})` : see;
  return { ...(isKnown && { type: 'object' }), ...rest, description };
}
