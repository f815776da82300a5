import { endOfString } from '@sluice/core';

/** Deeper levels are not indented further: a thousand brackets must not become a million blanks. */
const MAX_INDENT = 24;

/**
 * Spreads JSON over lines. It works on the text, not on the parsed value, because what is shown has to be what was sent: long numbers keep
 * their digits, and a key that comes twice is seen twice. The text must be valid JSON.
 */
export function indentJson(json: string): string {
  let out = '';
  let depth = 0;
  for (const token of tokens(json)) {
    if (token === '{' || token === '[') out += token + newLine(++depth);
    else if (token === '}' || token === ']') out += newLine(--depth) + token;
    else if (token === ',') out += token + newLine(depth);
    else out += token === ':' ? ': ' : token;
  }
  return out;
}

const newLine = (depth: number): string => `\n${'  '.repeat(Math.min(depth, MAX_INDENT))}`;

/** An empty container, punctuation, or a number or word. */
const TOKEN = /\{\s*\}|\[\s*\]|[{}[\],:]|[^\s{}[\],:"]+/y;
const BLANKS = /\s*/y;

function* tokens(json: string): Generator<string, void, undefined> {
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
