import { didYouMean, oneLine } from '@sluice/lab/text';
import type { UsageQuery } from '../../store/index.ts';
import { EXIT, UsageError } from '../../terminal/errors.ts';
import type { CliIo } from '../../terminal/io.ts';
import { chooseColors, formatJsonLine } from '../../terminal/text.ts';
import { type SourceOptions, withSource } from '../ledger/open.ts';
import { type LedgerSource, readMoment } from '../ledger/source.ts';
import { describeUsage, fillDays, formatCsv, formatUsage, labelKeys, sumRows } from '../ledger/usage-text.ts';

interface Options extends SourceOptions {
  by: string | undefined;
  since: string | undefined;
  until: string | undefined;
  bucket: string | undefined;
  json: boolean;
  csv: boolean;
}

const GROUPS = ['key', 'model', 'provider', 'tag', 'day'] as const satisfies readonly UsageQuery['by'][];

const BUCKETS = ['hour', 'day'] as const satisfies readonly UsageQuery['bucket'][];

/** `sluice usage`: shows tokens and costs. */
export async function run({ options, words }: { options: Options; words: string[] }, io: CliIo): Promise<number> {
  if (words[0] !== undefined) throw new UsageError(`unexpected argument "${oneLine(words[0])}"; group with --by`);
  if (options.json && options.csv) throw new UsageError('--json and --csv exclude each other');
  const query = readQuery(options, Date.now());
  return withSource(options, io, (source) => show(source, query, options, io));
}

type RangedQuery = UsageQuery & { readonly since: number };

function readQuery({ by = 'model', since = '7d', until, bucket }: Options, now: number): RangedQuery {
  const group = readChoice('by', by, GROUPS);
  const length = bucket === undefined ? undefined : readChoice('bucket', bucket, BUCKETS);
  if (group === 'day' && length === 'hour') throw new UsageError('--by day has buckets of a day; omit --bucket');
  const from = readMoment('since', since, now);
  const to = until === undefined ? undefined : readMoment('until', until, now);
  if (to !== undefined && to <= from) throw new UsageError('--until must be later than --since');
  return { by: group, since: from, ...(to !== undefined && { until: to }), ...(length && { bucket: length }) };
}

function readChoice<const Word extends string>(option: string, text: string, words: readonly Word[]): Word {
  const found = words.find((word) => word === text);
  if (found === undefined)
    throw new UsageError(`--${option} must be one of ${words.join(', ')}, not "${oneLine(text)}"${didYouMean(text, words)}`);
  return found;
}

async function show(source: LedgerSource, query: RangedQuery, { json, csv }: Options, io: CliIo): Promise<number> {
  const { by, since, until, bucket } = query;
  const rows = await source.usage(query);
  const keyNames = by === 'key' ? await source.keyNames() : undefined;
  if (csv) for (const line of formatCsv(rows, by, keyNames)) await io.stdout.write(line);
  else if (json) for (const row of rows) await io.stdout.write(formatJsonLine(describeUsage(row, by, keyNames))?.join('') ?? '');
  else {
    // A request has any number of tags, so their sums are not the sum of the requests.
    const counted = by === 'tag' ? await source.usage({ ...query, by: 'provider' }) : rows;
    const shown = by === 'day' ? fillDays(rows) : rows;
    const report = { by, since, until, bucket: by === 'day' ? 'day' : bucket, rows: shown, total: sumRows(counted) } as const;
    await io.stdout.write(
      formatUsage(
        { ...report, ...(keyNames && { keyLabels: labelKeys(keyNames) }) },
        { colors: chooseColors(io.stdout, io.env), columns: io.stdout.columns },
      ),
    );
  }
  return EXIT.ok;
}
