/** What can go wrong in a command: wrong usage, unreadable inputs, failed streams, and what to do about each. */

import type { AccumulatedError, AccumulatedMessage, ErrorCode } from '@sluice/core';
import { readCode, systemCode } from '@sluice/lab/text';

/** Exit codes of all commands. The worst one over all inputs is the exit code of the command. */
export const EXIT = {
  ok: 0,
  /** A finding, or a failure of an input that could be read. */
  failed: 1,
  /** Wrong usage, or an input that cannot be read. */
  unusable: 2,
} as const;

/** A mistake on the command line: it is shown without a stack trace and the exit code is 2. */
export class UsageError extends Error {}

/** An input that cannot be opened or read. */
export class UnreadableError extends Error {
  /** As an error of the input, for reports that name the input themselves. */
  readonly failure: AccumulatedError;

  constructor(file: string, failure: AccumulatedError, cause?: unknown) {
    super(`${file}: ${failure.message}`, { cause });
    this.failure = failure;
  }
}

/** Converts a system error to an `UnreadableError`; every other error is returned as it is. */
export function toUnreadable(error: unknown, file: string): unknown {
  const code = systemCode(error);
  return code === undefined ? error : new UnreadableError(file, describeSystemError(code, error, file), error);
}

/** Whether the reader of our output has closed the pipe, as `head` does after its lines. */
export function isBrokenPipe(error: unknown): boolean {
  const code = readCode(error);
  return code === 'EPIPE' || code === 'ERR_STREAM_DESTROYED';
}

/** An error of reading a file as a message with advice. */
function describeSystemError(code: string, error: unknown, file: string): AccumulatedError {
  const known = Object.hasOwn(SYSTEM_ERRORS, code) ? SYSTEM_ERRORS[code] : undefined;
  const isUrl = code === 'ENOENT' && /^https?:\/\//.test(file);
  const message = isUrl ? `this is a URL, not a file; save the response first: curl -N ${file} > FILE` : known?.read;
  return { code, message: message ?? `reading failed: ${String(error)}`, canonical: known?.canonical ?? 'INTERNAL' };
}

/** An error of writing a file or folder as a message with advice; undefined for errors that are none of the system. */
export function describeWriteError(error: unknown): string | undefined {
  const code = systemCode(error);
  if (code === undefined) return undefined;
  const known = Object.hasOwn(SYSTEM_ERRORS, code) ? SYSTEM_ERRORS[code]?.write : undefined;
  return known ?? `writing failed: ${error instanceof Error ? error.message : code}`;
}

interface SystemError {
  readonly canonical: ErrorCode;
  /** The message when a file is read. */
  readonly read?: string;
  /** The message when a file or folder is written. */
  readonly write?: string;
}

/** What system errors mean, and what to do about them: the one place that words errors of files. */
const SYSTEM_ERRORS: Readonly<Record<string, SystemError>> = {
  ENOENT: {
    canonical: 'NOT_FOUND',
    read: 'no such file; check the path',
    write: 'its folder does not exist; create that, or name another path',
  },
  ENOTDIR: {
    canonical: 'NOT_FOUND',
    read: 'a part of the path is not a directory; check the path',
    write: 'a part of the path is a file; name another path',
  },
  EISDIR: {
    canonical: 'INVALID_INPUT',
    read: 'this is a directory; name a file in it',
    write: 'this is a directory; name a file in it',
  },
  EEXIST: { canonical: 'CONFLICT', write: 'this is a file, and a folder is needed; name another path' },
  EACCES: {
    canonical: 'PERMISSION',
    read: 'permission denied; check who may read the file (ls -l)',
    write: 'permission denied; check who may write there (ls -ld), or name another path',
  },
  EPERM: {
    canonical: 'PERMISSION',
    read: 'operation not permitted; check who may read the file (ls -l)',
    write: 'operation not permitted; check who may write there (ls -ld), or name another path',
  },
  EROFS: { canonical: 'PERMISSION', write: 'the file system is read-only; name another path' },
  ENOSPC: { canonical: 'INTERNAL', write: 'no space is left on the device; free some' },
  EMFILE: {
    canonical: 'INTERNAL',
    read: 'too many open files; raise the limit (ulimit -n)',
    write: 'too many open files; raise the limit (ulimit -n)',
  },
  ENAMETOOLONG: {
    canonical: 'INVALID_INPUT',
    read: 'the name is too long; if it is the content of a file, pipe it to standard input',
    write: 'the name is too long; name another path',
  },
  ELOOP: { canonical: 'INVALID_INPUT', read: 'too many symbolic links; check the path', write: 'too many symbolic links' },
};

