/** What the schema says about a place in a configuration: which keys a map has there. */

import type { Path } from './problems.ts';
import { buildJsonSchema } from './schema.ts';

/** The parts of a JSON Schema node that are read here. */
interface SchemaNode {
  properties?: Record<string, SchemaNode>;
  additionalProperties?: SchemaNode | boolean;
  items?: SchemaNode;
  anyOf?: SchemaNode[];
  enum?: unknown[];
  const?: unknown;
  description?: string;
}

/** Built once: it takes 10 ms, and a file may have thousands of unknown keys. */
let jsonSchema: SchemaNode | undefined;

const readSchema = (): SchemaNode => (jsonSchema ??= buildJsonSchema() as SchemaNode); // the output of toJSONSchema has this form

/** The keys that the map at a path may have. */
export const listKeysAt = (path: Path): string[] => findShapes(path).flatMap(({ properties = {} }) => Object.keys(properties));

/** What the schema says about the value at a path, for one that is neither a map nor a list. */
export function findDescription(path: Path): string | undefined {
  const shapes = findShapes(path);
  if (shapes.some(({ properties, additionalProperties, items }) => properties ?? additionalProperties ?? items)) return undefined;
  return shapes.find(({ description }) => description !== undefined)?.description;
}

/** What a path is: a map of settings, a map with names of the user, or something else. */
export function findMapKind(path: Path): 'settings' | 'names' | undefined {
  const shapes = findShapes(path);
  if (shapes.some(({ additionalProperties }) => typeof additionalProperties === 'object')) return 'names';
  return shapes.some(({ properties }) => properties !== undefined) ? 'settings' : undefined;
}

/** All words of the schema: names of settings, and values that are one of several. */
interface Words {
  readonly names: ReadonlySet<string>;
  readonly values: ReadonlySet<unknown>;
}

let words: Words | undefined;

function readWords(): Words {
  if (words) return words;
  const shapes = listDeep(readSchema());
  words = {
    names: new Set(shapes.flatMap(({ properties = {} }) => Object.keys(properties))),
    values: new Set(shapes.flatMap((shape) => [...(shape.enum ?? []), shape.const])),
  };
  return words;
}

/** Whether any map of the schema has a setting of this name. */
export const isSettingName = (name: string): boolean => readWords().names.has(name);

/** Whether any setting has this value as one of several. */
export const isSettingValue = (value: string): boolean => readWords().values.has(value);

const listDeep = (shape: SchemaNode): SchemaNode[] => [shape, ...listAllChildren(shape).flatMap(listDeep)];

const listAllChildren = ({ properties = {}, additionalProperties, items, anyOf = [] }: SchemaNode): SchemaNode[] =>
  [...Object.values(properties), additionalProperties, items, ...anyOf].filter(isNode);

const isNode = (shape: SchemaNode | boolean | undefined): shape is SchemaNode => typeof shape === 'object';

function findShapes(path: Path): SchemaNode[] {
  let shapes = [readSchema()];
  for (const step of path) shapes = shapes.flatMap(listAlternatives).flatMap((shape) => listChildren(shape, step));
  return shapes.flatMap(listAlternatives);
}

/** An alternative may have alternatives itself. */
const listAlternatives = (shape: SchemaNode): SchemaNode[] => [shape, ...(shape.anyOf ?? []).flatMap(listAlternatives)];

function listChildren({ properties = {}, additionalProperties, items }: SchemaNode, step: string | number): SchemaNode[] {
  const named = Object.hasOwn(properties, step) ? properties[step] : undefined;
  return [named, additionalProperties, items].filter(isNode);
}
