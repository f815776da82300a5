import { findProtocol, type Protocol } from '@sluice/core';
import { type Closeness, type Comparable, type Difference, listDifferences, readComparable } from '@sluice/lab/tape';
import { oneLine } from '@sluice/lab/text';
import type { CliIo } from '../../terminal/io.ts';
import { type Colors, chooseColors, formatColumns, formatJsonLine } from '../../terminal/text.ts';
import { type Command, createUnknownProtocolError, defineCommand, listProtocols, UsageError } from '../command.ts';
import { type RecordedStream, readStreams } from '../inputs.ts';

const OPTIONS = {
  protocol: {
    type: 'string',
    value: 'P',
    summary: `the protocol of both (${listProtocols()}); told from the bytes when left out`,
  },
  events: { type: 'boolean', summary: 'compare event by event, instead of what they come to' },
  all: { type: 'boolean', summary: 'also ids, model names, times, signatures and fields that only one protocol has' },
  json: { type: 'boolean', summary: 'one JSON object a line and pair, on stdout; everything else on stderr' },
} as const;

/** `sluice diff`: compares two streams, responses or tapes by content. */
export const diff: Command = defineCommand({
  summary: 'two streams, whole answers or tapes, compared by what they say',
  usage: 'diff [--protocol P] [--events] [--all] [--json] A B',
  about:
    'Reads both and compares what they come to: content, tool calls, stop reason, usage, error. The two may speak different protocols, and may be cut into events differently. Ids, model names and times are different every time and not compared, unless --all asks for it. Answers of two tapes are paired by name, or in order where no name is shared. "-" is standard input. The exit code is 0 when they say the same, 1 when they do not, 2 when one of them cannot be read.',
  options: OPTIONS,
  examples: [
    { line: 'sluice diff before.sse after.sse', what: 'did the answer change?' },
    { line: 'sluice convert stream --from openai --to anthropic a.sse | sluice diff a.sse -', what: 'is something lost?' },
    { line: 'sluice diff --json tapes-monday tapes-friday | jq -c "select(.same | not)"', what: 'two recordings of one test' },
    { line: 'sluice diff --events --all a.sse b.sse', what: 'everything, one by one' },
  ],
  run: async ({ options, words }, io) => {
    const [a, b] = chooseInputs(words);
    const protocol = chooseProtocol(options.protocol);
    const pairs = pairStreams(await readStreams(a, io), await readStreams(b, io));
    let different = 0;
    for (const pair of pairs) if (!(await compareOne(pair, { ...options, protocol }, pairs.length > 1, io))) different++;
    if (pairs.length > 1 && !options.json) await io.stdout.write(`${different} of ${pairs.length} differ\n`);
    return different > 0 ? 1 : 0;
  },
});

function chooseInputs([a, b, more]: readonly string[]): [string, string] {
  if (a === undefined || b === undefined)
    throw new UsageError('name two things to compare: files, tapes, or "-" for standard input');
  if (more !== undefined) throw new UsageError(`two at a time: "${oneLine(more)}" is not expected`);
  if (a === '-' && b === '-') throw new UsageError('standard input ("-") can be read only once');
  return [a, b];
}

function chooseProtocol(name: string | undefined): Protocol | undefined {
  const protocol = name === undefined ? undefined : findProtocol(name);
  if (name !== undefined && !protocol) throw createUnknownProtocolError(name);
  return protocol;
}

type Pair = readonly [a: RecordedStream | undefined, b: RecordedStream | undefined];

/** Pairs streams by name if any name is shared, else in order. A stream without a partner is paired with undefined. */
function pairStreams(a: readonly RecordedStream[], b: readonly RecordedStream[]): Pair[] {
  const byName = new Map(b.map((stream) => [stream.name, stream]));
  if (!a.some(({ name }) => byName.has(name))) {
    return Array.from({ length: Math.max(a.length, b.length) }, (_, at): Pair => [a[at], b[at]]);
  }
  const names = new Set(a.map(({ name }) => name));
  return [
    ...a.map((stream): Pair => [stream, byName.get(stream.name)]),
    ...b.filter(({ name }) => !names.has(name)).map((stream): Pair => [undefined, stream]),
  ];
}

interface CompareOptions extends Closeness {
  protocol: Protocol | undefined;
  json: boolean;
}

