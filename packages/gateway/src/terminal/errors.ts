/** What can go wrong in a command: wrong usage, unreadable inputs, failed streams, and what to do about each. */

import type { Assembled, AssembledError, ErrorCode } from '@sluice/core';
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
  readonly failure: AssembledError;

  constructor(file: string, failure: AssembledError, cause?: unknown) {
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
export function describeSystemError(code: string, error: unknown, file: string): AssembledError {
  const known = Object.hasOwn(SYSTEM_ERRORS, code) ? SYSTEM_ERRORS[code] : undefined;
  const isUrl = code === 'ENOENT' && /^https?:\/\//.test(file);
  const message = isUrl ? `this is a URL, not a file; save the response first: curl -N ${file} > FILE` : known?.message;
  return { code, message: message ?? `reading failed: ${String(error)}`, canonical: known?.canonical ?? 'INTERNAL' };
}

/** What system errors mean, and what to do about them. */
const SYSTEM_ERRORS: Readonly<Record<string, { canonical: ErrorCode; message: string }>> = {
  ENOENT: { canonical: 'NOT_FOUND', message: 'no such file; check the path' },
  ENOTDIR: { canonical: 'NOT_FOUND', message: 'a part of the path is not a directory; check the path' },
  EISDIR: { canonical: 'INVALID_INPUT', message: 'this is a directory; name the files in it (DIR/*.sse)' },
  EACCES: { canonical: 'PERMISSION', message: 'permission denied; check who may read the file (ls -l)' },
  EPERM: { canonical: 'PERMISSION', message: 'operation not permitted; check who may read the file (ls -l)' },
  EMFILE: { canonical: 'INTERNAL', message: 'too many open files; raise the limit (ulimit -n)' },
  ENAMETOOLONG: {
    canonical: 'INVALID_INPUT',
    message: 'the name is too long; is it the content of a file? Send that to standard input',
  },
  ELOOP: { canonical: 'INVALID_INPUT', message: 'too many symbolic links; check the path' },
};

/** Why an input counts as failed, in one line; undefined when it does not. */
export function describeFailure({ error, complete }: Assembled): string | undefined {
  if (error) return `${error.code}: ${error.message}`;
  return complete ? undefined : 'the stream ended early: no finish reason and no end marker';
}

/** What to do about an error; undefined when its message already says so. */
export function findAdvice({ code, canonical }: AssembledError): string | undefined {
  if (Object.hasOwn(SYSTEM_ERRORS, code)) return undefined; // their messages include advice
  return Object.hasOwn(OWN_ADVICE, code) ? OWN_ADVICE[code] : ADVICE[canonical];
}

/** Advice for codes of our own, which are more specific than the canonical ones. */
const OWN_ADVICE: Readonly<Record<string, string>> = {
  empty_stream: 'Nothing to assemble: check that the body was saved (curl -N … > FILE), not only the headers.',
  not_a_stream: 'Check that the file is the body of a streaming response, and name its protocol with --protocol.',
  too_large: 'A single event of this size is no answer of a model: check what was recorded.',
  stream_error: 'The source broke off or reported a failure; what came before it is shown.',
  response_failed: 'The provider gave up on this response; what came before it is shown.',
};

const ADVICE = {
  INVALID_INPUT: 'The provider, or the system, refused the input.',
  MISSING_REQUIRED_FIELD: 'The request lacked a field that the provider needs.',
  INCOMPATIBLE_FEATURE: 'The request asked for something this model or provider does not have.',
  TOOL_CALL_PARSE_ERROR: 'The provider could not read the tool call that the model wrote.',
  JSON_PARSE_ERROR: 'The provider could not read the JSON.',
  RATE_LIMIT: 'Too many requests or tokens: wait, then retry.',
  AUTHENTICATION: 'The key is missing, wrong or expired.',
  PERMISSION: 'Not allowed: the key, or the user, lacks the right to do this.',
  NOT_FOUND: 'The file, model or endpoint does not exist.',
  CONTEXT_LENGTH: 'The prompt is longer than the model takes: shorten it.',
  PAYLOAD_TOO_LARGE: 'Larger than the limits allow.',
  CONTENT_POLICY: 'A content filter stopped it.',
  BILLING: 'The account has no credit left or is over its quota.',
  CONFLICT: 'Another operation was in the way: retry.',
  OVERLOADED: 'The provider is overloaded: wait, then retry.',
  TIMEOUT: 'The provider took too long: retry.',
  CANCELLED: 'The request was cancelled before its end.',
  STREAM_TRUNCATED: 'The connection ended before the message did: retry.',
  UNSUPPORTED_INTERFACE: 'The provider does not offer this kind of request.',
  UPSTREAM_ERROR: 'The provider failed: retry, or ask its status page.',
  INTERNAL: 'Not the fault of the stream: the machine or sluice itself failed.',
} as const;

ADVICE satisfies Record<ErrorCode, string>;
