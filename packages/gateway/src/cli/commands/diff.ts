import type { Protocol } from '@sluice/core';
import { type Closeness, type Comparable, type Difference, listDifferences, readComparable } from '@sluice/lab/tape';
import { oneLine } from '@sluice/lab/text';
import { EXIT, UsageError } from '../../terminal/errors.ts';
import { chooseProtocols, type RecordedBody, readBodies } from '../../terminal/inputs.ts';
import type { CliIo } from '../../terminal/io.ts';
import { type Colors, chooseColors, formatColumns, formatJsonLine } from '../../terminal/text.ts';

interface Options {
  protocol: string | undefined;
  events: boolean;
  all: boolean;
  json: boolean;
}

/** `sluice diff`: compares two streams, responses, folders or tapes by content. */
export async function run({ options, words }: { options: Options; words: string[] }, io: CliIo): Promise<number> {
  const [a, b] = chooseInputs(words);
  const job = { ...options, protocol: options.protocol === undefined ? undefined : chooseProtocols(options.protocol)[0] };
  const pairs = pairStreams(await readBodies(a, io), await readBodies(b, io));
  let different = 0;
  for (const pair of pairs) if (!(await compareOne(pair, job, pairs.length > 1, io))) different++;
  if (pairs.length > 1 && !options.json) await io.stdout.write(`${different} of ${pairs.length} differ\n`);
  return different > 0 ? EXIT.failed : EXIT.ok;
}

function chooseInputs([a, b, more]: readonly string[]): [string, string] {
  if (a === undefined || b === undefined)
    throw new UsageError('name two inputs: files, folders, tapes, or "-" for standard input');
  if (more !== undefined) throw new UsageError(`only two inputs can be compared; "${oneLine(more)}" is the third`);
  if (a === '-' && b === '-') throw new UsageError('standard input ("-") can be read only once');
  return [a, b];
}

type Pair = readonly [a: RecordedBody | undefined, b: RecordedBody | undefined];

/** Pairs streams by name if any name is shared, else in order. A stream without a partner is paired with undefined. */
function pairStreams(a: readonly RecordedBody[], b: readonly RecordedBody[]): Pair[] {
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
  const read = (stream: RecordedBody | undefined) => stream && readComparable(stream.bytes, options.protocol, options);
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

const compareStatus = (a: RecordedBody | undefined, b: RecordedBody | undefined): Difference[] =>
  a?.status === undefined || b?.status === undefined ? [] : listDifferences(a.status, b.status, 'status');

const missingPartner = (a: RecordedBody | undefined, b: RecordedBody | undefined): Difference => ({
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
  a: RecordedBody | undefined;
  b: RecordedBody | undefined;
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
    ? green('The contents are equal.')
    : red(`${differences.length} difference${differences.length === 1 ? '' : 's'}:`);
  return `${[...heads, verdict, ...differences.slice(0, MAX_SHOWN).flatMap((difference) => formatDifference(difference, colors))].join('\n')}\n${formatRest(differences)}`;
}

const MAX_SHOWN = 40;

const formatRest = ({ length }: readonly Difference[]): string =>
  length > MAX_SHOWN ? `  … and ${length - MAX_SHOWN} more (--json prints all)\n` : '';

function formatHead(side: string, stream: RecordedBody | undefined, comparable: Comparable | undefined): string[] {
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
