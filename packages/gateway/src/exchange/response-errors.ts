/** Errors of invalid responses. Apart from the other failures because the console runs this file, too: it loads nothing. */

import type { CanonicalError } from '@sluice/core';

/** A retry cannot help; this stops SDKs from retrying. */
export const HOPELESS = { should_retry: 'false' } as const;

/** The upstream received the request and may have processed it. */
export const PROCESSED = { may_be_billed: true } as const;

/** The upstream has processed the request and sent a response that cannot be used: the same request is not sent there again. */
export const UNUSABLE = { ...PROCESSED, unusable: true } as const;

/** The upstream as error messages name it. */
export const formatProvider = ({ provider }: { provider: { readonly id: string } }): string => `provider "${provider.id}"`;

/** What to do about a server that does not speak the protocol of its provider. */
export const REMEDY = 'check its base_url and protocol';

/** The upstream sent an invalid response, and would send it again. */
export const createInvalidResponse = (message: string, details: Readonly<Record<string, unknown>> = {}): CanonicalError => ({
  code: 'UPSTREAM_ERROR',
  message,
  http_status: 502,
  details: { ...HOPELESS, ...details },
});

/** A response exceeds one of the operator's limits. */
export const createLimitError = (name: string, what: string): CanonicalError =>
  createInvalidResponse(`${name} sent a response with ${what}`, PROCESSED);
