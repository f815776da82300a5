import { type CanonicalError, CodecError } from '@sluice/core';

/** An error for a request that the gateway itself rejects. */
export const refusal = (
  http_status: number,
  code: CanonicalError['code'],
  message: string,
  retry_after_ms?: number,
): CodecError => new CodecError({ code, message, http_status, ...(retry_after_ms !== undefined && { retry_after_ms }) });
