import { oneLine } from '@sluice/lab/text';
import { EXIT, UsageError } from '../../terminal/errors.ts';
import type { CliIo } from '../../terminal/io.ts';
import { chooseColors, formatJsonLine } from '../../terminal/text.ts';
import { type AuditView, type KeySource, withKeys } from '../keys/source.ts';
import { formatAudit } from '../keys/text.ts';
import type { SourceOptions } from '../ledger/open.ts';

interface Options extends SourceOptions {
  limit: string | undefined;
  json: boolean;
}

const DEFAULT_ROWS = 50;

const MAX_ROWS = 100_000;

const PAGE_ROWS = 1000;

/** `sluice audit`: lists what operators changed. */
export async function run({ options, words }: { options: Options; words: string[] }, io: CliIo): Promise<number> {
  if (words[0] !== undefined) throw new UsageError(`unexpected argument "${oneLine(words[0])}"`);
  const limit = readLimit(options.limit);
  return withKeys(options, io, 'read', async (source) => {
    const entries = await readEntries(source, limit);
    if (options.json) for (const entry of entries) await io.stdout.write(formatJsonLine(entry)?.join('') ?? '');
    else await io.stdout.write(formatAudit(entries, chooseColors(io.stdout, io.env)));
    return EXIT.ok;
  });
}

function readLimit(text: string | undefined): number {
  if (text === undefined) return DEFAULT_ROWS;
  const limit = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > MAX_ROWS) throw new UsageError(`--limit must be a number from 1 to ${MAX_ROWS}`);
  return limit;
}

async function readEntries(source: KeySource, limit: number): Promise<AuditView[]> {
  const entries: AuditView[] = [];
  for (let cursor: string | null = null; ; ) {
    const page = await source.audit({ cursor, limit: Math.min(PAGE_ROWS, limit - entries.length) });
    entries.push(...page.entries);
    if (page.next === null || entries.length >= limit || page.entries.length === 0) return entries;
    cursor = page.next;
  }
}
