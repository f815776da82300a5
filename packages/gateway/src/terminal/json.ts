/** Indents JSON for terminals. Apart from the other texts because it loads the core. */

import { endOfString } from '@sluice/core/internal';

/** Deeper levels are not indented further, or 1000 brackets would produce a million spaces. */
const MAX_INDENT = 24;

/**
 * Indents JSON as text instead of parsing it, so that long numbers keep their digits and duplicate keys stay visible.
 * The text must be valid JSON.
 */
export function indentJson(json: string): string {
  let out = '';
  let depth = 0;
  for (const token of readTokens(json)) {
    if (token === '{' || token === '[') out += token + startLine(++depth);
    else if (token === '}' || token === ']') out += startLine(--depth) + token;
    else if (token === ',') out += token + startLine(depth);
    else out += token === ':' ? ': ' : token;
  }
  return out;
}

const startLine = (depth: number): string => `\n${'  '.repeat(Math.min(depth, MAX_INDENT))}`;

/** An empty container, punctuation, a number or a literal. */
const TOKEN = /\{\s*\}|\[\s*\]|[{}[\],:]|[^\s{}[\],:"]+/y;

const BLANKS = /\s*/y;

function* readTokens(json: string): Generator<string, void, undefined> {
  let at = 0;
  while (at < json.length) {
    BLANKS.lastIndex = at;
    BLANKS.test(json);
    at = BLANKS.lastIndex;
    TOKEN.lastIndex = at;
    const token = json[at] === '"' ? json.slice(at, endOfString(json, at)) : TOKEN.exec(json)?.[0];
    if (token === undefined) return;
    at += token.length;
    yield /^[{[]\s/.test(token) ? token.replace(/\s+/, '') : token;
  }
}
