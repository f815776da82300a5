/** Describes a string by what it is made of, in the tokens of fixtures/corpus/README.md: kinds and lengths, never the text. */
import { scanJson } from './scan.js';

const encodeLiteral = (text) => `'${encodeURIComponent(text)}`;

/** Text without letters: numbers and punctuation are kept. */
export const isPlain = (text) => !/[A-Za-z\u007f-\uffff]/.test(text);

/** The tokens of a text. `cuts` are positions at which another string ends or begins: both sides keep their lengths. */
export function describeText(text, cuts, tags) {
  return splitAt(text, cuts).flatMap((piece) => splitTags(piece, tags).flatMap(describePiece));
}

function splitAt(text, cuts) {
  const places = [0, ...[...cuts].filter((cut) => cut > 0 && cut < text.length).sort((a, b) => a - b), text.length];
  return places.slice(1).map((end, at) => text.slice(places[at], end));
}

function splitTags(text, tags) {
  if (tags.length === 0) return [{ text }];
  const pattern = new RegExp(`(${tags.map((tag) => tag.replace(/[^\w]/g, '\\$&')).join('|')})`);
  return text.split(pattern).map((piece, at) => ({ text: piece, isTag: at % 2 === 1 }));
}

/** White space at both ends is kept, because readers trim it. */
function describePiece({ text, isTag }) {
  if (text === '') return [];
  if (isTag || isPlain(text)) return [encodeLiteral(text)];
  const [, start, middle, end] = /^(\s*)(.*?)(\s*)$/s.exec(text);
  const atoms = middle.split(/([\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff])/);
  const tokens = atoms.flatMap((atom, at) => (at % 2 === 1 ? [atom < '\udc00' ? '^' : 'v'] : describeAtom(atom)));
  const isSpaced = start === ' ' && /^t/.test(tokens[0]);
  if (isSpaced) tokens[0] = tokens[0].replace(/^t(\d+)/, (_, size) => `_t${Number(size) + 1}`);
  return [...(start === '' || isSpaced ? [] : [encodeLiteral(start)]), ...tokens, ...(end === '' ? [] : [encodeLiteral(end)])];
}

/** What a text holds beside letters, by the names of render.js. */
const SPECIALS = {
  n: /\n/g,
  r: /\r/g,
  q: /"/g,
  k: /\\/g,
  s: /\//g,
  h: /[<>&]/g,
  x: /[\u0080-\u07ff]/g,
  y: /[\u0800-\ud7ff\ue000-\uffff]/g,
  z: /[\ud800-\udbff][\udc00-\udfff]/g,
};

function describeAtom(text) {
  if (text === '') return [];
  const specials = Object.entries(SPECIALS).map(([name, pattern]) => ({ name, count: text.match(pattern)?.length ?? 0 }));
  return [`t${text.length}${specials.flatMap(({ name, count }) => (count > 0 ? [`${name}${count}`] : [])).join('')}`];
}

/** An identifier: known words and separators stay, runs of characters are replaced by runs of their kind. */
export function describeId(text, { words, findName }) {
  if (!/^[\x21-\x7e]+$/.test(text)) return describeText(text, [], []);
  return text.split(/([A-Za-z0-9]+)/).flatMap((run, at) => {
    if (run === '') return [];
    if (at % 2 === 0 || words.has(run) || run.length <= 2 || /^\d{1,6}$/.test(run)) return [encodeLiteral(run)];
    return findName?.(run) ?? [`${kindOfRun(run)}${run.length}`];
  });
}

function kindOfRun(run) {
  if (/^\d+$/.test(run)) return 'd';
  if (/^[0-9a-f]+$/.test(run)) return 'h';
  if (/^[0-9A-F]+$/.test(run)) return 'H';
  return /^[0-9a-z]+$/.test(run) ? 'a' : 'A';
}

/** The name of a tool or a property: words of the same length and case. */
export function describeName(text) {
  return text.split(/([A-Z]?[a-z]+|[A-Z]+)/).flatMap((run, at) => {
    if (run === '') return [];
    if (at % 2 === 0) return isPlain(run) ? [encodeLiteral(run)] : describeText(run, [], []);
    const kind = /^[a-z]/.test(run) ? 'w' : /[a-z]/.test(run) ? 'W' : 'U';
    return [`${kind}${run.length}`];
  });
}

/** JSON as text. Escapes stay, so that every length does. Keys are names. */
export function describeJson(text, cuts, referName) {
  let at = 0;
  return scanJson(text).flatMap((piece) => {
    const from = at;
    at += piece.raw.length;
    if (piece.kind === 'number') return [encodeLiteral(piece.raw)];
    if (piece.kind === 'text') return describeLoose(piece.raw, from, cuts);
    if (piece.isKey && /^[\w$.-]+$/.test(piece.raw)) return [referName(piece.raw)];
    return describeRaw(piece.raw, from, cuts);
  });
}

const JSON_WORDS = /(\b(?:true|false|null)\b)/;

/** What is between the strings of JSON: in broken JSON, anything. */
const describeLoose = (text, from, cuts) => describeParts(text.split(JSON_WORDS), from, cuts);

/** The inside of a JSON string. */
const describeRaw = (text, from, cuts) => describeParts(text.split(/(\\u[0-9a-fA-F]{4}|\\.)/s), from, cuts);

function describeParts(parts, start, cuts) {
  let at = start;
  return parts.flatMap((part, index) => {
    const from = at;
    at += part.length;
    if (part === '') return [];
    if (index % 2 === 1) return [encodeLiteral(/^\\u/.test(part) ? '\\u00e9' : part)];
    const own = cuts.map((cut) => cut - from).filter((cut) => cut > 0 && cut < part.length);
    return describeText(part, own, []);
  });
}
