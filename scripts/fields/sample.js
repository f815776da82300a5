/** Values of a declared type, and bodies that hold little more than one field. */
import { pathOf } from './fields.js';
import { shapesOf } from './types.js';

/**
 * @typedef {import('./types.js').Shape} Shape
 * @typedef {import('./fields.js').Field} Field
 * @typedef {(path: string) => readonly unknown[] | undefined} Samples  values to use at a path instead of the usual ones
 */

const WORDS = ['alpha', 'beta'];

/** What fields hold that no SDK declares. @type {Record<string, readonly unknown[]>} */
const MET = {
  string: ['alpha text', 'beta text'],
  number: [1, 2],
  fraction: [0.5, 0.25],
  boolean: [true, false],
  list: [[{ alpha: 1 }], [{ beta: 2 }]],
  object: [{ alpha: 1 }, { beta: 2 }],
  thinking: [{ type: 'enabled' }, { type: 'disabled' }],
  reasoning: [{ effort: 'low' }, { effort: 'high' }],
};

/** The n-th value a field can have; the second differs from the first wherever the type allows.
 * @param {Field} field @param {number} n @param {Samples} samples @returns {unknown} */
export const sampleOf = (field, n, samples) => sample(field.shapes, field.path, n, samples);

/** The smallest body of the type in which the field has this value.
 * @param {Field} field @param {unknown} value @param {Samples} samples @returns {any} */
export function bodyWith({ steps }, value, samples) {
  let inner = value;
  for (let i = steps.length - 1; i > 0; i--) {
    const { name, list } = /** @type {any} */ (steps[i]);
    const around = /** @type {any} */ (steps[i - 1]).shape;
    const object = minimal(around, pathOf(steps.slice(0, i)), samples);
    const isInside = i < steps.length - 1;
    object[name === '*' ? 'alpha' : name] = isInside && list ? [inner] : inner;
    inner = object;
  }
  return inner;
}

/** @param {Extract<Shape, { kind: 'object' }>} shape @param {string} path @param {Samples} samples */
function minimal({ properties, values }, path, samples) {
  /** @type {Record<string, unknown>} */
  const object = {};
  for (const { name, place, optional } of properties) {
    const at = path === '' ? name : `${path}.${name}`;
    const shapes = shapesOf(place);
    if (!optional && !samples(at) && shapes.some(({ kind }) => kind === 'null')) object[name] = null;
    else if (!optional || (name === 'type' && shapes.every(({ kind }) => kind === 'literal' || kind === 'null')))
      object[name] = sample(shapes, at, 0, samples);
  }
  if (properties.length === 0 && values) object['alpha'] = sample(shapesOf(values), `${path}.*`, 0, samples);
  return object;
}

/** @param {Shape[]} shapes @param {string} path @param {number} n @param {Samples} samples @returns {unknown} */
function sample(shapes, path, n, samples) {
  const given = samples(path);
  if (given) return structuredClone(given[Math.min(n, given.length - 1)]);
  const [only] = shapes;
  if (only?.kind === 'met') return MET[only.holds]?.[n];
  const literals = shapes.flatMap((shape) => (shape.kind === 'literal' ? [shape.value] : []));
  const [word] = WORDS.slice(n);
  const kinds = new Set(shapes.map(({ kind }) => kind));
  if (kinds.has('string')) return `${word} text`;
  if (literals.length > 0) return literals[Math.min(n, literals.length - 1)];
  if (kinds.has('number')) return n + 1;
  if (kinds.has('boolean')) return n === 0;
  const object = shapes.find((shape) => shape.kind === 'object');
  if (object?.kind === 'object') return minimal(object, path, samples);
  const array = shapes.find((shape) => shape.kind === 'array');
  if (array?.kind === 'array') return [sample(shapesOf(array.item), `${path}[]`, n, samples)];
  return kinds.has('null') ? null : { [word ?? '']: true };
}
