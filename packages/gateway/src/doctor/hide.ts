import { listForms } from '../config/secret.ts';

/** Puts stars in the place of a key that the other side repeats, in whatever form. */
export class KeyHider {
  readonly #pattern: RegExp | undefined;

  constructor(key: string | undefined) {
    if (key === undefined || key === '') return;
    // The body is searched byte by byte, as Latin-1.
    const forms = [key, Buffer.from(key).toString('latin1')].flatMap((text) => [
      spelledIn(text),
      ...listForms(text).map(literal),
    ]);
    // The longest first, or a form that begins another would leave its tail.
    const alternatives = [...new Set(forms)].toSorted((a, b) => b.length - a.length);
    this.#pattern = new RegExp(alternatives.join('|'), 'g');
  }

  /** Star by star: places in the body stay what they are. */
  bytes(chunks: readonly Uint8Array[]): Uint8Array[] {
    if (!this.#pattern) return [...chunks];
    const body = Buffer.concat(chunks).toString('latin1');
    return [Buffer.from(this.text(body), 'latin1')];
  }

  text(text: string): string {
    return this.#pattern ? text.replace(this.#pattern, (found) => '*'.repeat(found.length)) : text;
  }

  /** Every text in a value: what was escaped in the body is not any more once it is parsed. */
  value<T>(value: T): T {
    return this.#pattern ? (this.#walk(value) as T) : value; // the same shape, with other texts
  }

  #walk(value: unknown): unknown {
    if (typeof value === 'string') return this.text(value);
    if (Array.isArray(value)) return value.map((one) => this.#walk(one));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [this.text(name), this.#walk(one)]));
  }
}

const literal = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');

/** A text of which each character may be written as it is, with a backslash, as \uXXXX or as %XX. */
const spelledIn = (text: string): string =>
  Array.from({ length: text.length }, (_, at) => {
    const code = text.charCodeAt(at);
    const unicode = `\\\\u${anyCase(code.toString(16).padStart(4, '0'))}`;
    const percent = code < 256 ? `|%${anyCase(code.toString(16).padStart(2, '0'))}` : '';
    return `(?:\\\\?${literal(text.charAt(at))}|${unicode}${percent})`;
  }).join('');

const anyCase = (hex: string): string => hex.replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`);
