import { type Logger, pino } from 'pino';

export type { Logger };

/** One JSON line a record on standard error; `redact` is told every text before it leaves. */
export function createLog(level: string, redact: (text: string) => string): Logger {
  return pino(
    {
      level,
      base: null,
      formatters: { level: (label) => ({ level: label }), log: shortened },
    },
    { write: (line: string) => void process.stderr.write(redact(line)) },
  );
}

/** What strangers said may be of any length. */
const LONGEST = 4096;

function shortened(fields: Record<string, unknown>): Record<string, unknown> {
  const isLong = (value: unknown): value is string => typeof value === 'string' && value.length > LONGEST;
  if (!Object.values(fields).some(isLong)) return fields;
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, isLong(value) ? value.slice(0, LONGEST) : value]),
  );
}
