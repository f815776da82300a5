/**
 * Which files `.dockerignore` keeps, by the rules of Docker (github.com/moby/patternmatcher): patterns in order, the last match decides, `!` keeps. A match
 * of a folder is one of all that is in it. Patterns are those of Go's `filepath.Match`, and `**` for any number of folders.
 */
import { posix } from 'node:path';

/**
 * @param {string} source the content of `.dockerignore`
 * @returns {{ keeps(path: string): boolean, enters(folder: string): boolean }} whether a file is sent to the builder, and whether a folder is looked
 * into; paths are relative to the root, with slashes
 */
export function readIgnore(source) {
  const rules = listRules(source);
  const keeps = (path) => rules.reduce((kept, { isException, expression }) => (expression.test(path) ? isException : kept), true);
  return {
    keeps,
    // Builders without BuildKit look into a folder that is left out only when the text of an exception begins with its path: wildcards do not count.
    enters: (folder) =>
      keeps(folder) || rules.some(({ isException, text }) => isException && `${text}/`.startsWith(`${folder}/`)),
  };
}

function listRules(source) {
  return source
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .filter((line) => !line.startsWith('#') && line.trim() !== '')
    .map((line) => {
      const isException = line.trim().startsWith('!');
      const text = clean(
        line
          .trim()
          .slice(isException ? 1 : 0)
          .trim(),
      );
      if (text === '') throw new Error(`.dockerignore: ${line} has no pattern`);
      return { isException, text, expression: compile(text) };
    });
}

/** As `filepath.Clean` of Go: without `.`, `..` and final slashes; paths begin at the root anyway. */
const clean = (text) =>
  text === ''
    ? ''
    : posix
        .normalize(text)
        .replace(/(?<=.)\/$/, '')
        .replace(/^\/(?=.)/, '');

/** `*` and `?` stay within a folder; `[a-z]` and `\` are those of expressions; `**` is any number of folders, at the end everything. */
function compile(pattern) {
  const source = pattern.replaceAll(/\*\*\/?$|\*\*\/?|\*|\?|\\.|[.+(){}|$^]/g, (part, at) => {
    if (part.startsWith('**')) return at + part.length === pattern.length ? '.*' : '(?:.*/)?';
    if (part === '*') return '[^/]*';
    if (part === '?') return '[^/]';
    // Inside of brackets, `^` negates.
    if (part === '^' && pattern[at - 1] === '[') return part;
    return part.startsWith('\\') ? part : `\\${part}`;
  });
  return new RegExp(`^${source}(?:/.*)?$`, 'u');
}
