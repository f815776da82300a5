import { countKeys, isSet, present } from '../json/fast.ts';
import { isObject, type JsonObject, setOwn } from '../json/json.ts';
import type { WireChunk } from './chat-delta.ts';
import { overlay } from './overlay.ts';

/**
 * Collects the unknown fields of a repeated object; the last non-null value wins. A stream repeats one sequence of
 * keys, so keys are compared with those of the object before, and only a new sequence is looked up.
 */
export class UnknownFields {
  readonly #known: ReadonlySet<string>;
  #layout: string[] = [];
  /** For each key of the layout, whether it is unknown. */
  #unknown: boolean[] = [];
  /** The unknown fields so far. */
  readonly kept: JsonObject;

  constructor(known: ReadonlySet<string>, initial: JsonObject = {}) {
    this.#known = known;
    this.kept = initial;
  }

  /** Collects the unknown fields of the next object. */
  look(source: object): void {
    if (this.#read(source)) return;
    this.#layout = Object.keys(source);
    this.#unknown = this.#layout.map((key) => !this.#known.has(key));
    this.#read(source);
  }

  /**
   * False when a key differs from the layout. Compares and reads in one `for in` loop, where `source[key]` is nearly
   * free.
   */
  #read(source: JsonObject | object): boolean {
    const layout = this.#layout;
    const unknown = this.#unknown;
    let at = 0;
    for (const key in source) {
      if (key !== layout[at]) return false;
      if (unknown[at++]) this.#store(key, (source as JsonObject)[key]); // an object of JSON.parse
    }
    return true;
  }

  #store(key: string, value: unknown): void {
    if (value !== null && value !== this.kept[key]) overlay(this.kept, { [key]: value });
  }
}

/**
 * Collects the fields of chat chunks that are passed through; the last non-null value wins. Chunks of OpenAI have a
 * fixed set of fields: counting the keys and reading two of them by name makes accumulating 1000 chunks of text 7 %
 * faster (25.2 instead of 26.9 us).
 */
export class ChunkFields {
  readonly #others: UnknownFields;

  constructor(initial?: JsonObject) {
    this.#others = new UnknownFields(KNOWN, initial);
  }

  /** The collected fields. */
  get kept(): JsonObject {
    return this.#others.kept;
  }

  /** Collects the fields of the next chunk. */
  look(chunk: WireChunk): void {
    const { id, object, created, model, choices, usage, service_tier: tier, system_fingerprint: fingerprint } = chunk;
    const known = present(id) + present(object) + present(created) + present(model) + present(choices) + present(usage);
    if (countKeys(chunk) !== known + present(tier) + present(fingerprint)) {
      this.#others.look(chunk);
      return;
    }
    if (isSet(tier)) this.kept['service_tier'] = tier;
    if (isSet(fingerprint)) this.kept['system_fingerprint'] = fingerprint;
  }
}

const KNOWN: ReadonlySet<string> = new Set([
  'id',
  'object',
  'created',
  'model',
  'choices',
  'usage',
  'obfuscation', // OpenAI's padding of each chunk
]);

/** Adds copies of unknown fields to an object of known ones. A spread creates a new hidden class per call: 6 µs. */
export function addCopies<T extends JsonObject>(target: T, fields: JsonObject): T {
  for (const key in fields) setOwn(target, key, copyValue(fields[key]));
  return target;
}

/** A value that later fields do not change. */
const copyValue = (value: unknown): unknown => (Array.isArray(value) ? [...value] : isObject(value) ? overlay({}, value) : value);
