/** Errors and notes of conversions. */
import type { ProtocolId } from './protocol.ts';

/** An error of an upstream, of the input, or of the gateway. */
export interface CanonicalError {
  code: ErrorCode;
  message: string;
  http_status?: number;
  param?: string | null;
  retry_after_ms?: number;
  request_id?: string;
  upstream?: {
    protocol: ProtocolId;
    status?: number;
    type?: string;
    code?: string | number | null;
    /** The error object of the wire, verbatim. */
    body?: unknown;
  };
  details?: Record<string, unknown>;
}

/** The kinds of errors, independent of protocol and provider. */
export type ErrorCode =
  | 'INVALID_INPUT'
  | 'MISSING_REQUIRED_FIELD'
  | 'INCOMPATIBLE_FEATURE'
  | 'TOOL_CALL_PARSE_ERROR'
  | 'JSON_PARSE_ERROR'
  | 'RATE_LIMIT'
  | 'AUTHENTICATION'
  | 'PERMISSION'
  | 'NOT_FOUND'
  | 'CONTEXT_LENGTH'
  | 'PAYLOAD_TOO_LARGE'
  | 'CONTENT_POLICY'
  | 'BILLING'
  | 'CONFLICT'
  | 'OVERLOADED'
  | 'TIMEOUT'
  | 'CANCELLED'
  | 'STREAM_TRUNCATED'
  | 'UNSUPPORTED_INTERFACE'
  | 'UPSTREAM_ERROR'
  | 'INTERNAL';

/** Failures that are found while reading a response, not reported by a provider; the value of `details.code`. */
export type OwnErrorCode = 'empty_stream' | 'stream_error' | 'response_failed' | 'not_a_stream' | 'too_large';

/** An error that was found while reading a response. */
export function ownError(own: OwnErrorCode, code: ErrorCode, message: string): CanonicalError {
  return { code, message, details: { code: own } };
}

/**
 * The system error code for a response that broke off: the connection was lost (`details.connection`), the stream ended
 * early, or a timeout passed. Undefined for errors that an upstream reports itself.
 */
export function findSocketErrorCode({ code, upstream, details }: CanonicalError): 'ECONNRESET' | 'ETIMEDOUT' | undefined {
  if (upstream) return undefined;
  if (code === 'TIMEOUT') return 'ETIMEDOUT';
  const isLost = details?.['connection'] === 'lost' || details?.['code'] === 'stream_error';
  return code === 'STREAM_TRUNCATED' || isLost ? 'ECONNRESET' : undefined;
}

/**
 * Input that cannot be converted. Codecs throw it; the caller of the conversion turns `error` into a response.
 *
 * ```ts
 * try {
 *   convertRequest(json, { from: 'openai-chat', to: 'anthropic', policy: { strict: true } });
 * } catch (error) {
 *   if (!(error instanceof CodecError)) throw error;
 *   console.error(error.error.code, error.error.param, error.message);
 * }
 * ```
 */
export class CodecError extends Error {
  override readonly name = 'CodecError';
  readonly error: CanonicalError;

  constructor(error: CanonicalError) {
    super(error.message);
    this.error = error;
  }
}

/** A loss or a repair of a conversion. Nothing is lost without a note. */
export interface Note {
  code: NoteCode;
  /** JSON pointer in the *source* document. */
  path: string;
  /** Stable key, e.g. `parameters.top_k`. */
  feature: string;
  message: string;
}

/** The kinds of notes. */
export type NoteCode = 'DROPPED' | 'APPROXIMATED' | 'REPAIRED' | 'CLAMPED' | 'RENAMED';
