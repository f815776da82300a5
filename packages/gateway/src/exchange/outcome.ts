import { type CanonicalError, CodecError, type WireReply } from '@sluice/core';

/** What is sent as a whole. Bytes are those of the upstream, untouched. */
export interface Reply extends Omit<WireReply, 'body'> {
  body: unknown;
  bytes?: Buffer;
}

/** How an attempt went. */
export type Outcome =
  /** The client has its stream, or gets this reply. `error`: its stream tells one. */
  | { is: 'answered'; reply?: Reply; error?: CanonicalError }
  /** Nothing of an answer was sent: somebody else may be asked. `reply`: the upstream's own words, for who speaks its language. */
  | { is: 'failed'; error: CanonicalError; reply?: Reply }
  /** The client turned away. */
  | { is: 'gone' };

/** The outcome of a request that a codec rejected. Throws any other error again. */
export function failedBy(error: unknown): Outcome {
  if (error instanceof CodecError) return { is: 'failed', error: error.error };
  throw error;
}

/** How an exchange ended, in one word: for the log. */
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

export function endingOf(error: CanonicalError | undefined): Ending {
  if (!error) return 'answered';
  const { code, details = {}, upstream, http_status: status = 0 } = error;
  if (details['ending'] === 'stopped') return 'stopped';
  if (details['rule'] === 'sse/malformed-json') return 'upstream_malformed';
  if (code === 'STREAM_TRUNCATED') return 'upstream_truncated';
  if (code === 'TIMEOUT' && !upstream) return 'timeout';
  if (code === 'INTERNAL' && !upstream) return 'internal_error';
  return upstream || status >= 502 || code === 'UPSTREAM_ERROR' ? 'upstream_error' : 'refused';
}
