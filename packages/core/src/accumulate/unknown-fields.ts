import { isObject, type JsonObject, overlay, setOwn } from './overlay.ts';

/** A value that later fields do not change. */
const copyOf = (value: unknown): unknown => (Array.isArray(value) ? [...value] : isObject(value) ? overlay({}, value) : value);

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

  get isEmpty(): boolean {
    for (const _ in this.kept) return false;
    return true;
  }

  look(source: object): void {
    if (!this.#read(source)) this.#learn(source);
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

  #learn(source: object): void {
    this.#layout = Object.keys(source);
    this.#unknown = this.#layout.map((key) => !this.#known.has(key));
    for (const [key, value] of Object.entries(source)) if (!this.#known.has(key)) this.#keep(key, value);
  }

  /** Adds what was kept to an object of known fields. A spread would do; behind or before other fields it costs V8 a new map each time (6 µs). */
  addTo<T extends JsonObject>(target: T): T {
    for (const key in this.kept) setOwn(target, key, copyOf(this.kept[key]));
    return target;
  }

  #keep(key: string, value: unknown): void {
    if (value !== null && value !== this.kept[key]) overlay(this.kept, { [key]: value });
  }
}
