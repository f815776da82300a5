/** Reads foreign configurations: every value by its path, and a note for everything that was not read. */

/** What happened to a setting of the source. */
export interface ImportNote {
  /** Where it is in the source, such as `model_list[0].litellm_params.rpm`. */
  readonly path: string;
  /** `dropped`: not carried over; `changed`: carried over with another meaning; `secret`: a key that must be supplied. */
  readonly kind: 'dropped' | 'changed' | 'secret';
  readonly message: string;
}

/** A problem that makes the whole source unusable. */
export class ImportError extends Error {}

/** Reasons for settings that are not carried over, by their names. */
export type Reasons = Readonly<Record<string, string>>;

/** A map of the source. Remembers what was read, so that `finish` can report the rest. */
export class Section {
  readonly path: string;
  readonly notes: ImportNote[];
  readonly #values: ReadonlyMap<string, unknown>;
  readonly #read = new Set<string>();
  readonly #sections = new Map<string, Section>();

  constructor(value: unknown, path: string, notes: ImportNote[]) {
    this.path = path;
    this.notes = notes;
    this.#values = new Map(isMap(value) ? Object.entries(value) : []);
  }

  get keys(): string[] {
    return [...this.#values.keys()];
  }

  /** The path of a key. */
  at(key: string): string {
    return this.path === '' ? key : `${this.path}.${key}`;
  }

  has(key: string): boolean {
    return (this.#values.get(key) ?? undefined) !== undefined;
  }

  note(key: string, kind: ImportNote['kind'], message: string): void {
    this.#read.add(key);
    this.notes.push({ path: key === '' ? this.path : this.at(key), kind, message });
  }

  /** A text that is not empty; an empty one is like an absent one. */
  text(key: string): string | undefined {
    const text = this.#get(key, 'text', (value) => (typeof value === 'string' ? value.trim() : undefined));
    return text === '' ? undefined : text;
  }

  /** The text of the first of these names that has one. */
  firstText(keys: readonly string[]): { key: string; text: string } | undefined {
    for (const key of keys) {
      const text = this.text(key);
      if (text !== undefined) return { key, text };
    }
    return undefined;
  }

  /** A finite number, also written as text, and as in YAML 1.1: 20_000. */
  number(key: string): number | undefined {
    return this.#get(key, 'a number', (value) => {
      const number = typeof value === 'string' && value.trim() !== '' ? Number(value.replaceAll(/(?<=\d)_(?=\d)/g, '')) : value;
      return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
    });
  }

  flag(key: string): boolean | undefined {
    return this.#get(key, 'true or false', (value) => (typeof value === 'boolean' ? value : undefined));
  }

  /** A map, the same one each time; undefined when it is absent. */
  section(key: string): Section | undefined {
    const known = this.#sections.get(key);
    if (known) return known;
    const made = this.#get(key, 'a map', (value) => (isMap(value) ? new Section(value, this.at(key), this.notes) : undefined));
    if (made) this.#sections.set(key, made);
    return made;
  }

  /** Whether a value is a text. */
  isText(key: string): boolean {
    return typeof this.#values.get(key) === 'string';
  }

  /** The maps of a list. Entries of another kind are reported. */
  sections(key: string): Section[] {
    return this.list(key).flatMap((value, i) => {
      const path = `${this.at(key)}[${i}]`;
      if (isMap(value)) return [new Section(value, path, this.notes)];
      this.notes.push({ path, kind: 'dropped', message: 'must be a map' });
      return [];
    });
  }

  list(key: string): readonly unknown[] {
    return this.#get(key, 'a list', (value) => (Array.isArray(value) ? (value as readonly unknown[]) : undefined)) ?? [];
  }

  /** The texts of a list; a text alone is a list of one. Entries of another kind are reported. */
  texts(key: string): string[] {
    if (this.isText(key)) return [this.text(key) ?? []].flat();
    return this.list(key).flatMap((value, i) => {
      if (typeof value === 'string') return [value];
      this.notes.push({ path: `${this.at(key)}[${i}]`, kind: 'dropped', message: 'must be text' });
      return [];
    });
  }

  /** Reports every key that was not read. */
  finish(reasons: Reasons = {}, otherwise = 'Sluice has no such setting'): void {
    for (const [key, value] of this.#values)
      if (!this.#read.has(key) && value !== null)
        this.note(key, 'dropped', Object.hasOwn(reasons, key) ? (reasons[key] ?? otherwise) : otherwise);
  }

  #get<T>(key: string, kind: string, read: (value: unknown) => T | undefined): T | undefined {
    this.#read.add(key);
    const value = this.#values.get(key) ?? undefined;
    if (value === undefined) return undefined;
    const result = read(value);
    if (result === undefined) this.notes.push({ path: this.at(key), kind: 'dropped', message: `must be ${kind}` });
    return result;
  }
}

/** Whether a value is a map. */
export const isMap = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
