/** Lines of a configuration file for messages: names and punctuation as they are, and values masked unless they cannot be secret. */

import { oneLine } from '@sluice/lab/text';
import { type Document, type Scalar, visit } from 'yaml';
import type { Path } from './problems.ts';
import { findMapKind, isSettingName, isSettingValue } from './schema-shape.ts';
import { MASK, redactPatterns } from './secret-patterns.ts';
import { isReference } from './secrets.ts';
import { buildPath, joinPath } from './yaml-nodes.ts';

/** Start and end offset in the file. */
export type Range = readonly [start: number, end: number];

/**
 * The line of a problem with a caret below it. A broken file may have a secret anywhere, so only names, punctuation, references and
 * values that cannot be secret are shown; the rest is masked.
 */
export function buildExcerpt(text: string, [start, end]: Range, line: number, scalars: readonly Shown[]): string {
  const newline = text.indexOf('\n', start);
  // Far more than is shown: masks make the text shorter.
  const lineStart = Math.max(text.lastIndexOf('\n', start - 1) + 1, start - MAX_READ_WIDTH);
  const lineEnd = Math.min(newline < 0 ? text.length : newline, start + MAX_READ_WIDTH);
  const shown = scalars.filter(([from, to]) => from < lineEnd && to > lineStart);
  const before = mask(text, lineStart, start, shown);
  const marked = mask(text, start, Math.min(Math.max(end, start + 1), lineEnd), shown);
  const after = mask(text, Math.max(start, Math.min(end, lineEnd)), lineEnd, shown);
  const gutter = String(line);
  const lead = before.length > MAX_EXCERPT_WIDTH / 2 ? `…${before.slice(1 - MAX_EXCERPT_WIDTH / 2)}` : before;
  const body = `${lead}${marked}${after}`
    .replace(/(?:\*{3}){2,}/g, MASK)
    .slice(0, MAX_EXCERPT_WIDTH)
    .trimEnd();
  const carets = '^'.repeat(Math.max(1, Math.min(marked.trimEnd().length, MAX_EXCERPT_WIDTH - lead.length)));
  return `  ${gutter} | ${body}\n  ${' '.repeat(gutter.length)} | ${' '.repeat(lead.length)}${carets}`;
}

/** Longest excerpt of a line. */
const MAX_EXCERPT_WIDTH = 120;

/** Characters on each side of a problem that an excerpt is made of. */
const MAX_READ_WIDTH = 1000;

/** A part of a line with everything masked that may be secret. */
function mask(text: string, start: number, end: number, shown: readonly Shown[]): string {
  let out = '';
  for (let at = start; at < end; at++) {
    const range = shown.findLast(([from, to]) => from <= at && at < to);
    const char = text.charAt(at);
    if (range ? range[2] : PUNCTUATION.test(char)) out += char;
    else if (!out.endsWith(MASK)) out += MASK;
  }
  return redactPatterns(oneLine(out.replaceAll('\t', ' ').replaceAll('\r', '')));
}

const PUNCTUATION = /[\s:,[\]{}"'#|>?-]/;

/** A range of the file, and whether it may be shown. Later ones are parts of earlier ones. */
export type Shown = readonly [start: number, end: number, isHarmless: boolean];

/** All scalars of a file, and the references in those that are masked. */
export function listShownRanges(text: string, document: Document.Parsed): Shown[] {
  const ranges: Shown[] = [];
  const isBroken = document.errors.length > 0;
  visit(document, {
    Scalar: (at, scalar, ancestors) => {
      if (!scalar.range) return;
      const [start, end] = scalar.range;
      const path = buildPath(at, scalar, ancestors);
      const source = text.slice(start, end);
      const isShown =
        at === 'key'
          ? isPlainKey({ scalar, source, path, isBroken, hasValue: VALUE_FOLLOWS.test(text.slice(end, end + MAX_GAP)) })
          : isPlainValue(source, path, isBroken);
      ranges.push([start, end, isShown]);
      if (!isShown) ranges.push(...listReferences(source, start));
    },
  });
  return ranges;
}

/** References reveal nothing, wherever they are in a text. */
const listReferences = (source: string, start: number): Shown[] =>
  [...source.matchAll(/\$\{[A-Za-z_]\w{0,99}\}/g)].map(({ index, 0: found }) => [
    start + index,
    start + index + found.length,
    true,
  ]);

/** A colon after a key. In `{ secret }` and `? secret`, the key is a value that was meant to be something else. */
const VALUE_FOLLOWS = /^\s*:/;

const MAX_GAP = 20;

interface Key {
  readonly scalar: Scalar;
  readonly source: string;
  /** Of the map that has it. */
  readonly path: Path;
  /** The file has syntax errors, so that any text may be taken for a key. */
  readonly isBroken: boolean;
  readonly hasValue: boolean;
}

/** Whether a text is certainly the name of something. */
function isPlainKey({ scalar, source, path, isBroken, hasValue }: Key): boolean {
  const name = unquote(source);
  const section = path.length === 1 ? path[0] : undefined;
  if (section === 'models') return true;
  // An escape may hide anything.
  if (name !== scalar.value) return false;
  if (isSettingName(name) || name === '<<') return true;
  if (!hasValue || name.length > MAX_NAME_LENGTH) return false;
  if (section === 'providers') return !isBroken || PROVIDER_ID.test(name);
  if (isBroken || (path.at(-1) === 'headers' && !HEADER_NAME.test(name))) return false;
  const kind = findMapKind(path);
  return kind === 'names' || (kind === 'settings' && WORD.test(name));
}

const unquote = (source: string): string => /^(["'])([^"'\\]*)\1$/.exec(source)?.[2] ?? source;

/** Longer texts are no names. */
const MAX_NAME_LENGTH = 40;

/** In a broken file, anything else may be the rest of a text. */
const PROVIDER_ID = /^[\w.-]+$/;

/** A name that is none is often "name: value" in quotes, and the value a secret. */
export const HEADER_NAME = /^[\w-]+$/;

/** An unknown setting is most likely a misspelt one. */
const WORD = /^[a-z_$-]+$/i;

function isPlainValue(source: string, path: Path, isBroken: boolean): boolean {
  const value = unquote(source);
  if (isReference(value) || /^(true|false|null|~|)$/.test(source)) return true;
  const at = joinPath(path);
  // The error that forbids a query or a user in an address must not show them.
  if (at.endsWith('/base_url') && !/^https?:\/\/[\w.[\]:-]+(?:\/[\w.~/:-]*)?$/.test(value)) return false;
  const isSafe = SAFE_TO_SHOW.test(at) || (SAFE_WHEN_SHORT.test(at) && source.length <= 10);
  // In a broken file, the value of one setting may be the rest of the file.
  return isSafe && (!isBroken || isSettingValue(value) || /^\d{1,5}$/.test(value));
}

/** Values that cannot be secret. Excludes `organization`, `project`, `headers`, `auth.keys` and unknown ones. */
const SAFE_TO_SHOW =
  /^(\$schema|listen\/(host|port|tls\/(cert|key))|trusted_proxies\/.*|log\/level|models\/.*|providers\/[^/]+\/(extends|protocol|base_url|auth|api_version|path|ca|repair|on_disconnect|passthrough|profile\/.*))$/;

/** Numbers with a unit; a long value is something else. */
const SAFE_WHEN_SHORT = /^(limits\/.*|providers\/[^/]+\/\w+_timeout)$/;
