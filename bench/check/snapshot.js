/** What a heap snapshot of V8 holds, by type of node. */

/**
 * Types of a snapshot that are counted, by the name of the count. Not counted: `code`, `hidden`, `object shape` and `synthetic`, which depend on what
 * V8 has compiled; `number`, boxed for a moment; `native`, whose wrappers are objects already.
 */
const COUNTED = {
  objects: ['object'],
  closures: ['closure'],
  arrays: ['array'],
  strings: ['string', 'concatenated string', 'sliced string'],
};

/**
 * `{ objects, closures, arrays, strings }` of a parsed heap snapshot.
 *
 * @returns {Record<string, number>}
 */
export function countNodes({ snapshot, nodes }) {
  const { node_fields: fields, node_types: types } = snapshot.meta;
  const at = fields.indexOf('type');
  const nameByType = types[at].map((type) => Object.keys(COUNTED).find((name) => COUNTED[name].includes(type)));
  const counts = Object.fromEntries(Object.keys(COUNTED).map((name) => [name, 0]));
  for (let i = at; i < nodes.length; i += fields.length) {
    const name = nameByType[nodes[i]];
    if (name) counts[name]++;
  }
  return counts;
}

/** How many more there are after, for each of `count` streams. */
export function divideGrowth(before, after, count) {
  return Object.fromEntries(Object.keys(after).map((name) => [name, (after[name] - before[name]) / count]));
}
