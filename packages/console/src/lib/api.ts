/** Requests to the admin API, typed by its table of routes. */

import type { AdminResponses, ProblemBody } from '@gateway/admin/types';

/** A method and a path of the table of routes. */
export type Endpoint = keyof AdminResponses;

/** What a request may have. */
export interface RequestOptions {
  /** The part of the path in braces. */
  readonly id?: string;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: unknown;
  readonly csrf?: string;
  readonly signal?: AbortSignal;
}

/** A response that is an error, with the gateway's words and the id of the request. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly problem: Partial<ProblemBody>;

  constructor(status: number, problem: Partial<ProblemBody>) {
    super(problem.detail ?? `the gateway responded with status ${status}`);
    this.status = status;
    this.problem = problem;
  }
}

/** Builds the address of a resource. */
export function buildUrl(path: string, { id, query = {} }: Pick<RequestOptions, 'id' | 'query'> = {}): string {
  const parameters = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [[name, String(value)]],
  );
  const search = new URLSearchParams(parameters).toString();
  return `/admin/v1/${path.replace('{id}', encodeURIComponent(id ?? ''))}${search === '' ? '' : `?${search}`}`;
}

/** Sends a request: `request('GET exchanges/{id}', { id })`. Rejects with an `ApiError` for an error response. */
export async function request<E extends Endpoint>(endpoint: E, options: RequestOptions = {}): Promise<AdminResponses[E]> {
  const [method = '', path = ''] = endpoint.split(' ', 2);
  const { body, csrf, signal } = options;
  const response = await fetch(buildUrl(path, options), {
    method,
    credentials: 'same-origin',
    cache: 'no-store',
    headers: {
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(csrf !== undefined && { 'x-sluice-csrf': csrf }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
  });
  // The contract is the gateway's, and its tests hold every response against it.
  if (response.ok) return (await response.json()) as AdminResponses[E];
  const problem: Partial<ProblemBody> = await response.json().catch(() => ({}));
  throw new ApiError(response.status, problem);
}
