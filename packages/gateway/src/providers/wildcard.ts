/** Names with at most one `*`, as settings and keys have them: `gpt-*`, `openai/*`. */

/** A name that may have one `*`: what is before it, and what is after it. */
export interface WildcardName {
  readonly prefix: string;
  /** Undefined without a `*`. */
  readonly suffix: string | undefined;
}

/** Splits a name at its `*`. */
export function splitPattern(name: string): WildcardName {
  const [prefix = '', suffix] = name.split('*');
  return { prefix, suffix };
}

/** Whether a name is the pattern's, or one that it stands for. */
export const matches = ({ prefix, suffix }: WildcardName, name: string): boolean =>
  suffix === undefined
    ? name === prefix
    : name.length >= prefix.length + suffix.length && name.startsWith(prefix) && name.endsWith(suffix);

/** Whether a name matches one of these patterns. */
export const matchesAny = (patterns: readonly string[], name: string): boolean =>
  patterns.some((pattern) => matches(splitPattern(pattern), name));

/** Names without a `*` first, then by the longer literal part; for equal lengths, the longer prefix first. */
export const compareLiterals = (a: WildcardName, b: WildcardName): number =>
  Number(b.suffix === undefined) - Number(a.suffix === undefined) ||
  countLiterals(b) - countLiterals(a) ||
  b.prefix.length - a.prefix.length;

const countLiterals = ({ prefix, suffix = '' }: WildcardName): number => prefix.length + suffix.length;
