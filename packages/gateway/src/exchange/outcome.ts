import { type CanonicalError, CodecError, type WireReply } from '@sluice/core';

/** A whole response for the client. `bytes`: the upstream's unchanged body. */
export interface Reply extends Omit<WireReply, 'body'> {
  body: unknown;
  bytes?: Buffer;
}

/** The result of an attempt. */
export type Outcome =
  /** The client received its stream, or receives this reply. `error`: the error that ended the stream. */
  | { is: 'answered'; reply?: Reply; error?: CanonicalError }
  /**
   * Nothing was sent to the client, so another upstream may be tried. `reply`: the upstream's error in the client's
   * protocol.
   */
  | { is: 'failed'; error: CanonicalError; reply?: Reply }
  /** The client disconnected. */
  | { is: 'gone' };

/** The outcome of a request that a codec rejected. Throws any other error again. */
export function failedBy(error: unknown): Outcome {
  if (error instanceof CodecError) return { is: 'failed', error: error.error };
  throw error;
}

/** How an exchange ended, for the log. */
export type Ending =
  | 'answered'
  | 'refused'
  | 'client_aborted'
  | 'client_stalled'
  | 'stopped'
  | 'timeout'
  | 'upstream_truncated'
  | 'upstream_malformed'
  | 'upstream_error'
  | 'internal_error';

export function findEnding(error: CanonicalError | undefined): Ending {
  if (!error) return 'answered';
  const { code, details = {}, upstream, http_status: status = 0 } = error;
  if (details['ending'] === 'stopped') return 'stopped';
  if (details['rule'] === 'sse/malformed-json') return 'upstream_malformed';
  if (code === 'STREAM_TRUNCATED') return 'upstream_truncated';
  if (code === 'TIMEOUT' && !upstream) return 'timeout';
  if (code === 'INTERNAL' && !upstream) return 'internal_error';
  return upstream || status >= 502 || code === 'UPSTREAM_ERROR' ? 'upstream_error' : 'refused';
}
