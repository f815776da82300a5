import { safeJson } from '@sluice/lab/text';
import { type Logger, pino } from 'pino';

export type { Logger } from 'pino';

/**
 * A logger that writes one JSON line per record, on standard error unless `write` is given, through `redact`.
 * Characters that end a line, reorder text or control a terminal are escaped, because records quote clients and
 * upstreams.
 */
export function createLog(
  level: string,
  redact: (text: string) => string,
  write: (line: string) => void = writeToStderr,
): Logger {
  return pino(
    {
      level,
      base: null,
      formatters: { level: (label) => ({ level: label }), log: shortenFields },
    },
    { write: (line: string) => write(safeJson(redact(line))) },
  );
}

const writeToStderr = (line: string): void => void process.stderr.write(line);

/** Texts of clients and upstreams may be of any length. */
const MAX_FIELD_LENGTH = 4096;

function shortenFields(fields: Record<string, unknown>): Record<string, unknown> {
  const isLong = (value: unknown): value is string => typeof value === 'string' && value.length > MAX_FIELD_LENGTH;
  if (!Object.values(fields).some(isLong)) return fields;
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, isLong(value) ? value.slice(0, MAX_FIELD_LENGTH) : value]),
  );
}
