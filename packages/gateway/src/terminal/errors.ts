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

/** A system error as a message with advice. */
export function describeSystemError(code: string, error: unknown, file: string): AccumulatedError {
  const known = Object.hasOwn(SYSTEM_ERRORS, code) ? SYSTEM_ERRORS[code] : undefined;
  const isUrl = code === 'ENOENT' && /^https?:\/\//.test(file);
  const message = isUrl ? `this is a URL, not a file; save the response first: curl -N ${file} > FILE` : known?.message;
  return { code, message: message ?? `reading failed: ${String(error)}`, canonical: known?.canonical ?? 'INTERNAL' };
}

/** What system errors mean, and what to do about them. */
const SYSTEM_ERRORS: Readonly<Record<string, { canonical: ErrorCode; message: string }>> = {
  ENOENT: { canonical: 'NOT_FOUND', message: 'no such file; check the path' },
  ENOTDIR: { canonical: 'NOT_FOUND', message: 'a part of the path is not a directory; check the path' },
  EISDIR: { canonical: 'INVALID_INPUT', message: 'this is a directory; name a file in it' },
  EACCES: { canonical: 'PERMISSION', message: 'permission denied; check who may read the file (ls -l)' },
  EPERM: { canonical: 'PERMISSION', message: 'operation not permitted; check who may read the file (ls -l)' },
  EMFILE: { canonical: 'INTERNAL', message: 'too many open files; raise the limit (ulimit -n)' },
  ENAMETOOLONG: {
    canonical: 'INVALID_INPUT',
    message: 'the name is too long; if it is the content of a file, pipe it to standard input',
  },
  ELOOP: { canonical: 'INVALID_INPUT', message: 'too many symbolic links; check the path' },
};

/** Why an input counts as failed, in one line; undefined when it does not. */
export function describeFailure({ error, complete }: AccumulatedMessage): string | undefined {
  if (error) return `${error.code}: ${error.message}`;
  return complete ? undefined : 'the stream ended early: no finish reason and no end marker';
}

/** What to do about an error; undefined when its message already says so. */
export function findAdvice({ code, canonical }: AccumulatedError): string | undefined {
  if (Object.hasOwn(SYSTEM_ERRORS, code)) return undefined; // their messages include advice
  return Object.hasOwn(OWN_ADVICE, code) ? OWN_ADVICE[code] : ADVICE[canonical];
}

/** Advice for codes of our own, which are more specific than the canonical ones. */
const OWN_ADVICE: Readonly<Record<string, string>> = {
  empty_stream: 'The body is empty; check that it was saved (curl -N … > FILE), not only its headers.',
  not_a_stream: 'Check that the file is the body of a response, or name its protocol with --protocol.',
  too_large: 'A model does not send an event of this size; check what was recorded.',
  stream_error: 'The source failed; everything before the failure is shown.',
  response_failed: 'The provider aborted this response; everything before that is shown.',
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
  UPSTREAM_ERROR: 'The provider failed; retry, or check its status page.',
  INTERNAL: 'The machine or sluice itself failed, not the stream.',
} as const;

ADVICE satisfies Record<ErrorCode, string>;
