import { type Place, type Property, type Shape, shapesOf } from '../../scripts/fields/types.js';

/** One deviation of a value from its declared type. */
export interface Complaint {
  /** JSON pointer of the value. */
  path: string;
  /** The path with `*` for positions in lists, so that equal deviations have one name. */
  field: string;
  problem: string;
  /** The field is not declared: servers may send more than the types list. */
  isUndeclared?: true;
}

type Json = Record<string, unknown>;
type ObjectShape = Extract<Shape, { kind: 'object' }>;

interface Spot {
  path: string;
  field: string;
}

const ROOT: Spot = { path: '', field: '' };

/** Every deviation of a JSON value from a type of an SDK's declarations: missing fields, wrong types, undeclared fields. */
export const validate = (place: Place, value: unknown): Complaint[] => check(shapesOf(place), value, ROOT);

const at = ({ path, field }: Spot, key: string | number): Spot => ({
  path: `${path}/${key}`,
  field: `${field}${typeof key === 'number' ? '[]' : `.${key}`}`,
});

const complain = ({ path, field }: Spot, problem: string): Complaint[] => [{ path, field: field.replace(/^\./, ''), problem }];

function check(shapes: readonly Shape[], value: unknown, spot: Spot): Complaint[] {
  if (shapes.some(({ kind }) => kind === 'any' || kind === 'code')) return [];
  if (Array.isArray(value)) return checkList(shapes, value, spot);
  if (typeof value === 'object' && value !== null) return checkObject(shapes, value as Json, spot);
  const isDeclared = shapes.some((shape) => (shape.kind === 'literal' ? shape.value === value : shape.kind === kindOf(value)));
  return isDeclared ? [] : complain(spot, `${JSON.stringify(value)} is not ${describe(shapes)}`);
}

const kindOf = (value: unknown): string => (value === null ? 'null' : typeof value);

function checkList(shapes: readonly Shape[], value: readonly unknown[], spot: Spot): Complaint[] {
  const lists = shapes.filter((shape) => shape.kind === 'array');
  if (lists.length === 0) return complain(spot, `a list is not ${describe(shapes)}`);
  return fewest(lists.map(({ item }) => value.flatMap((entry, i) => check(shapesOf(item), entry, at(spot, i)))));
}

/** Members of a union are told apart by their constant fields; among several that fit, the closest one counts. */
function checkObject(shapes: readonly Shape[], value: Json, spot: Spot): Complaint[] {
  const objects = shapes.filter((shape) => shape.kind === 'object');
  if (objects.length === 0) return complain(spot, `an object is not ${describe(shapes)}`);
  const tagged = objects.filter((shape) => hasTagsOf(shape, value));
  if (objects.length > 1 && tagged.length === 0) {
    const tags = TAGS.flatMap((tag) => (value[tag] === undefined ? [] : [`${tag} ${JSON.stringify(value[tag])}`]));
    return complain(spot, `no declared member has ${tags.join(' and ') || 'these fields'}`);
  }
  return fewest((tagged.length > 0 ? tagged : objects).map((shape) => checkFields(shape, value, spot)));
}

const TAGS = ['type', 'role', 'object'];

function hasTagsOf({ properties }: ObjectShape, value: Json): boolean {
  return properties.every(({ name, place, optional }) => {
    if (!TAGS.includes(name) || (optional && value[name] === undefined)) return true;
    const shapes = shapesOf(place);
    return !shapes.every(({ kind }) => kind === 'literal' || kind === 'null') || check(shapes, value[name], ROOT).length === 0;
  });
}

function checkFields({ properties, values }: ObjectShape, value: Json, spot: Spot): Complaint[] {
  const declared = new Set(properties.map(({ name }) => name));
  return [
    ...properties.flatMap((property) => checkField(property, value[property.name], at(spot, property.name))),
    ...Object.keys(value).flatMap((key): Complaint[] => {
      if (declared.has(key) || value[key] === undefined) return [];
      if (values) return check(shapesOf(values), value[key], at(spot, key));
      return complain(at(spot, key), 'is not declared').map((complaint) => ({ ...complaint, isUndeclared: true }));
    }),
  ];
}

function checkField({ place, optional }: Property, value: unknown, spot: Spot): Complaint[] {
  if (value !== undefined) return check(shapesOf(place), value, spot);
  return optional ? [] : complain(spot, 'is required');
}

/** Fewest real deviations first; undeclared fields decide only between equals. */
function fewest(candidates: readonly Complaint[][]): Complaint[] {
  const weight = (complaints: readonly Complaint[]): number =>
    complaints.reduce((sum, { isUndeclared }) => sum + (isUndeclared ? 1 : 1000), 0);
  return candidates.toSorted((a, b) => weight(a) - weight(b))[0] ?? [];
}

function describe(shapes: readonly Shape[]): string {
  const names = shapes.map((shape) => (shape.kind === 'literal' ? JSON.stringify(shape.value) : shape.kind));
  return [...new Set(names)].slice(0, 12).join(' | ') || 'allowed';
}
