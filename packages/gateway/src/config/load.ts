/** Loads a configuration file: finds it, validates it, and reports problems with their places. */

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { didYouMean } from '@sluice/lab/text';
import { ConfigDocument } from './document.ts';
import { HEADER_NAME } from './excerpt.ts';
import { SettingFiles } from './files.ts';
import type { Options } from './options.ts';
import { ConfigError, type Path, type Problem } from './problems.ts';
import { type Issue, parseOptions } from './schema.ts';
import { findDescription, listKeysAt } from './schema-shape.ts';
import type { Env } from './secrets.ts';

/** Parses and validates YAML or JSON. Throws a `ConfigError` with all problems of form. */
export function loadConfig(file: string, text: string, env: Env, files = new SettingFiles(dirname(file))): Source {
  const document = new ConfigDocument(file, text, env, files);
  if (document.syntax.length > 0) throw new ConfigError(document.syntax);
  const value = withoutEmptySections(document.value);
  if (!hasSettings(value)) throw new ConfigError([{ message: describeNoSettings(file), path: [] }]);
  const first = parseOptions(value);
  const parsed =
    'issues' in first ? parseOptions(readReferences(value, listProblems(first.issues, value, document), document)) : first;
  const problems =
    'issues' in parsed ? listProblems(parsed.issues, value, document).filter(({ path }) => !document.isMissing(path)) : [];
  if ('issues' in parsed) throw new ConfigError([...document.missing, ...problems]);
  return {
    options: parsed.options,
    missing: document.missing,
    literalSecrets: document.literalSecrets,
    settings: listWritten(value),
    files,
    problem: (path, message, at) => document.problem(path, message, at),
  };
}

/** A configuration as written: the options, and the place of each. */
export interface Source {
  readonly options: Options;
  /** References that cannot be resolved. The options cannot be used, but are still checked. */
  readonly missing: readonly Problem[];
  /** Settings whose secret is in the file itself. */
  readonly literalSecrets: readonly Path[];
  /** The sections that are written, and those of `auth` one by one. */
  readonly settings: readonly string[];
  /** The files that settings refer to. */
  readonly files: SettingFiles;
  /** A problem with the value or the key at a path. */
  problem(path: Path, message: string, at?: 'key' | 'value'): Problem;
}

/** The source when there is no file. */
export function createDefaultSource(): Source {
  const parsed = parseOptions({});
  if ('issues' in parsed) throw new Error('every option has a default');
  const files = new SettingFiles(process.cwd());
  return {
    options: parsed.options,
    missing: [],
    literalSecrets: [],
    settings: [],
    files,
    problem: (path, message) => ({ path, message }),
  };
}

/** The configuration file in a folder; undefined when there is none. */
export function findConfig(folder: string): string | undefined {
  return CONFIG_FILES.map((name) => join(folder, name)).find((file) => existsSync(file));
}

/** Names of configuration files in order of preference. */
const CONFIG_FILES: readonly string[] = ['sluice.yaml', 'sluice.yml', 'sluice.json'];

/** The variables that settings with secrets refer to. Empty for a file with syntax errors. */
export function listSecretVariables(file: string, text: string, env: Env): string[] {
  // Every variable expands to `${NAME}`, which unifies the notations of references.
  const document = new ConfigDocument(file, text, Object.fromEntries(Object.keys(env).map((name) => [name, `\${${name}}`])));
  if (document.syntax.length > 0) return [];
  const { providers, auth, admin, metrics, store, limits_store } = asRecord(document.value);
  const settings = Object.values(asRecord(providers)).map(asRecord);
  const access = [asRecord(auth)['keys'], asRecord(admin)['key'], asRecord(metrics)['key'], store, limits_store];
  const secrets = [
    ...access,
    ...settings.flatMap(({ api_key, api_keys, headers, proxy }) => [api_key, api_keys, headers, proxy]),
  ];
  return [...JSON.stringify(secrets).matchAll(/\$\{([A-Za-z_]\w*)\}/g)].flatMap(([, name]) => name ?? []);
}

const asRecord = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? { ...value } : {};

/** Removes sections without content, such as `models:` followed by comments only. */
function withoutEmptySections(value: unknown): unknown {
  if (value === null) return {};
  if (typeof value !== 'object' || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([, section]) => section !== null));
}

/** The sections that a document has: `listen`, `models`, `auth.keys`. */
export const listWritten = (value: unknown): string[] =>
  Object.entries(asRecord(value)).flatMap(([name, section]) =>
    name === 'auth' ? Object.keys(asRecord(section)).map((key) => `${name}.${key}`) : [name],
  );

/** An empty file is more likely damaged than a request to run without client keys and providers. */
const hasSettings = (value: unknown): boolean =>
  typeof value !== 'object' || value === null || Array.isArray(value) || Object.keys(value).some((key) => key !== '$schema');

const describeNoSettings = (file: string): string =>
  `${file} has no settings; add some, or write "reset: true" to run without any`;

