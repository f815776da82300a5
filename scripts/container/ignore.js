/** Which files `.dockerignore` keeps: patterns in order, the last match decides, `!` keeps. A match of a folder is one of all that is in it. */

/**
 * @param {string} source the content of `.dockerignore`
 * @returns {(path: string) => boolean} whether a path, relative to the root and with slashes, is sent to the builder
 */
export function readIgnore(source) {
  const rules = source
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => ({ keeps: line.startsWith('!'), pattern: compile(line.replace(/^!/, '').replace(/^\/|\/$/g, '')) }));
  return (path) => rules.reduce((kept, { keeps, pattern }) => (pattern.test(path) ? keeps : kept), true);
}

/** `*` stays within a folder, `**` does not, `?` is one character. */
function compile(pattern) {
  const source = pattern.replaceAll(/\*\*\/?|[*?]|[.+^${}()|[\]\\]/g, (part) => {
    if (part === '**/') return '(?:.*/)?';
    if (part === '**') return '.*';
    if (part === '*') return '[^/]*';
    return part === '?' ? '[^/]' : `\\${part}`;
  });
  return new RegExp(`^${source}(?:/.*)?$`);
}
