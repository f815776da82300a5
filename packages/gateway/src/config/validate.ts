/** Checks a configuration that was pasted, as `sluice config check` does, without reading files or variables of this machine. */

import { rootCertificates } from 'node:tls';
import { ConfigDocument } from './document.ts';
import { type FileText, SettingFiles } from './files.ts';
import { listWritten, loadConfig, type Source } from './load.ts';
import { ConfigError, formatPath, type Path, type Problem } from './problems.ts';
import { type GatewayState, resolveConfig } from './resolve.ts';
import { redactPatterns } from './secret-patterns.ts';
import { type Env, SecretRegistry } from './secrets.ts';
import { findMisplaced, findNodeProblems } from './shared.ts';
import { findLiteralSecrets, looksSecret } from './stored-secrets.ts';
import { findRemovedSettings } from './watch.ts';

/** What is wrong, and where. Lines and columns start at 1. */
interface ConfigFinding {
  readonly severity: 'error' | 'warning';
  readonly path: string;
  readonly line: number | null;
  readonly column: number | null;
  readonly message: string;
}

/** The verdict about a configuration. */
export interface Validation {
  readonly valid: boolean;
  readonly problems: readonly ConfigFinding[];
  /** Problems beyond the limit. */
  readonly omitted: number;
  /** Paths of settings whose value depends on a variable or file, so that it could not be checked. */
  readonly unchecked: readonly string[];
  readonly providers: readonly string[];
  readonly models: readonly string[];
}

/** Longest text: a parser of YAML takes some milliseconds for it. */
export const MAX_VALIDATED_LENGTH = 64 * 1024;

const MAX_PROBLEMS = 100;

const FILE = 'text';

/** `variables`: names of variables that count as set, such as those that providers have their keys from. Their values are not used. */
export function validateConfig(text: string, variables: readonly string[]): Validation {
  const { result, unchecked } = examine(FILE, text, variables);
  return 'state' in result ? describeState(result.state, unchecked) : describeProblems(result.problems, unchecked);
}

/**
 * What is wrong with a document that all nodes shall share, and that replaces another one. References are not resolved, because each
 * node has its own variables and files.
 */
export function findSharedProblems(file: string, text: string, current: string | undefined): readonly Problem[] {
  if (text.includes('\0')) return [{ message: 'the file has a NUL character, which the database cannot store', path: [] }];
  const { raw, result } = examine(file, text, []);
  const secrets = raw.syntax.length > 0 ? raw.literalSecrets : findLiteralSecrets(raw.value);
  const literal = secrets.map((path) => raw.problem(path, BY_REFERENCE));
  const written = { settings: raw.syntax.length > 0 ? [] : listWritten(raw.value), problem: raw.problem.bind(raw) };
  return [
    ...('problems' in result ? result.problems : []),
    ...findMisplaced(written),
    ...literal,
    ...findSecretLines(file, text, literal),
    ...('source' in result && current !== undefined ? findRemoved(current, result.source) : []),
  ];
}

/** A current document that cannot be read has nothing that could be kept. */
function findRemoved(current: string, next: Source): Problem[] {
  const { result } = examine(FILE, current, []);
  return 'source' in result ? findRemovedSettings(result.source, next) : [];
}

const BY_REFERENCE =
  'is a secret, or may be one, which must not be stored in the database; write a reference such as env:NAME or file:/path as the whole value';

/** Lines, also comments, with a text that looks like a secret. */
function findSecretLines(file: string, text: string, known: readonly Problem[]): Problem[] {
  const lines = new Set(known.map(({ place }) => place?.line));
  return text.split('\n').flatMap((line, index) => {
    if (lines.has(index + 1) || !looksSecret(line)) return [];
    const place = { file, line: index + 1, column: 1, excerpt: '' };
    return [
      { message: `a text in this line looks like a secret; write a reference such as env:NAME or file:/path`, path: [], place },
    ];
  });
}

/** A configuration that can be used, or what is wrong with it. */
interface Examined {
  /** Nothing is resolved in it. */
  readonly raw: ConfigDocument;
  readonly result: { readonly state: GatewayState; readonly source: Source } | { readonly problems: readonly Problem[] };
  readonly unchecked: ReadonlySet<string>;
}

