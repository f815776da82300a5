/** `fetch` for providers of the AI SDK. */

import { createRepairFetch, type Fetch, type RepairFetchOptions } from '@sluice/core/fetch';

/**
 * Creates a `fetch` for any provider of the AI SDK. It is `createRepairFetch` of `@sluice/core/fetch` with `strict`: the
 * providers validate every event, and fail on those that they do not know.
 *
 * ```ts
 * createOpenAICompatible({ name: 'local', baseURL, fetch: repairedFetch() });
 * ```
 */
export function repairedFetch(options: RepairFetchOptions = {}): Fetch {
  return createRepairFetch({ strict: true, ...options });
}
