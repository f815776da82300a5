import { findProtocol, PROTOCOLS, type Protocol, type ProviderProfile, RULES, type RuleId } from '@sluice/core';
import { findBreakage, learnProfile } from '@sluice/core/internal';
import { didYouMean, oneLine } from '@sluice/lab/text';
import {
  buildRecord,
  buildRuleRecord,
  type Checkup,
  checkInput,
  judgeCheckups,
  type Verdict,
  writeProfile,
} from '../../doctor/checkup.ts';
import { renderPage } from '../../doctor/page.ts';
import { explainRule, type ShowStyle, showCheckup, showOverall, showRules } from '../../doctor/show.ts';
import { readText } from '../../terminal/inputs.ts';
import type { CliIo } from '../../terminal/io.ts';
import { chooseColors, formatJsonLine } from '../../terminal/text.ts';
import {
  type Arguments,
  type Command,
  createUnknownProtocolError,
  defineCommand,
  listProtocols,
  UsageError,
} from '../command.ts';
import { chooseFiles } from '../inputs.ts';

const OPTIONS = {
  url: {
    type: 'string',
    value: 'URL',
    summary: 'probe this server in place of reading a file: its address, as a client would be given it',
  },
  model: { type: 'string', value: 'M', summary: 'the model to probe' },
  protocol: {
    type: 'string',
    value: 'P',
    summary: `the protocol (${listProtocols()}); told from the bytes, or tried one after the other, when left out`,
  },
  'key-env': {
    type: 'string',
    value: 'NAME',
    summary: 'the variable of the environment that holds the key; it is sent to the URL alone and never shown',
  },
  'key-stdin': { type: 'boolean', summary: 'read the key from standard input' },
  profile: {
    type: 'string',
    value: 'FILE',
    summary: 'write what was learned of the provider, for "profile:" of the configuration',
  },
  whole: { type: 'boolean', summary: 'the request did not ask for a stream: a JSON body is what the answer should be' },
  json: { type: 'boolean', summary: 'one JSON object a line and input, on stdout; everything else on stderr' },
  html: { type: 'boolean', summary: 'one page with all of it, on stdout; it needs nothing else' },
} as const;

type Options = Arguments<typeof OPTIONS>['options'];

/** `sluice doctor`: examines recorded streams or a live server and reports departures from the standard. */
export const doctor: Command = defineCommand({
  summary: 'how a stream, or a live server, departs from its standard, who breaks on it, and what Sluice does about it',
  usage:
    'doctor [--protocol P] [--whole] [--json|--html] [--profile FILE] FILE…\n  sluice doctor --url URL --model M [--protocol P] [--key-env NAME|--key-stdin] [--json|--html] [--profile FILE]\n  sluice doctor rules [RULE] [--json]',
  about:
    'Examines recorded response bodies, or asks a server seven small questions and examines the answers. Every departure has a rule, a severity (error: official clients break on it; warning: some clients do; info: worth knowing), its place in bytes and an excerpt. The score is 100, less 20 for each error, 5 for each warning and 1 for each info. "-" is standard input, which is also read when no FILE is named. The exit code is 1 when an input cannot be read, failed, ended early, or departs in a way that official clients break on. With --url, it is 3 when nothing is wrong but a probe did not show what it asked for: what it would tell is not known, and the score is at most what is printed.',
  options: OPTIONS,
  examples: [
    { line: 'sluice doctor answer.sse', what: 'what is wrong with this stream?' },
    { line: 'curl -sN https://… | sluice doctor', what: 'straight from a provider' },
    { line: 'sluice doctor --url http://127.0.0.1:11434/v1 --model llama3.2', what: 'a local server, live' },
    {
      line: 'sluice doctor --url https://api.example.com/v1 --model m --key-env EXAMPLE_KEY --profile example.json',
      what: 'a provider, and a profile of it for the gateway',
    },
    { line: 'sluice doctor --html *.sse > report.html', what: 'a page for a bug report' },
    { line: 'sluice doctor rules chat/tool-index-reused', what: 'what does this rule mean?' },
  ],
  run: async ({ options, words }, io) => {
    checkOptions(options);
    if (words[0] === 'rules') return printRules(words.slice(1), options, io);
    const { checkups, learned } =
      options.url === undefined ? await checkFiles(options, words, io) : await checkLive(options, words, io);
    if (options.html) await io.stdout.write(renderPage(checkups));
    else if (!options.json && checkups.length > 1) await io.stdout.write(showOverall(checkups, showStyle(io)));
    const code = EXIT_CODES[judgeCheckups(checkups)];
    if (options.profile === undefined) return code;
    const examined = checkups.flatMap(({ examination }) => examination ?? []);
    const isWritten = await writeProfile(options.profile, { ...learnProfile(examined), ...learned }, io);
    return isWritten ? code : 1;
  },
});

/** Exit code 2 is wrong usage, as for every command. */
const EXIT_CODES = { clean: 0, sick: 1, unknown: 3 } as const satisfies Record<Verdict, number>;

interface CheckupResult {
  checkups: Checkup[];
  /** Profile fields learned from probing, beyond those that the responses show. */
  learned: Partial<ProviderProfile>;
}