/** Variables are text. Where the schema rejects text and a variable holds a number or boolean, it is parsed. */
function readReferences(value: unknown, problems: readonly Problem[], document: ConfigDocument): unknown {
  return problems.filter(({ path }) => document.isReference(path)).reduce((read, { path }) => parseScalarAt(read, path), value);
}

function parseScalarAt(value: unknown, [step, ...rest]: Path): unknown {
  if (step === undefined) return typeof value === 'string' && SCALAR.test(value) ? JSON.parse(value) : value;
  if (Array.isArray(value)) return value.map((item, i) => (i === step ? parseScalarAt(item, rest) : item));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, key === step ? parseScalarAt(item, rest) : item]));
}

const SCALAR = /^(true|false|(0|[1-9]\d*)(\.\d+)?)$/;

/** Converts issues of zod to problems with places. Values are never quoted, because they may be secret. */
function listProblems(issues: readonly Issue[], value: unknown, document: ConfigDocument): Problem[] {
  return issues.flatMap((issue) => listIssueProblems(issue, [], value, document));
}

function listIssueProblems(issue: Issue, base: Path, value: unknown, document: ConfigDocument): Problem[] {
  const path: Path = [...base, ...issue.path.map((step) => (typeof step === 'number' ? step : String(step)))];
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => createUnknownKeyProblem(path, key, document));
  if (issue.code === 'invalid_key') {
    const problem = document.problem(path, issue.issues[0]?.message ?? 'is not a valid name', 'key');
    const isHidden = path.at(-2) === 'headers' && !HEADER_NAME.test(String(path.at(-1)));
    return [isHidden ? { ...problem, path: path.slice(0, -1) } : problem];
  }
  if (issue.code === 'invalid_union') {
    const inner = findMeant(issue.errors);
    if (inner) return inner.flatMap((cause) => listIssueProblems(cause, path, value, document));
  }
  return [document.problem(path, buildMessage(issue, path, readAt(value, path)))];
}

/** The alternative of a union that was meant: its type is right, but its content is not. */
const findMeant = (alternatives: readonly (readonly Issue[])[]): readonly Issue[] | undefined =>
  alternatives.find((issues) => issues.length > 0 && issues.every(({ path, code }) => path.length > 0 || INNER_ISSUES.has(code)));

const INNER_ISSUES: ReadonlySet<Issue['code']> = new Set(['too_small', 'unrecognized_keys']);

function buildMessage(issue: Issue, path: Path, value: unknown): string {
  switch (issue.code) {
    case 'invalid_type': {
      if (value === undefined) return `is required${describeForm(path)}`;
      // A setting with a form has a message of its own; that of zod is "Invalid input: expected …".
      if (!issue.message.startsWith('Invalid input')) return issue.message;
      if (path.length === 0) return NOT_A_MAP;
      return `must be ${TYPE_NAMES[issue.expected] ?? `of type ${issue.expected}`}${describeForm(path)}`;
    }
    case 'invalid_value':
      return `must be one of ${issue.values.map(String).join(', ')}${didYouMean(String(value), issue.values.map(String))}`;
    case 'too_small':
      if (issue.origin === 'string' || issue.origin === 'array') return 'must not be empty';
      return `must be ${issue.inclusive ? 'at least' : 'greater than'} ${issue.minimum}`;
    case 'too_big':
      return `must be at most ${issue.maximum}`;
    // All other schemas define their own messages.
    default:
      return issue.message;
  }
}

/** The file is something else: a text, a list, or binary. */
const NOT_A_MAP = 'must be a map of settings, such as "listen: { port: 4141 }"; "sluice init FILE" writes an example';

/** What the schema says about a setting. A list or map explains itself by its settings. */
function describeForm(path: Path): string {
  const text = findDescription(path);
  // Not of an abbreviation or a name: "US dollars", "OpenAI-Project".
  return text === undefined ? '' : `: ${text.replace(/^[A-Z](?=[a-z]*\W)/, (first) => first.toLowerCase()).replace(/\.$/, '')}`;
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'an integer',
  boolean: 'true or false',
  array: 'a list',
  object: 'a map of settings',
  record: 'a map of names',
};

/** Only keys that look like words are quoted in messages. */
const PLAIN_WORD = /^[a-z_$-]{1,30}$/i;

function createUnknownKeyProblem(path: Path, key: string, document: ConfigDocument): Problem {
  const { place } = document.problem([...path, key], '', 'key');
  // In `{ secret }` it may be a value: then the excerpt does not show it, either.
  const isName = PLAIN_WORD.test(key) && (place?.excerpt.includes(key) ?? true);
  const shown = isName ? ` "${key}"` : '';
  return { message: `unknown key${shown}${didYouMean(key, listKeysAt(path))}`, path, ...(place && { place }) };
}

function readAt(value: unknown, path: Path): unknown {
  let node = value;
  for (const step of path) node = typeof node === 'object' && node !== null ? Reflect.get(node, step) : undefined;
  return node;
}
