/** Requests that the console sends to models. */

import { ApiError, buildUrl } from './api.ts';
import { readCsrf } from './session.ts';

/** A request in the protocol of its path. */
export interface ModelRequest {
  readonly path: string;
  /** The id of a client key; empty on a gateway without keys. */
  readonly key: string;
  /** JSON. */
  readonly body: string;
}

/** A response that has begun: that of the model, or the error that a client would have got. */
export interface SentRequest {
  /** The id of the new exchange. */
  readonly exchange: string;
  readonly response: Response;
}

/** Sends a request. Rejects with an `ApiError` when the admin API refuses it. */
export async function sendRequest({ path, key, body }: ModelRequest, signal?: AbortSignal): Promise<SentRequest> {
  const response = await fetch(buildUrl('requests', { query: { path, key } }), {
    method: 'POST',
    credentials: 'same-origin',
    cache: 'no-store',
    headers: { 'content-type': 'application/json', 'x-sluice-csrf': readCsrf() },
    body,
    ...(signal && { signal }),
  });
  const exchange = response.headers.get('x-sluice-exchange-id');
  if (exchange === null) throw new ApiError(response.status, await readProblem(response));
  return { exchange, response };
}

/** A problem of the admin API; a gateway under load refuses in the words of the client's protocol. */
async function readProblem(response: Response): Promise<{ detail?: string }> {
  const body: { detail?: string; error?: { message?: string } } = await response.json().catch(() => ({}));
  const message = body.error?.message;
  return message === undefined ? body : { detail: message };
}

/** Reads a response to its end, so that the exchange is not ended by a client that leaves. */
export async function drain({ body }: Response): Promise<void> {
  const reader = body?.getReader();
  while (reader && !(await reader.read().catch(() => ({ done: true }))).done);
}
