import { type Document, visit } from 'yaml';
import { oneLine } from '../cli/escape.ts';
import { buildPath, type Range } from './nodes.ts';
import type { Path } from './problem.ts';
import { isReference } from './references.ts';
import { redactPatterns } from './secret.ts';

/** The most of a line that is shown. */
const WIDTH = 120;

/**
 * The line of an error with a caret below it. A secret may stand anywhere in a file that is wrong, so only what is known to be harmless is
 * shown: keys, punctuation, and values where no secret belongs. Everything else is `***`.
 */
export function buildExcerpt(text: string, [start, end]: Range, line: number, scalars: readonly Shown[]): string {
  const lineStart = text.lastIndexOf('\n', start - 1) + 1;
  const newline = text.indexOf('\n', start);
  const lineEnd = newline < 0 ? text.length : newline;
  const shown = scalars.filter(([from, to]) => from < lineEnd && to > lineStart);
  const before = masked(text, lineStart, start, shown);
  const marked = masked(text, start, Math.min(Math.max(end, start + 1), lineEnd), shown);
  const after = masked(text, Math.max(start, Math.min(end, lineEnd)), lineEnd, shown);
  const gutter = String(line);
  const lead = before.length > WIDTH / 2 ? `…${before.slice(1 - WIDTH / 2)}` : before;
  const body = `${lead}${marked}${after}`
    .replace(/(?:\*{3}){2,}/g, MASK)
    .slice(0, WIDTH)
    .trimEnd();
  const carets = '^'.repeat(Math.max(1, Math.min(marked.trimEnd().length, WIDTH - lead.length)));
  return `  ${gutter} | ${body}\n  ${' '.repeat(gutter.length)} | ${' '.repeat(lead.length)}${carets}`;
}

/** A piece of a line, fit to be shown. */
function masked(text: string, start: number, end: number, shown: readonly Shown[]): string {
  let out = '';
  for (let at = start; at < end; at++) {
    const range = shown.find(([from, to]) => from <= at && at < to);
    const char = text.charAt(at);
    if (range ? range[2] : PUNCTUATION.test(char)) out += char;
    else if (!out.endsWith(MASK)) out += MASK;
  }
  return redactPatterns(oneLine(out.replaceAll('\t', ' ').replaceAll('\r', '')));
}

const MASK = '***';
const PUNCTUATION = /[\s:,[\]{}"'#|>?-]/;

export type Shown = readonly [start: number, end: number, isHarmless: boolean];

/** The scalars of a file, and whether they may be shown. */
export function shownRanges(text: string, document: Document.Parsed): Shown[] {
  const ranges: Shown[] = [];
  visit(document, {
    Scalar: (at, scalar, ancestors) => {
      if (!scalar.range) return;
      const [start, end] = scalar.range;
      const path = buildPath(at, scalar, ancestors);
      const source = text.slice(start, end);
      ranges.push([start, end, at === 'key' ? isPlainKey(source, path) : isPlainValue(source, path)]);
    },
  });
  return ranges;
}

/** Maps in which a key is a word of ours, or a name. A map anywhere else is a mistake, and its keys may be anything. */
const MAPS = /^(|listen|auth|log|limits|providers|providers\/[^/]+(\/(headers|profile(\/tool_(name|id))?))?)$/;
const WORD = /^["']?[a-z_$-]{1,40}["']?$/i;

function isPlainKey(source: string, path: Path): boolean {
  const map = place(path);
  if (map === 'models') return true;
  if (map === 'providers') return source.length <= 40;
  return MAPS.test(map) && WORD.test(source);
}

/** Where no secret belongs. Not `organization`, `project`, `headers`, `auth.keys`; nor anything unknown. */
const PLAIN =
  /^(\$schema|listen\/(host|port)|log\/level|models\/.*|providers\/[^/]+\/(extends|protocol|base_url|auth|api_version|path|repair|on_disconnect|passthrough|profile\/.*))$/;
/** Numbers with a unit are short. */
const SHORT = /^(limits\/.*|providers\/[^/]+\/\w+_timeout)$/;

function isPlainValue(source: string, path: Path): boolean {
  const at = place(path);
  if (PLAIN.test(at) || (SHORT.test(at) && source.length <= 10)) return true;
  return isReference(source) || /^(true|false|null|~|)$/.test(source);
}

const place = (path: Path): string => path.map((step) => String(step).replaceAll('/', '%')).join('/');
