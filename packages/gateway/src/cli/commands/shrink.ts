import { join } from 'node:path';
import { type AccumulatedMessage, PROTOCOLS, type Protocol, RULES, type RuleId } from '@sluice/core';
import {
  assemble,
  buildCase,
  createTest,
  detectEncoding,
  type Encoding,
  type Reading,
  type ShrinkOptions,
  type Shrunk,
  shrink as shrinkText,
  type Until,
  writeReport,
} from '@sluice/lab/shrink';
import { didYouMean, oneLine, printable } from '@sluice/lab/text';
import { EXIT, UsageError } from '../../terminal/errors.ts';
import { chooseProtocols, type RecordedBody, readBodies } from '../../terminal/inputs.ts';
import type { CliIo } from '../../terminal/io.ts';
import { chooseColors, formatBytes, formatJsonLine } from '../../terminal/text.ts';
import { readVersion } from '../help.ts';

interface Options {
  until: string | undefined;
  protocol: string | undefined;
  out: string | undefined;
  seconds: string | undefined;
  json: boolean;
}

const DEFAULT_OUT = 'shrunk';

const DEFAULT_SECONDS = '25';

/** `sluice shrink`: reduces a recorded stream to the smallest one that still shows a problem. */
export async function run({ options, words }: { options: Options; words: string[] }, io: CliIo): Promise<number> {
  const until = parseUntil(options.until);
  const protocol = options.protocol === undefined ? undefined : chooseProtocols(options.protocol)[0];
  const maxMs = parseSeconds(options.seconds ?? DEFAULT_SECONDS) * 1000;
  const streams = await readBodies(chooseInput(words, io), io);
  return io.inTemporaryFolder(async (folder) => {
    const found = await findStream(streams, until, protocol, folder, io);
    if (!found) return reportNothingFound(streams, until, protocol, io);
    const shrunk = await withProgress(io, found.text, (onBetter) =>
      shrinkText(found.text, { ...found.test, now: io.now, mostMs: maxMs, onBetter }),
    );
    await writeResult(found, shrunk, until, { out: options.out ?? DEFAULT_OUT, isJson: options.json }, io);
    return EXIT.ok;
  });
}

const isRule = (text: string): text is RuleId => Object.hasOwn(RULES, text);

function parseUntil(text: string | undefined): Until {
  if (text === undefined)
    throw new UsageError(
      '--until is required: a RULE that the stream must still show, or a "COMMAND" that must still exit with 0',
    );
  if (isRule(text)) return { rule: text };
  // This looks like a rule id, so it is a typo and not a command.
  if (/^[a-z-]+\/[a-z0-9-]+$/.test(text))
    throw new UsageError(`unknown rule "${text}"${didYouMean(text, Object.keys(RULES))}\n"sluice doctor rules" lists them all`);
  return { command: text };
}

function parseSeconds(text: string): number {
  const seconds = Number(text);
  if (/^\d+(\.\d+)?$/.test(text) && seconds > 0) return seconds;
  throw new UsageError(`--seconds must be a number above 0, not "${oneLine(text).slice(0, 40)}"`);
}

function chooseInput([input, another]: readonly string[], { stdin }: CliIo): string {
  if (another !== undefined) throw new UsageError(`only one input can be shrunk; "${oneLine(another)}" is the second`);
  if (input === undefined && stdin.isTTY) throw new UsageError('no input; name a FILE, or pipe one to standard input');
  return input ?? '-';
}

interface FoundStream {
  name: string;
  text: string;
  reading: Required<Reading>;
  test: Pick<ShrinkOptions, 'shows' | 'showsLoosely'>;
}

async function findStream(
  streams: readonly RecordedBody[],
  until: Until,
  named: Protocol | undefined,
  folder: string,
  io: CliIo,
): Promise<FoundStream | undefined> {
  for (const { name, bytes: body } of streams) {
    const encoding = detectEncoding(body);
    const text = Buffer.from(body).toString(encoding);
    const first = assemble(text, { protocol: named, encoding });
    const reading = { protocol: named ?? (first.protocol === null ? undefined : PROTOCOLS[first.protocol]), encoding };
    const file = join(folder, 'stream.sse');
    const test =
      'rule' in until ? createTest(until.rule, first, reading) : { shows: createCommandTest(until.command, file, encoding, io) };
    if (await test.shows(text)) return { name, text, reading, test };
  }
  return undefined;
}

/** A test that passes when the command exits with 0. The file replaces `{}`, or is appended. */
function createCommandTest(command: string, file: string, encoding: Encoding, io: CliIo): (text: string) => Promise<boolean> {
  const line = command.includes('{}') ? command.replaceAll('{}', file) : `${command} ${file}`;
  return async (text) => {
    const stream = await io.createFile(file);
    await stream.write(Buffer.from(text, encoding));
    await stream.commit();
    return (await io.runProgram({ command: line, args: [], env: io.env, isQuiet: true })) === 0;
  };
}

