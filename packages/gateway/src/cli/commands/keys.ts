import { didYouMean, oneLine } from '@sluice/lab/text';
import type { KeySettings } from '../../keys/settings.ts';
import { EXIT, UsageError } from '../../terminal/errors.ts';
import type { CliIo } from '../../terminal/io.ts';
import { chooseColors, formatJsonLine } from '../../terminal/text.ts';
import { type IssuedView, type KeySource, type KeyView, UnknownKeyError, withKeys } from '../keys/source.ts';
import { describeIssued, describeLoss, formatKey, formatKeys } from '../keys/text.ts';
import type { Access, SourceOptions } from '../ledger/open.ts';

interface Options extends SourceOptions {
  models: string | undefined;
  budget: string | undefined;
  rpm: string | undefined;
  tpm: string | undefined;
  concurrency: string | undefined;
  expires: string | undefined;
  ip: string | undefined;
  tag: string | undefined;
  name: string | undefined;
  overlap: string | undefined;
  now: boolean;
  all: boolean;
  json: boolean;
}

/** What an action does with its names. */
interface Call {
  readonly source: KeySource;
  readonly names: readonly string[];
  readonly options: Options;
  readonly io: CliIo;
}

interface Action {
  /** How many names it takes. */
  readonly takes: 'none' | 'one' | 'several';
  readonly access: Access;
  /** Options beside `--json` and those that choose the source. */
  readonly options: readonly (keyof Options)[];
  run(call: Call): Promise<number>;
}

const SETTINGS = ['models', 'budget', 'rpm', 'tpm', 'concurrency', 'expires', 'ip', 'tag'] as const satisfies (keyof Options)[];

const ACTIONS = {
  create: {
    takes: 'one',
    access: 'create',
    options: SETTINGS,
    run: async ({ source, names: [name = ''], options, io }) =>
      printIssued(await source.create(name, readSettings(options)), 'Created', options, io),
  },
  list: {
    takes: 'none',
    access: 'read',
    options: ['all'],
    run: async ({ source, options, io }) => {
      const keys = (await source.list()).filter(({ state }) => options.all || state !== 'revoked');
      if (options.json) for (const key of keys) await printJson(key, io);
      else await io.stdout.write(formatKeys(keys, chooseColors(io.stdout, io.env)));
      return EXIT.ok;
    },
  },
  show: {
    takes: 'one',
    access: 'read',
    options: [],
    run: async ({ source, names: [name = ''], options, io }) => printKey(await source.get(name), options, io),
  },
  edit: {
    takes: 'one',
    access: 'change',
    options: [...SETTINGS, 'name'],
    run: async ({ source, names: [name = ''], options, io }) => {
      const changes = { ...readSettings(options), ...(options.name !== undefined && { name: options.name }) };
      if (Object.keys(changes).length === 0) throw new UsageError('name what to change, such as --budget 20usd/month');
      return printKey(await source.edit(name, changes), options, io);
    },
  },
  rotate: {
    takes: 'one',
    access: 'change',
    options: ['overlap'],
    run: async ({ source, names: [name = ''], options, io }) =>
      printIssued(await source.rotate(name, options.overlap ?? DEFAULT_OVERLAP), 'Rotated', options, io),
  },
  revoke: {
    takes: 'several',
    access: 'change',
    options: ['now'],
    run: async ({ source, names, options, io }) => {
      for (const name of names) {
        const key = await source.revoke(name, options.now);
        if (options.json) await printJson(key, io);
        else await io.stdout.write(`Revoked key "${oneLine(key.name)}" (id ${oneLine(key.id)}).\n`);
      }
      return EXIT.ok;
    },
  },
} as const satisfies Record<string, Action>;

const DEFAULT_OVERLAP = '24h';

/** `sluice keys`: creates, lists, changes and revokes client keys. */
export async function run({ options, words }: { options: Options; words: string[] }, io: CliIo): Promise<number> {
  const [word, ...names] = words;
  const action = findAction(word);
  checkNames(word ?? '', action, names);
  checkOptions(word ?? '', action, options);
  try {
    return await withKeys(options, io, action.access, (source) => action.run({ source, names, options, io }));
  } catch (error) {
    if (!(error instanceof UnknownKeyError)) throw error;
    const { red } = chooseColors(io.stderr, io.env);
    await io.stderr.write(`${red('sluice:')} ${oneLine(error.message)}; "sluice keys list --all" lists them\n`);
    return EXIT.failed;
  }
}

function findAction(word: string | undefined): Action {
  const known = Object.keys(ACTIONS);
  if (word !== undefined && Object.hasOwn(ACTIONS, word)) return ACTIONS[word as keyof typeof ACTIONS];
  throw new UsageError(
    word === undefined
      ? `name an action: ${known.join(', ')}`
      : `unknown action "${oneLine(word)}"${didYouMean(word, known)}\nKnown actions: ${known.join(', ')}`,
  );
}

function checkNames(word: string, { takes }: Action, names: readonly string[]): void {
  if (takes === 'none' && names[0] !== undefined) throw new UsageError(`unexpected argument "${oneLine(names[0])}"`);
  if (takes === 'one' && names.length !== 1) throw new UsageError(`name one key: sluice keys ${word} NAME`);
  if (takes === 'several' && names.length === 0) throw new UsageError(`name a key: sluice keys ${word} NAME…`);
}

const OWN_OPTIONS = [...SETTINGS, 'name', 'overlap', 'now', 'all'] as const;

/** An option that another action has would be ignored silently. */
function checkOptions(word: string, { options: allowed }: Action, options: Options): void {
  const wrong = OWN_OPTIONS.find((name) => options[name] !== undefined && options[name] !== false && !allowed.includes(name));
  if (wrong !== undefined) throw new UsageError(`--${wrong} cannot be used with "keys ${word}"`);
}

/** `none` removes a setting. */
function readSettings({ models, budget, rpm, tpm, concurrency, expires, ip, tag }: Options): KeySettings {
  const lists = { models, budget, ip, tags: tag };
  const amounts = { rpm, tpm, concurrency, expires };
  const entries = [
    ...Object.entries(lists).map(([name, text]) => [name, text === 'none' ? null : text?.split(',')]),
    ...Object.entries(amounts).map(([name, text]) => [name, text === 'none' ? null : text]),
  ];
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

async function printKey(key: KeyView, { json }: Options, io: CliIo): Promise<number> {
  await (json ? printJson(key, io) : io.stdout.write(formatKey(key, chooseColors(io.stdout, io.env))));
  return EXIT.ok;
}

/** The secret is alone on stdout, so that `KEY=$(sluice keys create ci)` works. */
async function printIssued(issued: IssuedView, verb: 'Created' | 'Rotated', { json }: Options, io: CliIo): Promise<number> {
  await (json ? printJson(issued, io) : io.stdout.write(`${oneLine(issued.secret)}\n`));
  await io.stderr.write(describeIssued(issued, verb));
  const loss = describeLoss(issued);
  const { red } = chooseColors(io.stderr, io.env);
  if (loss !== undefined) await io.stderr.write(`${red(`sluice: warning: ${loss}`)}\n`);
  return EXIT.ok;
}

async function printJson(record: object, io: CliIo): Promise<void> {
  await io.stdout.write(formatJsonLine(record)?.join('') ?? '');
}
