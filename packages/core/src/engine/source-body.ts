import type { ProtocolCodec } from '../protocols/shared/codec.ts';

/** What stands at a pointer, and the pointer as the source spells it. */
export interface Found {
  pointer: string;
  value: unknown;
}

/** The body of a request, in which notes point at things. Input of strangers: names are looked up as own properties only. */
export class SourceBody {
  readonly #body: unknown;
  readonly #nameOf: ProtocolCodec['nameOf'];

  constructor(body: unknown, { nameOf }: Pick<ProtocolCodec, 'nameOf'>) {
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
    const nameOf = this.#nameOf;
    return nameOf && Object.keys(node).find((key) => nameOf(key) === name);
  }
}

/** A field as a segment of a JSON pointer. */
export const escaped = (field: string): string => field.replaceAll('~', '~0').replaceAll('/', '~1');
const unescaped = (segment: string): string => segment.replaceAll('~1', '/').replaceAll('~0', '~');
