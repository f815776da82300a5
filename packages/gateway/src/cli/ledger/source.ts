/** What commands that show usage and exchanges read from, and how the user names what to read. */

import { oneLine } from '@sluice/lab/text';
import {
  type ExchangeDetail,
  type ExchangePage,
  type ExchangeRow,
  type Filter,
  parseFilter,
  type UsageQuery,
  type UsageRow,
} from '../../store/index.ts';
import { UsageError } from '../../terminal/errors.ts';

/** A filter as it was typed, for the admin API, and parsed, for the store and for rows that arrive later. */
export interface LogFilter {
  readonly text: string;
  readonly parsed: Filter;
}

/** A page to read. */
export interface PageQuery {
  readonly filter: LogFilter;
  readonly cursor: string | null;
  readonly limit: number;
}

/** Shows a remark. */
export type Notify = (text: string) => Promise<void>;

/** What commands need of a source. */
export interface LedgerSource {
  /** For messages. */
  readonly name: string;
  /** The address of the console; absent without a gateway. */
  readonly console?: string;
  /** A page of exchanges, newest first. */
  list(query: PageQuery): Promise<ExchangePage>;
  /** One exchange by its id; null when it is unknown. */
  get(id: string): Promise<ExchangeDetail | null>;
  usage(query: UsageQuery): Promise<UsageRow[]>;
  /** Names of stored client keys by their public ids. */
  keyNames(): Promise<ReadonlyMap<string, string>>;
  /**
   * Exchanges as they settle, until the signal. Those that settle after the promise resolves are not missed; `onNotice` receives
   * what the user should know.
   */
  follow(filter: LogFilter, signal: AbortSignal, onNotice: Notify): Promise<AsyncIterable<ExchangeRow>>;
  close(): Promise<unknown>;
}

/** Parses a filter, or explains what is wrong with it. */
export function readFilter(text: string, now: number): LogFilter {
  const { filter, problems } = parseFilter(text, now);
  if (problems.length > 0) throw new UsageError(problems.map(({ message }) => oneLine(message)).join('\n'));
  return { text, parsed: filter };
}

/** Parses a moment, such as `7d`, `2026-11-01` or a time with its offset; `name` is `since` or `until`. */
export function readMoment(name: 'since' | 'until', text: string, now: number): number {
  // Quotes and spaces would begin another term of the filter.
  const { filter, problems } = parseFilter(`${name}:${text.replace(/["\s]/g, '?')}`, now);
  const [condition] = filter;
  const ms = condition?.kind === 'time' ? (condition.from ?? condition.to) : null;
  if (ms === null) throw new UsageError(`--${oneLine(problems[0]?.message ?? `${name}: not a time`)}`);
  return ms;
}
