import { type ProtocolId, type ProviderProfile, RULES, type RuleId, type Severity } from '@sluice/core';
import { findBreakage, learnProfile } from '@sluice/core/internal';
import { didYouMean, oneLine } from '@sluice/lab/text';
import { chooseEnvNetwork } from '../../config/network.ts';
import {
  buildRecord,
  buildRuleRecord,
  type Checkup,
  checkSource,
  explainRule,
  judgeCheckups,
  SEVERITIES,
  type ShowStyle,
  showCheckup,
  showOverall,
  showRules,
  type Verdict,
  writeProfile,
  writeReport,
} from '../../doctor/checkup.ts';
import { EXIT, UsageError } from '../../terminal/errors.ts';
import { chooseProtocols, findSources, forEachSource, isSkipped, readFileBytes } from '../../terminal/inputs.ts';
import type { CliIo } from '../../terminal/io.ts';
import { chooseColors, formatJsonLine } from '../../terminal/text.ts';

interface Options {
  url: string | undefined;
  model: string | undefined;
  protocol: string | undefined;
  'key-env': string | undefined;
  'key-stdin': boolean;
  profile: string | undefined;
  'fail-on': string | undefined;
  junit: string | undefined;
  whole: boolean;
  json: boolean;
  html: boolean;
}

/** `sluice doctor`: examines recorded streams or a live server and reports violations of the standard. */
export async function run({ options, words }: { options: Options; words: string[] }, io: CliIo): Promise<number> {
  checkOptions(options);
  chooseSeverity(options);
  if (words[0] === 'rules') return printRules(words.slice(1), options, io);
  const { checkups, learned, code } =
    options.url === undefined ? await checkFiles(options, words, io) : await checkLive(options, words, io);
  if (options.html) {
    const { renderPage } = await import('../../doctor/page.ts');
    await io.stdout.write(renderPage(checkups));
  } else if (!options.json && checkups.length > 1) await io.stdout.write(showOverall(checkups, showStyle(io)));
  const isReported = options.junit === undefined || (await writeJunit(options.junit, checkups, options, io));
  if (options.profile === undefined) return isReported ? code : EXIT.unusable;
  const examined = checkups.flatMap(({ examination }) => examination ?? []);
  const isWritten = await writeProfile(options.profile, { ...learnProfile(examined), ...learned }, io);
  if (!isReported) return EXIT.unusable;
  return isWritten ? code : EXIT.failed;
}

async function writeJunit(path: string, checkups: readonly Checkup[], options: Options, io: CliIo): Promise<boolean> {
  const { renderJunit } = await import('../../doctor/junit.ts');
  const suite = options.url === undefined ? 'files' : `${options.url} ${options.model ?? ''}`;
  const text = renderJunit(checkups, { suite, failOn: chooseSeverity(options) });
  return writeReport(path, text, io);
}

/** The severity from which findings count. */
function chooseSeverity({ 'fail-on': text }: Options): Severity {
  const severity = SEVERITIES.find((one) => one === (text ?? 'error'));
  if (severity) return severity;
  throw new UsageError(`--fail-on must be ${SEVERITIES.join(', ')}, not "${oneLine(text ?? '')}"`);
}

/** Exit codes of probes. */
const PROBE_CODES = { clean: EXIT.ok, sick: EXIT.failed, unknown: 3 } as const satisfies Record<Verdict, number>;

interface CheckupResult {
  checkups: Checkup[];
  /** Profile fields learned from probing, beyond those that the responses show. */
  learned: Partial<ProviderProfile>;
  /** The exit code. */
  code: number;
}

function checkOptions({ json, html, url, model, 'key-env': keyEnv, 'key-stdin': keyStdin }: Options): void {
  if (json && html) throw new UsageError('--json and --html exclude each other');
  if (url === undefined && (model !== undefined || keyEnv !== undefined || keyStdin))
    throw new UsageError('--model, --key-env and --key-stdin require --url');
  if (url === undefined) return;
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new UsageError(`--url must start with http:// or https://, not "${oneLine(url)}"`);
  const { username, password, search, hash } = new URL(url);
  if (username + password !== '') throw new UsageError('--url must not contain a user or password; use --key-env or --key-stdin');
  if (search + hash !== '') throw new UsageError('--url must not have a query or a fragment');
  if (model === undefined) throw new UsageError('--model is required with --url: name the model to probe');
  if (keyEnv !== undefined && keyStdin) throw new UsageError('--key-env and --key-stdin exclude each other');
}

async function checkFiles(options: Options, words: readonly string[], io: CliIo): Promise<CheckupResult> {
  const expected = { protocols: chooseProtocols(options.protocol), whole: options.whole };
  const failOn = chooseSeverity(options);
  const checkups: Checkup[] = [];
  const code = await forEachSource(await findSources(words, io), io, async (source) => {
    const checkup = await checkSource(source, expected);
    if (isSkipped(source, checkup.error)) return 'skipped';
    await printCheckup(checkup, checkups.length === 0, options, io);
    checkups.push(checkup);
    if (checkup.isUnreadable) return EXIT.unusable;
    return judgeCheckups([checkup], failOn) === 'clean' ? EXIT.ok : EXIT.failed;
  });
  return { checkups, learned: {}, code };
}

async function checkLive(options: Options, words: readonly string[], io: CliIo): Promise<CheckupResult> {
  if (words.length > 0) throw new UsageError('FILE and --url exclude each other');
  const { url = '', model = '' } = options;
  const { probeLive } = await import('../../doctor/live.ts');
  const warn = (message: string): void => void io.stderr.write(`sluice: ${message}\n`);
  const network = chooseEnvNetwork(new URL(url).origin, io.env, warn);
  const probes = probeLive({ url, model, protocol: chooseProbed(options.protocol), key: await readKey(options, io), network });
  const checkups: Checkup[] = [];
  for (;;) {
    if (io.stderr.isTTY) await io.stderr.write(`${CLEAR}probing … ${checkups.length} responses`);
    const next = await probes.next();
    if (io.stderr.isTTY) await io.stderr.write(CLEAR);
    if (next.done) return { checkups, learned: next.value, code: PROBE_CODES[judgeCheckups(checkups, chooseSeverity(options))] };
    await printCheckup(next.value, checkups.length === 0, options, io);
    checkups.push(next.value);
  }
}

/** Undefined: each protocol is tried. */
const chooseProbed = (name: string | undefined): ProtocolId | undefined =>
  name === undefined ? undefined : chooseProtocols(name)[0]?.id;

const CLEAR = '\r\u001b[K';

/** Reads the key from the environment or standard input; an argument would be visible in the process list. */
async function readKey({ 'key-env': name, 'key-stdin': isStdin }: Options, io: CliIo): Promise<string | undefined> {
  if (name === undefined && !isStdin) return undefined;
  const key = name === undefined ? (await readFileBytes('-', io)).toString() : (io.env[name] ?? '');
  if (key.trim() !== '') return key.trim();
  throw new UsageError(
    name === undefined
      ? 'standard input has no key'
      : `the environment variable ${oneLine(name)} is not set; set it, or name another with --key-env`,
  );
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