async function reportNothingFound(
  streams: readonly RecordedBody[],
  until: Until,
  protocol: Protocol | undefined,
  io: CliIo,
): Promise<number> {
  const { red } = chooseColors(io.stderr, io.env);
  const [only] = streams;
  const subject = streams.length === 1 && only ? oneLine(only.name) : `no stream in ${streams.length}`;
  const verb = streams.length === 1 ? 'does not show' : 'shows';
  const text = 'rule' in until ? `${subject} ${verb} ${until.rule}` : describeCommandFailure(subject, streams.length);
  await io.stderr.write(`${red('sluice:')} ${text}\n`);
  if (!('rule' in until)) return EXIT.failed;
  const diagnostics = streams.flatMap(({ bytes: body }) => {
    const encoding = detectEncoding(body);
    return assemble(Buffer.from(body).toString(encoding), { protocol, encoding }).diagnostics;
  });
  const rules = [...new Set(diagnostics.map(({ rule }) => rule))].slice(0, 12);
  await io.stderr.write(rules.length > 0 ? `Rules it shows: ${rules.join(', ')}\n` : 'It conforms to its protocol.\n');
  return EXIT.failed;
}

const describeCommandFailure = (subject: string, count: number): string =>
  count === 1 ? `the command does not exit with 0 for ${subject}` : `the command exits with 0 for ${subject}`;

const CLEAR = '\r\u001b[K';

const INTERVAL_MS = 100;

/** Shows the current size on a terminal while `run` works. */
async function withProgress(
  io: CliIo,
  text: string,
  run: (onBetter: (text: string, tries: number) => void) => Promise<Shrunk>,
): Promise<Shrunk> {
  const isShown = io.stderr.isTTY && io.env['TERM'] !== 'dumb';
  let shownAt = Number.NEGATIVE_INFINITY;
  const shrunk = await run((better, tries) => {
    if (!isShown || io.now() - shownAt < INTERVAL_MS) return;
    shownAt = io.now();
    void io.stderr.write(`${CLEAR}shrinking  ${formatBytes(text.length)} → ${formatBytes(better.length)}  ${tries} tries`);
  });
  if (isShown) await io.stderr.write(CLEAR);
  return shrunk;
}

async function writeResult(
  found: FoundStream,
  shrunk: Shrunk,
  until: Until,
  { out, isJson }: { out: string; isJson: boolean },
  io: CliIo,
): Promise<void> {
  const { encoding } = found.reading;
  const read = assemble(shrunk.text, found.reading);
  const fixture = buildCase(shrunk.text, read, until);
  const [bytesBefore, bytesAfter] = [Buffer.byteLength(found.text, encoding), Buffer.byteLength(shrunk.text, encoding)];
  // A case is a line of JSON and cannot hold bytes that are not UTF-8.
  const hasCase = encoding === 'utf8';
  const files = { stream: `${fixture.id}.sse`, ...(hasCase && { case: `${fixture.id}.jsonl` }), report: `${fixture.id}.md` };
  const facts = {
    until,
    case: fixture,
    read,
    bytesBefore,
    bytesAfter,
    tries: shrunk.tries,
    isDone: shrunk.isDone,
    version: readVersion(),
  };
  await io.makeDirectory(out);
  await writeFile(join(out, files.stream), Buffer.from(shrunk.text, encoding), io);
  if (files.case !== undefined) await writeFile(join(out, files.case), Buffer.from(`${JSON.stringify(fixture)}\n`), io);
  await writeFile(join(out, files.report), Buffer.from(writeReport({ ...facts, stream: files.stream })), io);
  const paths = Object.fromEntries(Object.entries(files).map(([kind, name]) => [kind, join(out, name)]));
  if (isJson) {
    const { tries, isDone: done } = shrunk;
    const line = formatJsonLine({
      file: found.name,
      until,
      bytes_before: bytesBefore,
      bytes_after: bytesAfter,
      tries,
      done,
      case: null,
      ...paths,
    });
    await io.stdout.write(line?.join('') ?? '');
  } else await io.stdout.write(formatSummary(found.name, shrunk, read, { bytesBefore, bytesAfter, paths }, io));
}

async function writeFile(path: string, bytes: Uint8Array, io: CliIo): Promise<void> {
  const file = await io.createFile(path);
  await file.write(bytes);
  await file.commit();
}

interface ResultFacts {
  bytesBefore: number;
  bytesAfter: number;
  paths: Record<string, string>;
}

function formatSummary(
  name: string,
  { text, tries, isDone }: Shrunk,
  { diagnostics }: AccumulatedMessage,
  sizes: ResultFacts,
  io: CliIo,
): string {
  const { bold, dim, yellow, green } = chooseColors(io.stdout, io.env);
  const late = isDone ? '' : yellow('  the time limit was reached; --seconds N raises it');
  return [
    `${green('●')} ${oneLine(name)}: ${formatBytes(sizes.bytesBefore)} → ${bold(formatBytes(sizes.bytesAfter))} in ${tries} tries${late}`,
    '',
    printable(text).trimEnd(),
    '',
    ...diagnostics.map(({ rule, offset }) => dim(`${rule} at byte ${offset}`)),
    ...Object.entries(sizes.paths).map(([kind, path]) => `${kind.padEnd(8)}${oneLine(path)}`),
    '',
  ].join('\n');
}
