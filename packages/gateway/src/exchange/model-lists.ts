import type { CanonicalModel } from '@sluice/core';
import { CODECS, convertModels } from '@sluice/core/engine';
import type { Clock } from '../http/clock.ts';
import { collect, withoutBom } from '../upstream/body.ts';
import type { Call, Dialer } from '../upstream/dialer.ts';
import type { ProviderEndpoint } from './types.ts';

/** The model lists of providers. They are requested when a client needs them, and cached for a while. */
export class ModelLists {
  readonly #options: ModelListsOptions;
  readonly #lists = new Map<string, CachedList>();

  constructor(options: ModelListsOptions) {
    this.#options = options;
  }

  /** The models of a provider; one with the name `*` when it returns no list. */
  async listModels(endpoint: ProviderEndpoint): Promise<readonly ListedModel[]> {
    return (await this.#findModels(endpoint)) ?? [{ id: '*' }];
  }

  #findModels(endpoint: ProviderEndpoint): CachedList['models'] {
    const { now } = this.#options.clock;
    const key = `${endpoint.provider.id} ${endpoint.origin}`;
    const known = this.#lists.get(key);
    if (known && known.until > now()) return known.models;
    const models = this.#fetchModels(endpoint);
    const list: CachedList = { until: now() + CACHE_MS, models };
    this.#lists.set(key, list);
    void models.then((found) => {
      if (!found) list.until = now() + FAILED_MS;
    });
    return models;
  }

  async #fetchModels(endpoint: ProviderEndpoint): CachedList['models'] {
    const { protocol, id } = endpoint.provider;
    try {
      const { status, body } = await collect(this.#options.dialer, buildCall(endpoint), {
        clock: this.#options.clock,
        maxBytes: MAX_LIST_BYTES,
        headMs: TIMEOUT_MS,
        pieceMs: TIMEOUT_MS,
        totalMs: TIMEOUT_MS,
      });
      if (status !== 200) throw new Error(`status ${status}`);
      const { value } = convertModels(JSON.parse(withoutBom(body).toString('utf8')), {
        from: CODECS[protocol],
        to: CODECS['openai-chat'],
      });
      return value.models.map(pickLimits);
    } catch (error) {
      this.#options.onFailure(id, String(error instanceof Error ? error.message : error));
      return undefined;
    }
  }
}

/** How lists are requested. */
export interface ModelListsOptions {
  dialer: Dialer;
  clock: Clock;
  /** A provider did not return a list. */
  onFailure: (provider: string, reason: string) => void;
}

/** A model as its provider lists it. */
export type ListedModel = Pick<CanonicalModel, 'id' | 'max_input_tokens' | 'max_output_tokens'>;

/** The rest of an entry can be long, and is not shown to clients. */
const pickLimits = ({ id, max_input_tokens, max_output_tokens }: CanonicalModel): ListedModel => ({
  id,
  ...(max_input_tokens !== undefined && { max_input_tokens }),
  ...(max_output_tokens !== undefined && { max_output_tokens }),
});

interface CachedList {
  until: number;
  models: Promise<readonly ListedModel[] | undefined>;
}

/** How long a list is used. */
const CACHE_MS = 5 * 60_000;

/** How soon a failed request is repeated. */
const FAILED_MS = 30_000;

/** Clients wait for the list, so slow providers are left out. */
const TIMEOUT_MS = 5000;

const MAX_LIST_BYTES = 8 * 1024 * 1024;

function buildCall({ provider, origin, times, network }: ProviderEndpoint): Call {
  const codec = CODECS[provider.protocol];
  return {
    url: codec.buildUrl('MODELS', { provider, model: '', stream: false }) + (codec.modelsQuery ?? ''),
    origin,
    method: 'GET',
    headers: { ...codec.buildHeaders(provider, false), 'accept-encoding': 'identity' },
    connectMs: times.connectMs,
    network,
    repeat: 'once',
  };
}
