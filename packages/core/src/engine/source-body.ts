import type { Codec } from '../protocols/shared/codec.ts';

/** What stands at a pointer, and the pointer as the source spells it. */
export interface Found {
  pointer: string;
  value: unknown;
}

/** The body of a request, in which notes point at things. Input of strangers: names are looked up as own properties only. */
export class SourceBody {
  readonly #body: unknown;
  readonly #nameOf: Codec['nameOf'];
  readonly #spellings = new Map<object, ReadonlyMap<string, string>>();

  constructor(body: unknown, { nameOf }: Pick<Codec, 'nameOf'>) {
    this.#body = body;
    this.#nameOf = nameOf;
  }

  /** A field of the body itself. */
  field(name: string): Found | undefined {
    const body = this.#body;
    const spelled = typeof body === 'object' && body !== null ? this.#spelled(body, name) : undefined;
    if (spelled === undefined) return undefined;
    return { pointer: `/${escaped(spelled)}`, value: Object.getOwnPropertyDescriptor(body, spelled)?.value };
  }

  find(pointer: string): Found | undefined {
    const found: Found = { pointer: '', value: this.#body };
    for (const segment of pointer.split('/').slice(1)) {
      const { value } = found;
      if (typeof value !== 'object' || value === null) return undefined;
      const name = this.#spelled(value, unescaped(segment));
      if (name === undefined) return undefined;
      found.pointer += `/${escaped(name)}`;
      found.value = Object.getOwnPropertyDescriptor(value, name)?.value;
    }
    return found;
  }

  /** The pointer in the words of the source; as it is, when nothing stands there. */
  spell(pointer: string): string {
    return this.#nameOf ? (this.find(pointer)?.pointer ?? pointer) : pointer;
  }

  #spelled(node: object, name: string): string | undefined {
    if (Object.hasOwn(node, name)) return name;
    return this.#nameOf && this.#spellingsOf(node, this.#nameOf).get(name);
  }

  /** The first key for each name. Kept for each node: looking through all keys for each unknown one is quadratic. */
  #spellingsOf(node: object, nameOf: (field: string) => string): ReadonlyMap<string, string> {
    const known = this.#spellings.get(node);
    if (known) return known;
    const spellings = new Map<string, string>();
    for (const key of Object.keys(node)) {
      const name = nameOf(key);
      if (!spellings.has(name)) spellings.set(name, key);
    }
    this.#spellings.set(node, spellings);
    return spellings;
  }
}

/** A field as a segment of a JSON pointer. */
export const escaped = (field: string): string => field.replaceAll('~', '~0').replaceAll('/', '~1');
const unescaped = (segment: string): string => segment.replaceAll('~1', '/').replaceAll('~0', '~');
