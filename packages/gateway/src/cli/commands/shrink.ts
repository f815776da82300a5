import { join } from 'node:path';
import { type AccumulatedMessage, findProtocol, PROTOCOLS, type Protocol, RULES, type RuleId } from '@sluice/core';
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
import type { CliIo } from '../../terminal/io.ts';
import { chooseColors, formatBytes, formatJsonLine } from '../../terminal/text.ts';
import { type Command, createUnknownProtocolError, defineCommand, listProtocols, UsageError } from '../command.ts';
import { readVersion } from '../help.ts';
import { type RecordedStream, readStreams } from '../inputs.ts';

const OPTIONS = {
  until: {
    type: 'string',
    value: 'RULE|COMMAND',
    summary: 'what the stream must still show: a rule, or a command that exits with 0 for it ({} is the file)',
  },
  protocol: {
    type: 'string',
    value: 'P',
    summary: `the protocol of the stream (${listProtocols()}); told from the bytes when left out`,
  },
  out: { type: 'string', value: 'DIR', summary: 'where case, stream and report are written (shrunk)' },
  seconds: { type: 'string', value: 'N', summary: 'how long it may take; what is reached by then is the result (25)' },
  json: { type: 'boolean', summary: 'one JSON object about the result on stdout; everything else on stderr' },
} as const;

const DEFAULT_OUT = 'shrunk';

const DEFAULT_SECONDS = '25';

/** `sluice shrink`: reduces a recorded stream to the smallest one that still shows a problem. */
export const shrink: Command = defineCommand({
  summary: 'the smallest stream that still shows a departure, or still breaks a program, as a case and a report',
  usage: 'shrink --until RULE|"COMMAND" [--protocol P] [--out DIR] [--seconds N] [--json] TAPE|FILE',
  about:
    'Leaves out events, lines, fields and text as long as what is left still shows it: a rule that "sluice doctor" names, or a command of yours that exits with 0 as long as it is there. Texts that do not matter are replaced, so that the result can be shown around. Of a tape, the first answer that shows it is taken. Writes the stream (.sse), a case for fixtures/ (.jsonl; none for bytes that are not UTF-8) and a report (.md). With a rule, the result ends as the input does, and has no other departures than the input unless that would leave too much.',
  options: OPTIONS,
  examples: [
    { line: 'sluice shrink --until chat/tool-index-missing answer.sse', what: 'why does Sluice complain?' },
    { line: 'sluice shrink --until "! node parse.js {}" answer.sse', what: 'what is it that breaks my parser?' },
    {
      line: 'sluice shrink --until "python check.py {}" --seconds 120 tapes',
      what: 'the first answer of a tape, with more time',
    },
    { line: 'cat shrunk/*.jsonl >> fixtures/cases-own.jsonl', what: 'afterwards: keep it as a test' },
  ],
  run: async ({ options, words }, io) => {
    const until = parseUntil(options.until);
    const protocol = chooseProtocol(options.protocol);
    const maxMs = parseSeconds(options.seconds ?? DEFAULT_SECONDS) * 1000;
    const streams = await readStreams(chooseInput(words, io), io);
    return io.inTemporaryFolder(async (folder) => {
      const found = await findStream(streams, until, protocol, folder, io);
      if (!found) return reportNothingFound(streams, until, protocol, io);
      const shrunk = await withProgress(io, found.text, (onBetter) =>
        shrinkText(found.text, { ...found.test, now: io.now, mostMs: maxMs, onBetter }),
      );
      await writeResult(found, shrunk, until, { out: options.out ?? DEFAULT_OUT, isJson: options.json }, io);
      return 0;
    });
  },
});

const isRule = (text: string): text is RuleId => Object.hasOwn(RULES, text);

function parseUntil(text: string | undefined): Until {
  if (text === undefined) throw new UsageError('--until is missing: say what the stream must still show, a RULE or a "COMMAND"');
  if (isRule(text)) return { rule: text };
  // This looks like a rule id, so it is a typo and not a command.
  if (/^[a-z-]+\/[a-z0-9-]+$/.test(text))
    throw new UsageError(`unknown rule "${text}"${didYouMean(text, Object.keys(RULES))}\n"sluice doctor rules" lists them all`);
  return { command: text };
}

function chooseProtocol(name: string | undefined): Protocol | undefined {
  if (name === undefined) return undefined;
  return findProtocol(name) ?? throwError(createUnknownProtocolError(name));
}

const throwError = (error: Error): never => {
  throw error;
};

function parseSeconds(text: string): number {
  const seconds = Number(text);
  if (/^\d+(\.\d+)?$/.test(text) && seconds > 0) return seconds;
  throw new UsageError(`--seconds must be a number above 0, not "${oneLine(text).slice(0, 40)}"`);
}

function chooseInput([input, another]: readonly string[], { stdin }: CliIo): string {
  if (another !== undefined) throw new UsageError(`one input at a time: "${oneLine(another)}" is not expected`);
  if (input === undefined && stdin.isTTY) throw new UsageError('no input: name a TAPE or a FILE, or send one to standard input');
  return input ?? '-';
}

interface FoundStream {
  name: string;
  text: string;
  reading: Required<Reading>;
  test: Pick<ShrinkOptions, 'shows' | 'showsLoosely'>;
}

async function findStream(
  streams: readonly RecordedStream[],
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
  streams: readonly RecordedStream[],
  until: Until,
  protocol: Protocol | undefined,
  io: CliIo,
): Promise<number> {
  const { red } = chooseColors(io.stderr, io.env);
  const what = streams.length === 1 ? oneLine(streams[0]?.name ?? '') : `none of ${streams.length} streams`;
  const verb = 'rule' in until ? `does not show ${until.rule}` : 'is no stream for which the command exits with 0';
  await io.stderr.write(`${red('sluice:')} ${what} ${verb}\n`);
  if (!('rule' in until)) return 1;
  const diagnostics = streams.flatMap(({ bytes: body }) => {
    const encoding = detectEncoding(body);
    return assemble(Buffer.from(body).toString(encoding), { protocol, encoding }).diagnostics;
  });
  const rules = [...new Set(diagnostics.map(({ rule }) => rule))].slice(0, 12);
  await io.stderr.write(rules.length > 0 ? `Met there: ${rules.join(', ')}\n` : 'No departure was met there.\n');
  return 1;
}

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
  const late = isDone ? '' : yellow('  the time was over before everything had been tried: --seconds gives it more');
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
