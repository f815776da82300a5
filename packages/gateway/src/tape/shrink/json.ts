import { shortest } from './shortest.ts';

type Shows = (value: unknown) => Promise<boolean>;
type Fields = Record<string, unknown>;

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Levels of a value that are shrunk. No protocol has more; deeper values stay as they are. */
export const MAX_SHRINK_DEPTH = 64;

type Entry = readonly [key: string, value: unknown];

/** A value with as little in it as it takes: fields and elements left out, texts and numbers made plain. */
export async function smallest(value: unknown, shows: Shows, depth = 0): Promise<unknown> {
  if (depth > MAX_SHRINK_DEPTH) return value;
  if (Array.isArray(value)) {
    const items = value.map((item): Entry => ['', item]);
    return smallestOf(items, (entries) => entries.map(([, item]) => item), shows, depth);
  }
  if (isFields(value)) return smallestOf(Object.entries(value), Object.fromEntries, shows, depth);
  if (typeof value === 'string') return plainest(value, shows);
  return typeof value === 'number' && value !== 0 && (await shows(0)) ? 0 : value;
}

async function smallestOf(
  all: readonly Entry[],
  join: (entries: readonly Entry[]) => unknown,
  shows: Shows,
  depth: number,
): Promise<unknown> {
  const kept = [...(await shortest(all, (shorter) => shows(join(shorter))))];
  for (const [at, [key, value]] of kept.entries()) {
    const smaller = await smallest(value, (tried) => shows(join(kept.with(at, [key, tried]))), depth + 1);
    kept[at] = [key, smaller];
  }
  return join(kept);
}

/** Words that tell nothing about anybody, of the same shape. */
export const filler = (text: string): string =>
  text
    .replace(/\p{L}/gu, 'x')
    .replace(/\p{N}/gu, '0')
    .replace(/[^\p{ASCII}]/gu, 'x');

/** The plain texts that may stand for another, the plainest first. */
export const plainFor = (text: string): string[] =>
  ['', 'x', '{}', filler(text)].filter((plain) => plain !== text && plain.length <= text.length);

/** Longer texts are cut in larger pieces: a try is not cheap. */
const MAX_PIECES = 512;

/** A text with as few letters as it takes, and those made plain where they may be. */
export async function plainest(text: string, shows: (text: string) => Promise<boolean>): Promise<string> {
  for (const plain of plainFor(text))
    if (text !== '' && (await shows(plain))) return plain.length > 8 ? cutDown(plain, shows) : plain;
  return isWord(text) ? text : cutDown(text, shows);
}

/** A word that must be this one, such as the type of an event, has no letters to spare; to find that out letter by letter takes many tries. */
const isWord = (text: string): boolean => /^[\w.-]{0,40}$/.test(text);

async function cutDown(text: string, shows: (text: string) => Promise<boolean>): Promise<string> {
  const characters = [...text];
  const size = Math.ceil(characters.length / MAX_PIECES);
  const pieces = Array.from({ length: Math.ceil(characters.length / Math.max(size, 1)) }, (_, at) =>
    characters.slice(at * size, (at + 1) * size).join(''),
  );
  const kept = (await shortest(pieces, (shorter) => shows(shorter.join('')))).join('');
  return size > 1 && kept.length < text.length ? cutDown(kept, shows) : kept;
}
