import { safeJson } from '@sluice/lab/text';
import { type Logger, pino } from 'pino';

export type { Logger } from 'pino';

/**
 * One JSON line a record, on standard error unless `write` says otherwise; `redact` sees every line first. Characters that end a line, reorder
 * text or control a terminal are escaped: logs hold the words of clients and upstreams.
 */
export function createLog(level: string, redact: (text: string) => string, write: (line: string) => void = toStderr): Logger {
  return pino(
    {
      level,
      base: null,
      formatters: { level: (label) => ({ level: label }), log: shortened },
    },
    { write: (line: string) => write(safeJson(redact(line))) },
  );
}

const toStderr = (line: string): void => void process.stderr.write(line);

/** What strangers said may be of any length. */
const MAX_LENGTH = 4096;

function shortened(fields: Record<string, unknown>): Record<string, unknown> {
  const isLong = (value: unknown): value is string => typeof value === 'string' && value.length > MAX_LENGTH;
  if (!Object.values(fields).some(isLong)) return fields;
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, isLong(value) ? value.slice(0, MAX_LENGTH) : value]),
  );
}
