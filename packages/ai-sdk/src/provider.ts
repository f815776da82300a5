/** `@sluice/ai-sdk/provider`: the provider for OpenAI-compatible servers, with repaired responses. */

import {
  createOpenAICompatible,
  type OpenAICompatibleProvider,
  type OpenAICompatibleProviderSettings,
} from '@ai-sdk/openai-compatible';
import type { RepairFetchOptions } from '@sluice/core/fetch';
import { repairedFetch } from './fetch.ts';

/** Settings of `createSluice`: those of `createOpenAICompatible`, of which only `baseURL` is required. */
export interface SluiceSettings extends Omit<OpenAICompatibleProviderSettings, 'name'> {
  /** Name of the provider in messages and provider options. `sluice` when absent. */
  name?: string;
  /** Options of the repair; `fetch` of the settings sends the requests. */
  repair?: Omit<RepairFetchOptions, 'fetch'>;
}

/**
 * Creates a provider for an OpenAI-compatible server whose responses are repaired before the AI SDK reads them.
 *
 * ```ts
 * const local = createSluice({ baseURL: 'http://localhost:11434/v1' });
 * streamText({ model: local('qwen3'), prompt });
 * ```
 */
export function createSluice({ name = 'sluice', repair, fetch, ...settings }: SluiceSettings): OpenAICompatibleProvider {
  return createOpenAICompatible({ ...settings, name, fetch: repairedFetch({ ...repair, fetch }) });
}