function checkOptions({ json, html, url, model, 'key-env': keyEnv, 'key-stdin': keyStdin }: Options): void {
  if (json && html) throw new UsageError('choose one of --json and --html');
  if (url === undefined && (model !== undefined || keyEnv !== undefined || keyStdin))
    throw new UsageError('--model, --key-env and --key-stdin go with --url');
  if (url === undefined) return;
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new UsageError(`"${oneLine(url)}" is no URL that begins with http:// or https://`);
  const { username, password, search, hash } = new URL(url);
  if (username + password !== '') throw new UsageError('the URL carries a user or a password: use --key-env or --key-stdin');
  if (search + hash !== '') throw new UsageError('leave the query and the fragment off the URL');
  if (model === undefined) throw new UsageError('--model is missing: say which model to ask');
  if (keyEnv !== undefined && keyStdin) throw new UsageError('choose one of --key-env and --key-stdin');
}

function chooseProtocol(name: string | undefined): Protocol | undefined {
  const found = name === undefined ? undefined : findProtocol(name);
  if (name !== undefined && !found) throw createUnknownProtocolError(name);
  return found;
}

async function checkFiles(options: Options, words: readonly string[], io: CliIo): Promise<CheckupResult> {
  const protocol = chooseProtocol(options.protocol);
  const expected = { protocols: protocol ? [protocol] : Object.values(PROTOCOLS), whole: options.whole };
  const checkups: Checkup[] = [];
  for (const file of chooseFiles(words, io)) {
    const checkup = await checkInput(file, expected, io);
    await printCheckup(checkup, checkups.length === 0, options, io);
    checkups.push(checkup);
  }
  return { checkups, learned: {} };
}

async function checkLive(options: Options, words: readonly string[], io: CliIo): Promise<CheckupResult> {
  if (words.length > 0) throw new UsageError('name a FILE or a --url, not both');
  const { url = '', model = '' } = options;
  const { probeLive } = await import('../../doctor/live.ts');
  const probes = probeLive({ url, model, protocol: chooseProtocol(options.protocol)?.id, key: await readKey(options, io) });
  const checkups: Checkup[] = [];
  for (;;) {
    if (io.stderr.isTTY) await io.stderr.write(`${CLEAR}asking … ${checkups.length} answers`);
    const next = await probes.next();
    if (io.stderr.isTTY) await io.stderr.write(CLEAR);
    if (next.done) return { checkups, learned: next.value };
    await printCheckup(next.value, checkups.length === 0, options, io);
    checkups.push(next.value);
  }
}

const CLEAR = '\r\u001b[K';

/** Reads the key from the environment or standard input; an argument would be visible in the process list. */
async function readKey({ 'key-env': name, 'key-stdin': isStdin }: Options, io: CliIo): Promise<string | undefined> {
  if (name === undefined && !isStdin) return undefined;
  const key = name === undefined ? await readText('-', io) : (io.env[name] ?? '');
  if (key.trim() !== '') return key.trim();
  throw new UsageError(name === undefined ? 'no key came on standard input' : `the variable ${oneLine(name)} is not set`);
}

const showStyle = ({ stdout, env }: CliIo): ShowStyle => ({ colors: chooseColors(stdout, env), columns: stdout.columns });

async function printCheckup(checkup: Checkup, isFirst: boolean, { json, html }: Options, io: CliIo): Promise<void> {
  if (html) return reportUnreadable(checkup, io);
  if (json) {
    await reportUnreadable(checkup, io);
    for (const piece of formatJsonLine(buildRecord(checkup)) ?? []) await io.stdout.write(piece);
    return;
  }
  await io.stdout.write(`${isFirst ? '' : '\n'}${showCheckup(checkup, showStyle(io))}`);
}

/** Unreadable inputs are reported on stderr because the output on stdout may be read much later. */
async function reportUnreadable({ name, error, examination }: Checkup, io: CliIo): Promise<void> {
  if (error && !examination)
    await io.stderr.write(`${chooseColors(io.stderr, io.env).red('sluice:')} ${oneLine(name)}: ${oneLine(error.message)}\n`);
}

async function printRules(words: readonly string[], { json }: Options, io: CliIo): Promise<number> {
  const style = showStyle(io);
  const ids = words.length === 0 ? RULE_IDS : words.map(findRule);
  if (json) for (const id of ids) await io.stdout.write(`${JSON.stringify(buildRuleRecord(id))}\n`);
  else if (words.length === 0) await io.stdout.write(showRules(style));
  else
    for (const [at, id] of ids.entries())
      await io.stdout.write(`${at === 0 ? '' : '\n'}${explainRule(id, findBreakage(id), style)}`);
  return 0;
}

const RULE_IDS = Object.keys(RULES) as RuleId[]; // the type of RULES lists all keys

const isRule = (word: string): word is RuleId => Object.hasOwn(RULES, word);

function findRule(word: string): RuleId {
  if (isRule(word)) return word;
  throw new UsageError(`unknown rule "${oneLine(word)}"${didYouMean(word, RULE_IDS)}\n"sluice doctor rules" lists them all`);
}
