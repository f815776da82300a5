/** Checks a configuration that was pasted, as `sluice config check` does, without reading files or variables of this machine. */

import { rootCertificates } from 'node:tls';
import { ConfigDocument, ConfigError, formatPath, type Problem } from './document.ts';
import { type FileText, SettingFiles } from './files.ts';
import { loadConfig } from './load.ts';
import { type GatewayState, resolveConfig } from './resolve.ts';
import { redactPatterns } from './secret-patterns.ts';
import { type Env, SecretRegistry } from './secrets.ts';

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
  const raw = new ConfigDocument(FILE, text, {});
  const written = raw.syntax.length > 0 ? undefined : raw.value;
  const stand = new Map([...listVariables(text), ...variables].map((name, index) => [name, createSample(index)]));
  const unchecked = new Set<string>();
  // Each round replaces samples of a wrong kind, so that the rest can be checked.
  for (const sample of [...SAMPLES, undefined]) {
    const result = attempt(text, Object.fromEntries(stand));
    if (!(result instanceof ConfigError)) return describeState(result, unchecked);
    const [ofReferences, real] = split(result.problems, ({ path }) => raw.isMissing(path));
    if (ofReferences.length === 0 || real.length > 0 || sample === undefined) {
      for (const { path } of ofReferences) unchecked.add(formatPath(path));
      return describeProblems(real, unchecked);
    }
    for (const { path } of ofReferences) for (const name of listVariables(readText(written, path))) stand.set(name, sample);
  }
  throw new Error('the last round returns');
}

/** Numbers, flags and addresses; the first sample is a key. */
const SAMPLES = ['1', 'true', 'https://reference.invalid'] as const;

/** Differs for each variable: two equal keys are a mistake. */
const createSample = (index: number): string => `reference-${index}-0123456789abcdef`;

function attempt(text: string, env: Env): GatewayState | ConfigError {
  try {
    const source = loadConfig(FILE, text, env, new UnreadFiles());
    return resolveConfig(source, { env, secrets: new SecretRegistry(), storedKeys: () => 'unknown' });
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
function readText(value: unknown, path: Problem['path']): string {
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