/** Compares and prints one pair; true when both have the same content. */
async function compareOne([a, b]: Pair, options: CompareOptions, isOneOfMany: boolean, io: CliIo): Promise<boolean> {
  const read = (stream: RecordedStream | undefined) => stream && readComparable(stream.bytes, options.protocol, options);
  const [left, right] = [read(a), read(b)];
  const differences =
    left && right ? [...compareStatus(a, b), ...listDifferences(left.value, right.value)] : [missingPartner(a, b)];
  const isSame = differences.length === 0;
  if (options.json) {
    const line = formatJsonLine({
      a: a?.name ?? null,
      b: b?.name ?? null,
      same: isSame,
      differences: differences.map(toJsonDifference),
    });
    await io.stdout.write(line?.join('') ?? '');
  } else await io.stdout.write(formatPair({ a, b, left, right }, differences, isOneOfMany, chooseColors(io.stdout, io.env)));
  return isSame;
}

const compareStatus = (a: RecordedStream | undefined, b: RecordedStream | undefined): Difference[] =>
  a?.status === undefined || b?.status === undefined ? [] : listDifferences(a.status, b.status, 'status');

const missingPartner = (a: RecordedStream | undefined, b: RecordedStream | undefined): Difference => ({
  path: '',
  a: a?.name,
  b: b?.name,
});

/** Leaves out undefined sides, which JSON cannot express. */
const toJsonDifference = ({ path, a, b }: Difference): object => ({
  path,
  ...(a !== undefined && { a }),
  ...(b !== undefined && { b }),
});

interface Sides {
  a: RecordedStream | undefined;
  b: RecordedStream | undefined;
  left: Comparable | undefined;
  right: Comparable | undefined;
}

/** One line for an equal pair of many, else both sides and their differences. */
function formatPair(
  { a, b, left, right }: Sides,
  differences: readonly Difference[],
  isOneOfMany: boolean,
  colors: Colors,
): string {
  const { bold, dim, green, red } = colors;
  const isSame = differences.length === 0;
  if (isSame && isOneOfMany) return `${green('same')}  ${oneLine(a?.name ?? '')}\n`;
  const heads = formatColumns([formatHead('A', a, left), formatHead('B', b, right)], [bold, (cell) => cell, dim, dim]);
  const verdict = isSame
    ? green('They say the same.')
    : red(`Different in ${differences.length} place${differences.length === 1 ? '' : 's'}:`);
  return `${[...heads, verdict, ...differences.slice(0, MAX_SHOWN).flatMap((difference) => formatDifference(difference, colors))].join('\n')}\n${formatRest(differences)}`;
}

const MAX_SHOWN = 40;

const formatRest = ({ length }: readonly Difference[]): string =>
  length > MAX_SHOWN ? `  … and ${length - MAX_SHOWN} more (--json has them all)\n` : '';

function formatHead(side: string, stream: RecordedStream | undefined, comparable: Comparable | undefined): string[] {
  if (!stream || !comparable) return [side, 'nothing'];
  const { protocol, text, tool_calls: calls, finish_reason: finish, error } = comparable.read;
  const facts = [
    `${text.length} characters`,
    ...(calls.length > 0 ? [`${calls.length} calls`] : []),
    error ? String(error.code) : (finish ?? 'cut off'),
  ];
  return [side, oneLine(stream.name), protocol ?? 'unknown', oneLine(facts.join(', '))];
}

const MAX_EXCERPT = 72;

function formatDifference({ path, a, b }: Difference, { cyan, dim, green, red }: Colors): string[] {
  const at = typeof a === 'string' && typeof b === 'string' ? firstDifference(a, b) : 0;
  const place = at > 0 ? dim(` from character ${at}`) : '';
  return [
    `  ${cyan(oneLine(path === '' ? '(whole)' : path))}${place}`,
    red(`    - ${formatExcerpt(a, at)}`),
    green(`    + ${formatExcerpt(b, at)}`),
  ];
}

function firstDifference(a: string, b: string): number {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  return at;
}

/** A value in one line, starting shortly before the position where it differs. */
function formatExcerpt(value: unknown, at: number): string {
  if (value === undefined) return '(nothing)';
  const from = Math.max(0, at - 12);
  const text = typeof value === 'string' ? value.slice(from) : JSON.stringify(value);
  const cut = text.length > MAX_EXCERPT ? `${text.slice(0, MAX_EXCERPT)}…` : text;
  return oneLine(`${from > 0 ? '…' : ''}${typeof value === 'string' ? JSON.stringify(cut) : cut}`);
}
