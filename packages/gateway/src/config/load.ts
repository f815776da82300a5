import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { didYouMean } from '@sluice/lab/text';
import { ConfigDocument, ConfigError, type Path, type Problem } from './document.ts';
import type { Options } from './options.ts';
import { type Issue, jsonSchema, parseOptions } from './schema.ts';
import type { Env } from './secrets.ts';

/** What zod has to say, in our words and with its place in the file. Values are never repeated: they may be secret. */
function listProblems(issues: readonly Issue[], value: unknown, document: ConfigDocument): Problem[] {
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

/** Where a configuration is looked for when none is named. */
const CONFIG_FILES: readonly string[] = ['sluice.yaml', 'sluice.yml', 'sluice.json'];

export function findConfig(folder: string): string | undefined {
  return CONFIG_FILES.map((name) => join(folder, name)).find((file) => existsSync(file));
}

/** A configuration as it was written: the options, and where each of them stands. */
export interface Source {
  readonly options: Options;
  /** References that lead nowhere: nobody can use these options, but everything else about them can be checked. */
  readonly missing: readonly Problem[];
  /** A problem with the value, or the key, at a path. */
  problem(path: Path, message: string, at?: 'key' | 'value'): Problem;
}

/** YAML or JSON to options. Throws a `ConfigError` with everything that is wrong about their form. */
export function loadConfig(file: string, text: string, env: Env): Source {
  const document = new ConfigDocument(file, text, env);
  if (document.syntax.length > 0) throw new ConfigError(document.syntax);
  const value = withoutEmptySections(document.value);
  if (!hasSettings(value)) throw new ConfigError([{ message: noSettings(file), path: [] }]);
  const first = parseOptions(value);
  const parsed =
    'issues' in first ? parseOptions(readReferences(value, listProblems(first.issues, value, document), document)) : first;
  const problems =
    'issues' in parsed ? listProblems(parsed.issues, value, document).filter(({ path }) => !document.isMissing(path)) : [];
  if ('issues' in parsed) throw new ConfigError([...document.missing, ...problems]);
  return {
    options: parsed.options,
    missing: document.missing,
    problem: (path, message, at) => document.problem(path, message, at),
  };
}

/** What is used when there is no file. */
export function noConfig(): Source {
  const parsed = parseOptions({});
  if ('issues' in parsed) throw new Error('every option has a default');
  return { options: parsed.options, missing: [], problem: (path, message) => ({ path, message }) };
}

/** `models:` with nothing below it is a section whose lines are all comments. */
function withoutEmptySections(value: unknown): unknown {
  if (value === null) return {};
  if (typeof value !== 'object' || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([, section]) => section !== null));
}

/** An empty file is more often a damaged one than the wish to run without client keys and providers. */
const hasSettings = (value: unknown): boolean =>
  typeof value !== 'object' || value === null || Array.isArray(value) || Object.keys(value).some((key) => key !== '$schema');

const noSettings = (file: string): string => `${file} has no settings; add some, or write "reset: true" to run without any`;

/** A variable is text. Where the schema has no use for text, and the variable holds a number or a switch, that is what was meant. */
function readReferences(value: unknown, problems: readonly Problem[], document: ConfigDocument): unknown {
  return problems.filter(({ path }) => document.isReference(path)).reduce((read, { path }) => withScalar(read, path), value);
}

function withScalar(value: unknown, [step, ...rest]: Path): unknown {
  if (step === undefined) return typeof value === 'string' && SCALAR.test(value) ? JSON.parse(value) : value;
  if (Array.isArray(value)) return value.map((item, i) => (i === step ? withScalar(item, rest) : item));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, key === step ? withScalar(item, rest) : item]));
}

const SCALAR = /^(true|false|(0|[1-9]\d*)(\.\d+)?)$/;

/** The variables that a configuration takes secrets from: those in `api_key`, in `headers` and in `auth.keys`. Empty for a file that is no YAML. */
export function secretVariables(file: string, text: string, env: Env): string[] {
  // With every variable standing for itself, all ways to write a reference are read as one.
  const document = new ConfigDocument(file, text, Object.fromEntries(Object.keys(env).map((name) => [name, `\${${name}}`])));
  if (document.syntax.length > 0) return [];
  const { providers, auth } = asRecord(document.value);
  const settings = Object.values(asRecord(providers)).map(asRecord);
  const secrets = [asRecord(auth)['keys'], ...settings.flatMap(({ api_key, headers }) => [api_key, headers])];
  return [...JSON.stringify(secrets).matchAll(/\$\{([A-Za-z_]\w*)\}/g)].flatMap(([, name]) => name ?? []);
}

const asRecord = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? { ...value } : {};
