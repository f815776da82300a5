/** The log: JSON lines for programs, and readable lines for a terminal. */

import { oneLine, safeJson } from '@sluice/lab/text';
import { type Logger, pino } from 'pino';
import type { Colors } from '../terminal/text.ts';

export type { Logger } from 'pino';

/**
 * A logger that writes one JSON line per record, on standard error unless `write` is given, through `redact`.
 * Characters that end a line, reorder text or control a terminal are escaped, because records quote clients and
 * upstreams. `format` rewrites the line, for a terminal.
 */
export function createLog(
  level: string,
  redact: (text: string) => string,
  write: (line: string) => void = writeToStderr,
  format: (line: string) => string = (line) => line,
): Logger {
  return pino(
    {
      level,
      base: null,
      formatters: { level: (label) => ({ level: label }), log: shortenFields },
    },
    { write: (line: string) => write(format(safeJson(redact(line)))) },
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

/** The message of the record of a finished request. */
export const REQUEST_MESSAGE = 'answered';

/** Formats JSON lines of the log as readable ones. It costs 16 us a line, on a terminal only. */
export const createLineFormat =
  (colors: Colors) =>
  (line: string): string => {
    const { time, level, msg, ...fields }: LogRecord = JSON.parse(line);
    const clock = colors.dim(formatTime(new Date(time)));
    return `${clock} ${msg === REQUEST_MESSAGE ? formatRequest(fields, colors) : formatEvent(level, msg, fields, colors)}\n`;
  };

interface LogRecord extends Fields {
  time: number;
  level: string;
  msg: string;
}

type Fields = Readonly<Record<string, unknown>>;

const formatTime = (date: Date): string =>
  [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, '0')).join(':');

/** Formats `200  anthropic-messages → openai-chat  fast → groq/llama-3  120 in, 45 out  832 ms`, and `200 cut  …` in yellow. */
function formatRequest(fields: Fields, { dim, green, red, yellow }: Colors): string {
  const status = Number(fields['status']);
  const isFine = status < 400 && fields['ending'] === REQUEST_MESSAGE;
  const paint = isFine ? green : status < 500 ? yellow : red;
  const parts: [text: string, paint: (text: string) => string][] = [
    [isFine || status >= 400 ? String(status) : `${status} ${describeCut(fields)}`, paint],
    [formatRoute(fields), String],
    [formatModel(fields), String],
    [formatTokens(fields), String],
    [`${fields['ms']} ms`, dim],
    [isFine ? '' : formatFailure(fields), paint],
  ];
  return parts.flatMap(([text, color]) => (text === '' ? [] : [color(oneLine(text))])).join('  ');
}

/** What became of a response after its head with status 200, in a word. */
function describeCut({ ending, error }: Fields): string {
  if (error === 'STREAM_TRUNCATED') return ENDING_WORDS['upstream_truncated'] ?? '';
  const word = typeof ending === 'string' && Object.hasOwn(ENDING_WORDS, ending) ? ENDING_WORDS[ending] : undefined;
  return word ?? 'failed';
}

const ENDING_WORDS: Readonly<Record<string, string>> = {
  upstream_truncated: 'cut',
  upstream_malformed: 'malformed',
  timeout: 'timed out',
  stopped: 'stopped',
  client_aborted: 'left',
  client_stalled: 'stalled',
};

const joinTexts = (values: readonly unknown[], separator: string): string =>
  values.filter((value) => typeof value === 'string' && value !== '').join(separator);

/** Both protocols, or the endpoint of a request that was not sent to a provider. */
const formatRoute = ({ provider, method, path, client_protocol: client, upstream_protocol: upstream }: Fields): string =>
  provider === undefined ? joinTexts([method, path], ' ') : joinTexts([client, upstream], ' → ');

/** The requested name, and what it stands for. */
function formatModel({ requested, provider, model }: Fields): string {
  const target = joinTexts([provider, model], '/');
  return requested === target ? target : joinTexts([requested, target], ' → ');
}

const formatTokens = ({ input_tokens: input, output_tokens: output }: Fields): string =>
  input === undefined && output === undefined ? '' : `${input ?? 0} in, ${output ?? 0} out`;

const formatFailure = ({ ending, error, reason }: Fields): string => joinTexts([error ?? ending, reason], ': ');

/** Formats `warn attempt failed  provider=groq  error=RATE_LIMIT`. */
function formatEvent(level: string, message: string, fields: Fields, { cyan, dim, red, yellow }: Colors): string {
  const paint = level === 'error' || level === 'fatal' ? red : level === 'warn' ? yellow : cyan;
  const details = Object.entries(fields)
    .filter(([name]) => name !== 'request_id')
    .map(([name, value]) => `${dim(`${name}=`)}${oneLine(typeof value === 'string' ? value : JSON.stringify(value))}`);
  return [`${paint(level)} ${oneLine(message)}`, ...details].join('  ');
}
