import { countKeys, isSet, present } from '../json/fast.ts';
import { isObject, type JsonObject, setOwn } from '../json/json.ts';
import type { WireChunk } from './chat-delta.ts';
import { overlay } from './overlay.ts';

/**
 * Keeps the fields of a repeated object that nobody knows; the last non-null value wins. A stream repeats one layout of keys, so the keys
 * are compared with those of the object before, and only a new layout is looked at closely.
 */
export class UnknownFields {
  readonly #known: ReadonlySet<string>;
  #layout: string[] = [];
  /** For each key of the layout, whether nobody knows it. */
  #unknown: boolean[] = [];
  readonly kept: JsonObject;

  constructor(known: ReadonlySet<string>, kept: JsonObject = {}) {
    this.#known = known;
    this.kept = kept;
  }

  look(source: object): void {
    if (this.#read(source)) return;
    this.#layout = Object.keys(source);
    this.#unknown = this.#layout.map((key) => !this.#known.has(key));
    this.#read(source);
  }

  /** False when a key is not the one at its place in the layout. One loop for comparing and reading: V8 loads `source[key]` of a `for in` almost for free. */
  #read(source: JsonObject | object): boolean {
    const layout = this.#layout;
    const unknown = this.#unknown;
    let at = 0;
    for (const key in source) {
      if (key !== layout[at]) return false;
      if (unknown[at++]) this.#keep(key, (source as JsonObject)[key]); // any object that JSON.parse makes
    }
    return true;
  }

  #keep(key: string, value: unknown): void {
    if (value !== null && value !== this.kept[key]) overlay(this.kept, { [key]: value });
  }
}

/** Adds copies of what was kept to an object of known fields. A spread there creates a new hidden class per call: 6 µs. */
export function addCopies<T extends JsonObject>(target: T, kept: JsonObject): T {
  for (const key in kept) setOwn(target, key, copyOf(kept[key]));
  return target;
}

/** A value that later fields do not change. */
const copyOf = (value: unknown): unknown => (Array.isArray(value) ? [...value] : isObject(value) ? overlay({}, value) : value);

const KNOWN: ReadonlySet<string> = new Set([
  'id',
  'object',
  'created',
  'model',
  'choices',
  'usage',
  'obfuscation', // OpenAI's padding of each chunk
]);

/**
 * The fields of chat chunks that have no meaning of their own; the last non-null value wins. Chunks of OpenAI have a fixed set of fields:
 * counting the keys and reading two of them by name makes accumulating 1000 chunks of text 7 % faster (25.2 instead of 26.9 us).
 */
export class ChunkFields {
  readonly #others: UnknownFields;

  constructor(kept?: JsonObject) {
    this.#others = new UnknownFields(KNOWN, kept);
  }

  get kept(): JsonObject {
    return this.#others.kept;
  }

  look(chunk: WireChunk): void {
    const { id, object, created, model, choices, usage, service_tier: tier, system_fingerprint: fingerprint } = chunk;
    const meant = present(id) + present(object) + present(created) + present(model) + present(choices) + present(usage);
    if (countKeys(chunk) !== meant + present(tier) + present(fingerprint)) {
      this.#others.look(chunk);
      return;
    }
    if (isSet(tier)) this.kept['service_tier'] = tier;
    if (isSet(fingerprint)) this.kept['system_fingerprint'] = fingerprint;
  }
}
