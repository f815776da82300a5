/** Paths of fields: patterns that name several, and how to find one in a body. */

/**
 * `a.b` is one field, `a.b.**` also everything below it, `**.b` wherever it stands; `*` is one name, and in a label any part of it.
 * @param {string} pattern @returns {(path: string) => boolean}
 */
export function matcher(pattern) {
  if (!pattern.includes('*')) return (path) => path === pattern;
  const isDeep = pattern.endsWith('.**');
  const isAnywhere = pattern.startsWith('**.');
  const middle = pattern.slice(isAnywhere ? 3 : 0, isDeep ? -3 : undefined);
  const source = middle.replace(/\[[^\]]*\]|\([^)]*\)|[^[(]+/g, (piece) =>
    '[('.includes(piece.charAt(0)) ? escaped(piece).replaceAll('*', '[^\\])]*') : escaped(piece).replaceAll('*', '[^.[(]*'),
  );
  const expression = new RegExp(`^${isAnywhere ? '(?:.*[.])?' : ''}${source}${isDeep ? '(?:[.[(].*)?' : ''}$`);
  return (path) => expression.test(path);
}

/** @param {string} text */
const escaped = (text) => text.replace(/[.+?^${}()|[\]\\]/g, '\\$&');

/** The more a pattern says the more it counts. @param {string} pattern */
export const weightOf = (pattern) => (pattern.includes('*') ? pattern.replaceAll('*', '').length : 10_000);

/**
 * Every value that stands at a path, through lists and maps; labels choose among the members of a union.
 * @param {unknown} body @param {string} path @returns {unknown[]}
 */
export function valuesAt(body, path) {
  return segmentsOf(path).reduce((nodes, segment) => nodes.flatMap((node) => step(node, segment)), [body]);
}

/** Dots in labels do not count. @param {string} path */
const segmentsOf = (path) => path.match(/(?:\[[^\]]*\]|\([^)]*\)|[^.[(])+/g) ?? [];

const SEGMENT = /^([^[(]*)(?:\[([^\]]*)\]|\(([^)]*)\))?$/;

/** @param {unknown} node @param {string} segment @returns {unknown[]} */
function step(node, segment) {
  const [, name = '', item, member] = SEGMENT.exec(segment) ?? [];
  const found = name === '' ? [node].flat() : [node].flat().flatMap((object) => children(object, name));
  const label = item ?? member;
  if (label === undefined) return found;
  return found.flatMap((value) => (item === undefined ? [value] : [value].flat(2))).filter((value) => fits(value, label));
}

/** @param {any} object @param {string} name @returns {unknown[]} */
function children(object, name) {
  if (typeof object !== 'object' || object === null) return [];
  if (name === '*') return Object.values(object);
  return Object.hasOwn(object, name) ? [object[name]] : [];
}

const TAGS = ['type', 'role', 'object', 'mode', 'syntax'];

/**
 * A label is what a tag of the object says, or the name of its declaration, which the wire does not show.
 * @param {any} value @param {string} label
 */
function fits(value, label) {
  const [tag = ''] = label.split(':');
  if (tag === '' || /^[A-Z][a-z]/.test(tag) || typeof value !== 'object' || value === null) return true;
  const said = TAGS.map((name) => value[name]).filter((text) => typeof text === 'string');
  return said.length === 0 || said.includes(tag);
}
