import { oneLine } from '@sluice/lab/text';
import type { ExchangeDetail, ExchangeRow } from '../../store/index.ts';
import { EXIT, UsageError } from '../../terminal/errors.ts';
import { type CliIo, untilStopped } from '../../terminal/io.ts';
import { chooseColors, formatJsonLine } from '../../terminal/text.ts';
import { describeDetail, describeExchange, formatDetail, formatExchange, formatHeader } from '../ledger/exchange-text.ts';
import { type SourceOptions, withSource } from '../ledger/open.ts';
import { type LedgerSource, type LogFilter, readFilter } from '../ledger/source.ts';

interface Options extends SourceOptions {
  follow: boolean;
  limit: string | undefined;
  json: boolean;
}

const DEFAULT_LIMIT = 20;

/** The exchanges that `--follow` begins with. */
const DEFAULT_BEFORE = 10;

const MAX_LIMIT = 10_000_000;

/** Rows of one page. `--follow` begins with at most so many, because they are shown in the order of time. */
const PAGE_ROWS = 500;

/** `sluice log`: lists exchanges, follows them, or shows one. */
export async function run({ options, words }: { options: Options; words: string[] }, io: CliIo): Promise<number> {
  const id = words.length === 1 && isId(words[0] ?? '') ? words[0] : undefined;
  if (id !== undefined && options.follow) throw new UsageError('--follow lists exchanges as they end; omit the id');
  const filter = readFilter(id === undefined ? words.join(' ') : `id:${id}|*-${id}`, Date.now());
  const limit = readLimit(options);
  const log = new Log(io, options.json);
  return withSource(options, io, async (source) => {
    if (id !== undefined) return showOne(source, id, filter, log);
    return options.follow ? follow(source, filter, limit, log) : list(source, filter, limit, log);
  });
}

/** An id of an exchange or request, or the last part of one. A word of a filter has a colon. */
const isId = (word: string): boolean => /^[0-9a-f]{8,12}$|^[0-9a-f]{8}-[0-9a-f-]{27}$/i.test(word);

function readLimit({ limit, follow }: Options): number {
  if (limit === undefined) return follow ? DEFAULT_BEFORE : DEFAULT_LIMIT;
  const count = Number(limit);
  const max = follow ? PAGE_ROWS : MAX_LIMIT;
  const min = follow ? 0 : 1;
  if (/^\d{1,8}$/.test(limit) && count >= min && count <= max) return count;
  throw new UsageError(
    `--limit must be a number from ${min} to ${max}${follow ? ' with --follow' : ''}, not "${oneLine(limit.slice(0, 40))}"`,
  );
}

/** Writes exchanges to stdout, and remarks to stderr. */
class Log {
  readonly #io: CliIo;
  readonly #isJson: boolean;
  #hasHeader = false;

  constructor(io: CliIo, isJson: boolean) {
    this.#io = io;
    this.#isJson = isJson;
  }

  get #style() {
    const { stdout, env } = this.#io;
    return { colors: chooseColors(stdout, env), columns: stdout.columns };
  }

  async writeRows(rows: readonly ExchangeRow[]): Promise<void> {
    if (rows.length === 0) return;
    const lines = rows.map((row) =>
      this.#isJson ? (formatJsonLine(describeExchange(row))?.join('') ?? '') : `${formatExchange(row, this.#style)}\n`,
    );
    // A pipe gets rows only, for tools that work by lines.
    const header = this.#isJson || this.#hasHeader || !this.#io.stdout.isTTY ? '' : `${formatHeader(this.#style)}\n`;
    this.#hasHeader = true;
    await this.#io.stdout.write(header + lines.join(''));
  }

  async writeDetail(detail: ExchangeDetail): Promise<void> {
    await this.#io.stdout.write(
      this.#isJson ? (formatJsonLine(describeDetail(detail))?.join('') ?? '') : formatDetail(detail, this.#style),
    );
  }

  async remark(text: string): Promise<void> {
    const { dim } = chooseColors(this.#io.stderr, this.#io.env);
    await this.#io.stderr.write(`${dim(`sluice: ${oneLine(text)}`)}\n`);
  }
}

/** Prints page by page, so that memory does not grow with the number of exchanges. */
async function list(source: LedgerSource, filter: LogFilter, limit: number, log: Log): Promise<number> {
  let cursor: string | null = null;
  let left = limit;
  do {
    const page = await source.list({ filter, cursor, limit: Math.min(left, PAGE_ROWS) });
    await log.writeRows(page.exchanges);
    left -= page.exchanges.length;
    cursor = page.next;
  } while (cursor !== null && left > 0);
  if (left === limit) await log.remark('no exchange matches');
  if (cursor !== null) await log.remark(`there may be more than ${limit}; use --limit`);
  return EXIT.ok;
}

async function showOne(source: LedgerSource, id: string, filter: LogFilter, log: Log): Promise<number> {
  const detail = (await source.get(id)) ?? (await findOne(source, filter));
  if (detail === null) {
    await log.remark(`no exchange has the id ${id}; "sluice log" lists the newest, with their ids`);
    return EXIT.failed;
  }
  await log.writeDetail(detail);
  if (source.console !== undefined) await log.remark(`in the console: ${source.console}/#/exchanges?id=${detail.exchange.id}`);
  return EXIT.ok;
}

/** The newest exchange with this request id, or with an id that ends so. */
async function findOne(source: LedgerSource, filter: LogFilter): Promise<ExchangeDetail | null> {
  let cursor: string | null = null;
  do {
    const page = await source.list({ filter, cursor, limit: 1 });
    const [found] = page.exchanges;
    if (found) return source.get(found.id);
    cursor = page.next;
  } while (cursor !== null);
  return null;
}

async function follow(source: LedgerSource, filter: LogFilter, before: number, log: Log): Promise<number> {
  const controller = new AbortController();
  void untilStopped(async () => controller.abort());
  const shown = new RecentIds();
  // Before the list, so that nothing that ends meanwhile is missed.
  const rows = await source.follow(filter, controller.signal, (text) => log.remark(text));
  await log.remark('following; Ctrl-C ends it');
  if (before > 0) {
    const { exchanges } = await source.list({ filter, cursor: null, limit: before });
    const settled = exchanges.filter(({ state }) => state !== 'open').reverse();
    for (const { id } of settled) shown.add(id);
    await log.writeRows(settled);
  }
  for await (const row of rows) if (shown.add(row.id)) await log.writeRows([row]);
  return EXIT.ok;
}

/** Ids that were shown: a gateway repeats rows after a lost connection. */
class RecentIds {
  readonly #ids = new Set<string>();

  /** Whether the id is new. */
  add(id: string): boolean {
    if (this.#ids.has(id)) return false;
    this.#ids.add(id);
    const [oldest] = this.#ids.size > MAX_RECENT ? this.#ids : [];
    if (oldest !== undefined) this.#ids.delete(oldest);
    return true;
  }
}

const MAX_RECENT = 10_000;
