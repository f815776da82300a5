/** Every field of a type as a path: `messages[assistant].tool_calls[function].function.arguments`. */
import { shapesOf } from './types.js';

/**
 * @typedef {import('./types.js').Shape} Shape
 * @typedef {Extract<Shape, { kind: 'object' }>} ObjectShape
 * @typedef {import('./types.js').Place} Place
 * @typedef {object} Step  one name of a path, and what was chosen to go on below it
 * @property {string} name  `*` is any key of a map
 * @property {boolean} list  the value is a list of such things
 * @property {string} label  which member of a union, '' when there is only one
 * @property {ObjectShape} [shape]  what it leads into
 * @typedef {Step & { shape: ObjectShape }} Member  a step into an object
 * @typedef {object} Field
 * @property {string} path
 * @property {string} parent  path of the object around it, with its label
 * @property {string} owner  name of the declared type around it
 * @property {readonly Step[]} steps
 * @property {Shape[]} shapes
 * @property {boolean} optional
 * @property {boolean} constant  a literal that is always there: it names the thing
 */

/**
 * @param {Place} place
 * @param {{ stopAt?: ReadonlySet<string> }} [options] `stopAt`: types that have a list of their own
 * @returns {Field[]}
 */
export function fieldsOf(place, { stopAt = new Set() } = {}) {
  const roots = objectsOf(shapesOf(place));
  return membersOf('', false, roots).flatMap((root) => walk([], root, stopAt));
}

/** The fields of the object to which the last step leads, each with those below it.
 * @param {readonly Step[]} before @param {Member} last @param {ReadonlySet<string>} stopAt @returns {Field[]} */
function walk(before, last, stopAt) {
  const steps = [...before, last];
  const parent = pathOf(steps);
  const { name: owner, properties } = last.shape;
  return [...properties, ...valuesOf(last.shape)].flatMap(({ name, place, optional }) => {
    const shapes = shapesOf(place);
    if (shapes.length > 0 && shapes.every(({ kind }) => kind === 'code')) return [];
    const path = parent === '' ? name : `${parent}.${name}`;
    const constant = !optional && shapes.length === 1 && shapes[0]?.kind === 'literal';
    const field = { path, parent, owner, steps: [...steps, { name, list: false, label: '' }], shapes, optional, constant };
    const below = stepsInto(name, shapes).filter(({ shape }) => !stopAt.has(shape.name) && !isOpen(steps, shape));
    return [field, ...below.flatMap((step) => walk(steps, step, stopAt))];
  });
}

/** The values of an open map are data; only a map of declared objects has fields to decide.
 * @param {ObjectShape} shape @returns {import('./types.js').Property[]} */
function valuesOf({ values }) {
  const isDeclared = values && objectsOf(flatten(shapesOf(values))).length > 0;
  return isDeclared ? [{ name: '*', place: values, optional: true }] : [];
}

/** The objects a value may hold, and those a list may hold. @param {string} name @param {Shape[]} shapes @returns {Member[]} */
function stepsInto(name, shapes) {
  const items = shapes.flatMap((shape) => (shape.kind === 'array' ? objectsOf(flatten(shapesOf(shape.item))) : []));
  return [...membersOf(name, false, objectsOf(shapes)), ...membersOf(name, true, items)];
}

/** Members of a union have labels. @param {string} name @param {boolean} list @param {ObjectShape[]} objects @returns {Member[]} */
const membersOf = (name, list, objects) =>
  labelled(objects).map(({ label, shape }) => ({ name, list, label: objects.length > 1 ? label : '', shape }));

/** A type that is open already is not entered again. @param {readonly Step[]} steps @param {ObjectShape} shape */
const isOpen = (steps, shape) =>
  shape.name !== '' && shape.name !== 'Record' && steps.some((step) => step.shape?.name === shape.name);

/** A list of lists counts as a list. @param {Shape[]} shapes @returns {Shape[]} */
const flatten = (shapes) => shapes.flatMap((shape) => (shape.kind === 'array' ? flatten(shapesOf(shape.item)) : [shape]));

/** @param {Shape[]} shapes */
const objectsOf = (shapes) => /** @type {ObjectShape[]} */ (shapes.filter(({ kind }) => kind === 'object'));

const TAGS = ['type', 'role', 'object', 'mode', 'syntax'];

/** Members of a union get the name of their `type` or `role`, or of their declaration where that says nothing.
 * @param {ObjectShape[]} objects */
function labelled(objects) {
  const labels = objects.map(labelOf);
  return objects.map((shape, i) => {
    const label = labels[i] ?? '';
    const isShared = labels.indexOf(label) !== labels.lastIndexOf(label);
    return { shape, label: isShared || label === '' ? [label, shape.name.split('.').at(-1)].filter(Boolean).join(':') : label };
  });
}

/** @param {ObjectShape} shape */
function labelOf(shape) {
  for (const tag of TAGS) {
    const property = shape.properties.find(({ name }) => name === tag);
    if (!property) continue;
    const shapes = shapesOf(property.place).filter(({ kind }) => kind !== 'null');
    if (shapes.length === 1 && shapes[0]?.kind === 'literal') return String(shapes[0].value);
  }
  return '';
}

/** @param {readonly Step[]} steps */
export function pathOf(steps) {
  return steps
    .map(({ name, list, label }) => (list ? `${name}[${label}]` : label ? `${name}(${label})` : name))
    .filter(Boolean)
    .join('.');
}
