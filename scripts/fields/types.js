/** The shape of a declared type: only what JSON can say. References are followed one step at a time, so recursive types are no trouble. */
import { loadModule, resolve } from './modules.js';

/**
 * @typedef {{ node: any, module: import('./modules.js').Module, scope: readonly string[] }} Place  a type where it is written
 * @typedef {{ name: string, place: Place, optional: boolean, deprecated?: boolean }} Property
 * @typedef {{ kind: 'object', name: string, properties: Property[], values?: Place }
 *   | { kind: 'array', item: Place } | { kind: 'literal', value: unknown } | { kind: 'met', holds: string }
 *   | { kind: 'string' | 'number' | 'boolean' | 'null' | 'any' | 'code' }} Shape  code: what no JSON holds (functions, streams, signals); met: in recordings only
 */

/** @param {string} file @param {string} name @returns {Place} */
export function rootPlace(file, name) {
  const [declaration] = resolve(name.split('.'), loadModule(file), []);
  if (!declaration) throw new Error(`${file} declares no ${name}`);
  return declaration;
}

/** A union is the list of its members; everything else is a list of one.
 * @param {Place} place @returns {Shape[]} */
export function shapesOf(place) {
  const known = SHAPES.get(place.node);
  if (known) return known;
  const read = READERS[place.node.type];
  if (!read) throw new Error(`${place.module.file}: no reader for ${place.node.type}`);
  const shapes = read(place);
  SHAPES.set(place.node, shapes);
  return shapes;
}

/** A type is written in one place, and read once. @type {WeakMap<object, Shape[]>} */
const SHAPES = new WeakMap();

/** @param {Shape['kind']} kind @returns {() => Shape[]} */
const plain = (kind) => () => [/** @type {Shape} */ ({ kind })];

/** @type {Record<string, (place: Place) => Shape[]>} */
const READERS = {
  TSStringKeyword: plain('string'),
  TSNumberKeyword: plain('number'),
  TSBooleanKeyword: plain('boolean'),
  TSNullKeyword: plain('null'),
  TSUndefinedKeyword: () => [],
  TSUnknownKeyword: plain('any'),
  TSAnyKeyword: plain('any'),
  TSObjectKeyword: plain('any'),
  TSFunctionType: plain('code'),
  TSTemplateLiteralType: plain('string'),
  TSLiteralType: ({ node }) => [{ kind: 'literal', value: node.literal.value }],
  TSParenthesizedType: (place) => shapesOf(inside(place, place.node.typeAnnotation)),
  TSTypeOperator: (place) => shapesOf(inside(place, place.node.typeAnnotation)),
  TSUnionType: (place) => place.node.types.flatMap((/** @type {any} */ type) => shapesOf(inside(place, type))),
  TSIntersectionType: readIntersection,
  TSArrayType: (place) => [{ kind: 'array', item: inside(place, place.node.elementType) }],
  TSTypeLiteral: (place) => [readMembers(place, place.node.members)],
  TSTypeReference: readReference,
  TSInterfaceDeclaration: (place) => [readMembers(place, place.node.body.body)],
  ClassDeclaration: (place) => [readMembers(place, place.node.body.body)],
  TSTypeAliasDeclaration: (place) => shapesOf(inside(place, place.node.typeAnnotation)),
  TSEnumDeclaration: ({ node }) =>
    node.body.members.map((/** @type {any} */ { initializer }) => ({ kind: 'literal', value: initializer?.value })),
};

/** @param {Place} place @param {any} node @returns {Place} */
const inside = ({ module, scope }, node) => ({ node, module, scope });

/** `string & {}` keeps literals apart in an editor; two objects are one with the fields of both.
 * @param {Place} place @returns {Shape[]} */
function readIntersection(place) {
  const shapes = place.node.types.flatMap((/** @type {any} */ type) => shapesOf(inside(place, type)));
  const scalar = shapes.find((/** @type {Shape} */ { kind }) => kind !== 'object');
  if (scalar) return [scalar];
  return [{ kind: 'object', name: nameOf(place), properties: shapes.flatMap((/** @type {any} */ shape) => shape.properties) }];
}