/** Why an input counts as failed, in one line; undefined when it does not. */
export function describeFailure({ error, complete }: AccumulatedMessage): string | undefined {
  if (error) return `${error.code}: ${error.message}`;
  return complete ? undefined : 'the stream ended early: no finish reason and no end marker';
}

/** What to do about an error of a file, or of a server that was probed; undefined when its message already says so. */
export function findAdvice({ code, canonical }: AccumulatedError, source: 'file' | 'server' = 'file'): string | undefined {
  if (Object.hasOwn(SYSTEM_ERRORS, code) || ADVISING.has(code)) return undefined;
  const own = source === 'server' ? { ...OWN_ADVICE, ...SERVER_ADVICE } : OWN_ADVICE;
  return own[code] ?? own[canonical] ?? ADVICE[canonical];
}

/** An error of an input in one line, with what to do about a body that is no response. */
export function formatInputError({ code, message }: AccumulatedError): string {
  const advice = Object.hasOwn(OWN_ADVICE, code) && !message.includes('--') ? OWN_ADVICE[code] : undefined;
  return `${code}: ${message}${advice === undefined ? '' : `; ${advice.slice(0, 1).toLowerCase()}${advice.slice(1).replace(/\.$/, '')}`}`;
}

/** The code of a probe without a response. */
export const NO_RESPONSE = 'no_response';

/** The code of a probe for which the server has no endpoint. */
export const NO_ENDPOINT = 'no_endpoint';

/** Codes whose messages include what to do. */
const ADVISING: ReadonlySet<unknown> = new Set([NO_RESPONSE, NO_ENDPOINT, 'empty_folder', 'not_a_tape']);

/** Advice for codes of our own, which are more specific than the canonical ones. */
const OWN_ADVICE: Readonly<Record<string, string>> = {
  empty_stream: 'The body is empty; check that it was saved (curl -N … > FILE), not only its headers.',
  not_a_stream: 'Check that the file is the body of a response, or name its protocol with --protocol.',
  not_json: 'Check that the file is whole, and that it is the JSON body alone, without headers.',
  too_large: 'A model does not send an event of this size; check what was recorded.',
  stream_error: 'The source failed; everything before the failure is shown.',
  response_failed: 'The provider aborted this response; everything before that is shown.',
};

/** Advice about servers, where that about files does not fit. */
const SERVER_ADVICE: Readonly<Record<string, string>> = {
  empty_stream: 'The server sent no body; check its log.',
  not_a_stream: 'The server responds, but not as an API of models: check the port and the path of --url; most servers need /v1.',
  AUTHENTICATION: 'The API key is missing, wrong or expired; name the variable that holds it with --key-env.',
  NOT_FOUND: 'Check --model, and the path of --url.',
};

const ADVICE = {
  INVALID_INPUT: 'The provider or the system rejected the input.',
  MISSING_REQUIRED_FIELD: 'The request lacks a required field.',
  INCOMPATIBLE_FEATURE: 'The model or provider does not support a requested feature.',
  TOOL_CALL_PARSE_ERROR: 'The provider could not parse a tool call of the model.',
  JSON_PARSE_ERROR: 'The JSON could not be parsed.',
  RATE_LIMIT: 'Too many requests or tokens; wait, then retry.',
  AUTHENTICATION: 'The API key is missing, wrong or expired.',
  PERMISSION: 'The API key or the user lacks permission.',
  NOT_FOUND: 'The file, model or endpoint does not exist.',
  CONTEXT_LENGTH: 'The prompt exceeds the context length of the model; shorten it.',
  PAYLOAD_TOO_LARGE: 'The input exceeds a size limit.',
  CONTENT_POLICY: 'A content filter blocked it.',
  BILLING: 'The account has no credit left or is over its quota.',
  CONFLICT: 'Another operation conflicts with this one; retry.',
  OVERLOADED: 'The provider is overloaded; wait, then retry.',
  TIMEOUT: 'The provider took too long; retry.',
  CANCELLED: 'The request was cancelled before its end.',
  STREAM_TRUNCATED: 'The connection ended before the message was complete; retry.',
  UNSUPPORTED_INTERFACE: 'The provider does not support this kind of request.',
  UPSTREAM_ERROR: 'The provider failed; retry, or check its log or status page.',
  INTERNAL: 'The machine or sluice itself failed, not the stream.',
} as const;

ADVICE satisfies Record<ErrorCode, string>;