function examine(file: string, text: string, variables: readonly string[]): Examined {
  const raw = new ConfigDocument(file, text, {});
  const written = raw.syntax.length > 0 ? undefined : raw.value;
  const stand = new Map([...listVariables(text), ...variables].map((name, index) => [name, createSample(index)]));
  const unchecked = new Set<string>();
  // Each round replaces samples of a wrong kind, so that the rest can be checked.
  for (const sample of [...SAMPLES, undefined]) {
    const result = attempt(file, text, Object.fromEntries(stand));
    if (!(result instanceof ConfigError)) return { raw, result, unchecked };
    const [ofReferences, real] = split(result.problems, ({ path }) => raw.isMissing(path));
    if (ofReferences.length === 0 || real.length > 0 || sample === undefined) {
      for (const { path } of ofReferences) unchecked.add(formatPath(path));
      return { raw, result: { problems: real }, unchecked };
    }
    for (const { path } of ofReferences) for (const name of listVariables(readText(written, path))) stand.set(name, sample);
  }
  throw new Error('the last round returns');
}

/** Numbers, flags and addresses; the first sample is a key. */
const SAMPLES = ['1', 'true', 'https://reference.invalid', 'redis://reference.invalid'] as const;

/** Differs for each variable: two equal keys are a mistake. */
const createSample = (index: number): string => `reference-${index}-0123456789abcdef`;

function attempt(file: string, text: string, env: Env): { state: GatewayState; source: Source } | ConfigError {
  try {
    const source = loadConfig(file, text, env, new UnreadFiles());
    const misplaced = findNodeProblems(source);
    if (misplaced.length > 0) return new ConfigError(misplaced);
    const state = resolveConfig(source, { env, secrets: new SecretRegistry(), storedKeys: () => 'unknown' });
    return { state, source };
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
}

/** Stands in for the files that settings refer to. Nothing is read, also not whether they exist. */
class UnreadFiles extends SettingFiles {
  #count = 0;

  constructor() {
    super('/');
  }

  override read(): FileText {
    return { text: rootCertificates[0] ?? '' };
  }

  override readSecret(): FileText {
    return { text: `file-${createSample(this.#count++)}` };
  }
}

/** All notations of references. */
function listVariables(text: string): string[] {
  const found = text.matchAll(/\$\{([A-Za-z_]\w*)\}|\b(?:env[:.]|os\.environ\/)([A-Za-z_]\w*)/g);
  return [...new Set([...found].flatMap(([, braced, plain]) => braced ?? plain ?? []))];
}

/** The text of a value as it is written. */
function readText(value: unknown, path: Path): string {
  let node = value;
  for (const step of path) node = typeof node === 'object' && node !== null ? Reflect.get(node, step) : undefined;
  return typeof node === 'string' ? node : '';
}

function split<Item>(items: readonly Item[], isFirst: (item: Item) => boolean): [Item[], Item[]] {
  const first = new Set(items.filter(isFirst));
  return [[...first], items.filter((item) => !first.has(item))];
}

const describeState = ({ warnings, providers, models }: GatewayState, unchecked: ReadonlySet<string>): Validation => ({
  valid: true,
  ...listFindings('warning', warnings),
  unchecked: [...unchecked],
  providers: [...providers.values()].filter(({ isDemo }) => !isDemo).map(({ id }) => id),
  models,
});

const describeProblems = (problems: readonly Problem[], unchecked: ReadonlySet<string>): Validation => ({
  valid: problems.length === 0,
  ...listFindings('error', problems),
  unchecked: [...unchecked],
  providers: [],
  models: [],
});

function listFindings(
  severity: ConfigFinding['severity'],
  problems: readonly Problem[],
): Pick<Validation, 'problems' | 'omitted'> {
  const shown = problems.slice(0, MAX_PROBLEMS).map(({ message, path, place }) => ({
    severity,
    path: formatPath(path),
    line: place?.line ?? null,
    column: place?.column ?? null,
    message: redactPatterns(message),
  }));
  return { problems: shown, omitted: problems.length - shown.length };
}