/** @type {Record<string, (place: Place, parameters: any[]) => Shape[]>} */
const BUILT_IN = {
  Array: (place, [item]) => [{ kind: 'array', item: inside(place, item) }],
  ReadonlyArray: (place, [item]) => [{ kind: 'array', item: inside(place, item) }],
  Record: (place, [, value]) => [{ kind: 'object', name: 'Record', properties: [], values: inside(place, value) }],
  Partial: (place, [of]) => shapesOf(inside(place, of)),
  Omit: (place, [of, names]) => without(shapesOf(inside(place, of)), shapesOf(inside(place, names))),
  Date: () => [{ kind: 'string' }],
};

/** @param {Shape[]} shapes @param {Shape[]} names @returns {Shape[]} */
function without(shapes, names) {
  const left = new Set(names.map((shape) => (shape.kind === 'literal' ? shape.value : undefined)));
  return shapes.map((shape) =>
    shape.kind === 'object' ? { ...shape, properties: shape.properties.filter(({ name }) => !left.has(name)) } : shape,
  );
}

/** @param {Place} place @returns {Shape[]} */
function readReference(place) {
  const parts = partsOf(place.node.typeName);
  const declarations = resolve(parts, place.module, place.scope);
  const builtIn = BUILT_IN[parts.join('.')];
  if (declarations.length === 0) return builtIn ? builtIn(place, place.node.typeArguments?.params ?? []) : [{ kind: 'code' }];
  return joined(declarations.flatMap(shapesOf));
}

/** An interface that is declared twice is one. @param {Shape[]} shapes @returns {Shape[]} */
function joined(shapes) {
  const isTwice = shapes.length > 1 && shapes.every((shape) => shape.kind === 'object' && shape.name === nameOfShape(shapes[0]));
  if (!isTwice) return shapes;
  const properties = shapes.flatMap((shape) => (shape.kind === 'object' ? shape.properties : []));
  const byName = new Map(properties.map((property) => [property.name, property]));
  return [{ kind: 'object', name: nameOfShape(shapes[0]), properties: [...byName.values()] }];
}

/** @param {Shape | undefined} shape */
const nameOfShape = (shape) => (shape?.kind === 'object' ? shape.name : '');

/** @param {any} name @returns {string[]} */
const partsOf = (name) =>
  name.type === 'TSQualifiedName' ? [...partsOf(name.left), name.right.name] : [name.name ?? name.property?.name];

/** @param {Place} place */
const nameOf = ({ node, scope }) => (node.id ? scope.join('.') : '');

/** @param {Place} place @param {any[]} members @returns {Shape} */
function readMembers(place, members) {
  const parents = (place.node.extends ?? []).flatMap((/** @type {any} */ { expression }) =>
    resolve(partsOf(expression), place.module, place.scope.slice(0, -1)).flatMap(shapesOf),
  );
  const index = members.find(({ type }) => type === 'TSIndexSignature');
  const own = members.filter(isProperty).map((member) => readProperty(place, member));
  const names = new Set(own.map(({ name }) => name));
  const inherited = parents.flatMap((/** @type {any} */ parent) => parent.properties ?? []);
  return {
    kind: 'object',
    name: nameOf(place),
    properties: [...inherited.filter((/** @type {Property} */ { name }) => !names.has(name)), ...own],
    ...(index && { values: inside(place, index.typeAnnotation.typeAnnotation) }),
  };
}

/** Getters and methods are the SDK's, not the wire's. @param {any} member */
const isProperty = ({ type, static: isStatic, accessibility }) =>
  (type === 'TSPropertySignature' || (type === 'PropertyDefinition' && !isStatic)) && accessibility !== 'private';

/** @param {Place} place @param {any} member @returns {Property} */
const readProperty = (place, { key, optional, typeAnnotation }) => ({
  name: key.name ?? key.value,
  place: inside(place, typeAnnotation.typeAnnotation),
  optional: optional === true,
});
