import { didYouMean, oneLine } from '@sluice/lab/text';
import { findConfig } from '../../config/load.ts';
import { ConfigError, type Problem } from '../../config/problems.ts';
import { redactPatterns } from '../../config/secret-patterns.ts';
import { SecretRegistry } from '../../config/secrets.ts';
import { readConfig } from '../../config/watch.ts';
import { readTlsPair, TlsError } from '../../http/tls.ts';
import { EXIT, UnreadableError, UsageError } from '../../terminal/errors.ts';
import { readFileBytes } from '../../terminal/inputs.ts';
import type { CliIo } from '../../terminal/io.ts';
import { chooseColors, formatJsonLine } from '../../terminal/text.ts';
import type { VersionOptions } from '../config-versions.ts';

interface Action {
  /** Options beside `--json` and `--store`. */
  readonly options: readonly ('comment' | 'expect' | 'limit')[];
  run(words: readonly string[], options: VersionOptions, io: CliIo): Promise<number>;
}

/** An action on the versions in the database, whose module loads the driver. */
const version =
  (name: keyof typeof import('../config-versions.ts')): Action['run'] =>
  async ([word, more], options, io) => {
    if (more !== undefined) throw new UsageError(`unexpected argument "${oneLine(more)}"`);
    const versions = await import('../config-versions.ts');
    const report = (file: string, error: ConfigError): Promise<number> =>
      print(file, { errors: error.problems, text: error.message }, options.json, io);
    return versions[name]({ word, options, io, report });
  };

const ACTIONS = {
  check: { options: [], run: check },
  push: { options: ['comment', 'expect'], run: version('pushConfig') },
  history: { options: ['limit'], run: version('listConfigs') },
  show: { options: [], run: version('showConfig') },
  rollback: { options: ['comment', 'expect'], run: version('rollBackConfig') },
} as const satisfies Record<string, Action>;

const OWN_OPTIONS = ['comment', 'expect', 'limit'] as const;

/** `sluice config`: checks a configuration, and keeps versions of it in a database. */
export async function run(
  { options, words: [word, ...words] }: { options: VersionOptions; words: string[] },
  io: CliIo,
): Promise<number> {
  const action: Action = findAction(word);
  const wrong = OWN_OPTIONS.find((name) => options[name] !== undefined && !action.options.includes(name));
  if (wrong !== undefined) throw new UsageError(`--${wrong} cannot be used with "config ${word}"`);
  return action.run(words, options, io);
}

function findAction(word: string | undefined): Action {
  const known = Object.keys(ACTIONS);
  if (word !== undefined && Object.hasOwn(ACTIONS, word)) return ACTIONS[word as keyof typeof ACTIONS]; // checked
  throw new UsageError(
    word === undefined
      ? `name an action: ${known.map((name) => `config ${name}`).join(', ')}`
      : `unknown action "${oneLine(word)}"${didYouMean(word, known)}\nKnown actions: ${known.join(', ')}`,
  );
}

/** `sluice config check`: validates a configuration as the gateway does. */
async function check(words: readonly string[], options: VersionOptions, io: CliIo): Promise<number> {
  const file = chooseFile(words, io.folder);
  const bytes = await readFileBytes(file, io).catch(async (error: unknown) => {
    if (options.json && error instanceof UnreadableError) await printJson(buildRecord(file, { errors: [error] }), io);
    throw error;
  });
  return print(file, await resolve(file, bytes.toString(), io.env), options.json, io);
}

async function print(file: string, result: CheckResult, json: boolean, io: CliIo): Promise<number> {
  await (json ? printJson(buildRecord(file, result), io) : io.stdout.write(formatResult(file, result, io)));
  return result.errors.length > 0 ? EXIT.failed : EXIT.ok;
}

function chooseFile([file, more]: readonly string[], folder: string): string {
  if (more !== undefined) throw new UsageError(`only one file can be checked; "${oneLine(more)}" is the second`);
  const found = file ?? findConfig(folder);
  if (found === undefined) throw new UsageError('this folder has no sluice.yaml; name a FILE, or run "sluice init"');
  return found;
}

interface CheckResult {
  /** The text of all errors with excerpts; undefined for a valid configuration. */
  text?: string;
  errors: readonly Pick<Problem, 'message' | 'place'>[];
  warnings?: readonly Problem[];
  providers?: readonly string[];
  models?: readonly string[];
}

async function resolve(file: string, text: string, env: CliIo['env']): Promise<CheckResult> {
  try {
    const state = await readConfig(file, { env, secrets: new SecretRegistry(), storedKeys: () => 'unknown' }, text);
    if (state.listen.tls) await readTlsPair(state.listen.tls);
    const providers = [...state.providers.values()].filter(({ isDemo }) => !isDemo).map(({ id }) => id);
    return { errors: [], warnings: state.warnings, providers, models: state.models };
  } catch (error) {
    if (error instanceof ConfigError) return { errors: error.problems, text: error.message };
    if (error instanceof TlsError) return describeTlsError(error);
    throw error;
  }
}

function describeTlsError({ setting, message }: TlsError): CheckResult {
  const { problems, message: text } = new ConfigError([{ path: ['listen', 'tls', setting], message }]);
  return { errors: problems, text };
}

const buildRecord = (file: string, { errors, warnings = [], providers = [], models = [] }: CheckResult): object => ({
  file,
  valid: errors.length === 0,
  problems: [
    ...errors.map((problem) => buildProblem('error', problem)),
    ...warnings.map((problem) => buildProblem('warning', problem)),
  ],
  providers,
  models,
});

/** Without the excerpt, which repeats the file. Texts of the parser may quote it, so secrets are masked. */
const buildProblem = (severity: 'error' | 'warning', { message, path = [], place }: Partial<Problem>): object => ({
  severity,
  path,
  line: place?.line ?? null,
  column: place?.column ?? null,
  message: redactPatterns(message ?? ''),
});

async function printJson(record: object, io: CliIo): Promise<void> {
  await io.stdout.write(formatJsonLine(record)?.join('') ?? '');
}

function formatResult(
  file: string,
  { text, errors, warnings = [], providers = [], models = [] }: CheckResult,
  io: CliIo,
): string {
  const { bold, green, red, yellow } = chooseColors(io.stdout, io.env);
  if (text !== undefined) return `${text}\n${red(formatCount(errors.length, 'problem'))}\n`;
  const found = [...formatList('provider', providers), ...formatList('model', models)].join('; ');
  return [
    ...warnings.map(
      ({ message, place }) =>
        `${place ? `${oneLine(file)}:${place.line}:${place.column}: ` : ''}${yellow('warning')}: ${redactPatterns(message)}`,
    ),
    `${bold(oneLine(file))}: ${green('valid')}; ${found === '' ? 'no providers, so the demo model responds' : found}`,
    '',
  ].join('\n');
}

const formatCount = (count: number, word: string): string => `${count} ${word}${count === 1 ? '' : 's'}`;

const formatList = (word: string, names: readonly string[]): string[] =>
  names.length === 0 ? [] : [`${formatCount(names.length, word)} (${oneLine(names.join(', '))})`];
