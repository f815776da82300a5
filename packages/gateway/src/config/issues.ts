import { didYouMean } from '../cli/suggest.ts';
import type { ConfigDocument } from './document.ts';
import type { Path, Problem } from './problem.ts';
import { type Issue, jsonSchema } from './schema.ts';

/** What zod has to say, in our words and with its place in the file. Values are never repeated: they may be secret. */
export function listProblems(issues: readonly Issue[], value: unknown, document: ConfigDocument): Problem[] {
  return issues.flatMap((issue) => problemsOfIssue(issue, [], value, document));
}

function problemsOfIssue(issue: Issue, base: Path, value: unknown, document: ConfigDocument): Problem[] {
  const path: Path = [...base, ...issue.path.map((step) => (typeof step === 'number' ? step : String(step)))];
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => unknownKey(path, key, document));
  if (issue.code === 'invalid_key') return [document.problem(path, issue.issues[0]?.message ?? 'is no name', 'key')];
  if (issue.code === 'invalid_union') {
    const inner = meant(issue.errors);
    if (inner) return inner.flatMap((cause) => problemsOfIssue(cause, path, value, document));
  }
  return [document.problem(path, buildMessage(issue, at(value, path)))];
}

/** The alternative that was meant: the one whose kind is right and whose inside is not. */
const meant = (alternatives: readonly (readonly Issue[])[]): readonly Issue[] | undefined =>
  alternatives.find((issues) => issues.length > 0 && issues.every(({ path, code }) => path.length > 0 || INSIDE.has(code)));

const INSIDE: ReadonlySet<Issue['code']> = new Set(['too_small', 'unrecognized_keys']);

function buildMessage(issue: Issue, value: unknown): string {
  switch (issue.code) {
    case 'invalid_type':
      return value === undefined ? 'is required' : `must be ${KINDS[issue.expected] ?? `of type ${issue.expected}`}`;
    case 'invalid_value':
      return `must be one of ${issue.values.map(String).join(', ')}${didYouMean(String(value), issue.values.map(String))}`;
    case 'too_small':
      if (issue.origin === 'string' || issue.origin === 'array') return 'must not be empty';
      return `must be ${issue.inclusive ? 'at least' : 'more than'} ${issue.minimum}`;
    case 'too_big':
      return `must be at most ${issue.maximum}`;
    // Every other schema brings its own words.
    default:
      return issue.message;
  }
}

const KINDS: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a map of settings',
  record: 'a map of names',
};

/** Keys that look like words may be repeated; others may be anything. */
const WORD = /^[a-z_$-]{1,30}$/i;

function unknownKey(path: Path, key: string, document: ConfigDocument): Problem {
  const shown = WORD.test(key) ? ` "${key}"` : '';
  const { place } = document.problem([...path, key], '', 'key');
  return { message: `unknown key${shown}${didYouMean(key, keysAt(path))}`, path, ...(place && { place }) };
}

/** A node of JSON Schema, as far as it is looked at. */
interface Shape {
  properties?: Record<string, Shape>;
  additionalProperties?: Shape | boolean;
  items?: Shape;
  anyOf?: Shape[];
}

/** The keys that a map there may have. */
function keysAt(path: Path): string[] {
  let shapes = [jsonSchema() as Shape]; // what toJSONSchema gives
  for (const step of path) shapes = shapes.flatMap(alternatives).flatMap((shape) => child(shape, step));
  return shapes.flatMap(alternatives).flatMap(({ properties = {} }) => Object.keys(properties));
}

const alternatives = (shape: Shape): Shape[] => [shape, ...(shape.anyOf ?? [])];

function child({ properties = {}, additionalProperties, items }: Shape, step: string | number): Shape[] {
  const named = Object.hasOwn(properties, step) ? properties[step] : undefined;
  return [named, additionalProperties, items].filter((shape): shape is Shape => typeof shape === 'object');
}

function at(value: unknown, path: Path): unknown {
  let node = value;
  for (const step of path) node = typeof node === 'object' && node !== null ? Reflect.get(node, step) : undefined;
  return node;
}
