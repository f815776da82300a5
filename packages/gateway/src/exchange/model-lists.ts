import { CODECS, convertModels } from '@sluice/core';
import type { Clock } from '../http/clock.ts';
import { collect, withoutBom } from '../upstream/body.ts';
import type { Call, Dialer } from '../upstream/dialer.ts';
import type { ProviderEndpoint } from './types.ts';

const KEPT_MS = 5 * 60_000;

/** A provider that could not say is asked again soon. */
const FAILED_MS = 30_000;

/** Clients wait for the list: what is late is left out this time. */
const PATIENCE_MS = 5000;

const MAX_LIST_BYTES = 8 * 1024 * 1024;

interface Kept {
  until: number;
  names: Promise<readonly string[] | undefined>;
}

export interface ModelListsOptions {
  dialer: Dialer;
  clock: Clock;
  /** A provider did not say what it has. */
  onFailure: (provider: string, reason: string) => void;
}

/** What providers say they have. They are asked when a client wants to know, and what they said is kept for a while. */
export class ModelLists {
  readonly #options: ModelListsOptions;
  readonly #kept = new Map<string, Kept>();

  constructor(options: ModelListsOptions) {
    this.#options = options;
  }

  /** The models of a provider, under the names that clients use: `groq/llama-3.3-70b`. Who does not say has `groq/*`. */
  async namesOf(speaker: ProviderEndpoint): Promise<readonly string[]> {
    const { id } = speaker.provider;
    const names = (await this.#remembered(speaker)) ?? ['*'];
    return names.map((name) => `${id}/${name}`);
  }

  #remembered(speaker: ProviderEndpoint): Kept['names'] {
    const { now } = this.#options.clock;
    const key = `${speaker.provider.id} ${speaker.origin}`;
    const known = this.#kept.get(key);
    if (known && known.until > now()) return known.names;
    const names = this.#ask(speaker);
    const kept: Kept = { until: now() + KEPT_MS, names };
    this.#kept.set(key, kept);
    void names.then((found) => {
      if (!found) kept.until = now() + FAILED_MS;
    });
    return names;
  }

  async #ask(speaker: ProviderEndpoint): Kept['names'] {
    const { protocol, id } = speaker.provider;
    try {
      const { status, body } = await collect(this.#options.dialer, callOf(speaker), {
        clock: this.#options.clock,
        maxBytes: MAX_LIST_BYTES,
        headMs: PATIENCE_MS,
        pieceMs: PATIENCE_MS,
        totalMs: PATIENCE_MS,
      });
      if (status !== 200) throw new Error(`status ${status}`);
      const { value } = convertModels(JSON.parse(withoutBom(body).toString('utf8')), { from: protocol, to: 'openai-chat' });
      return value.models.map((model) => model.id);
    } catch (error) {
      this.#options.onFailure(id, String(error instanceof Error ? error.message : error));
      return undefined;
    }
  }
}

function callOf({ provider, origin, times }: ProviderEndpoint): Call {
  const codec = CODECS[provider.protocol];
  return {
    url: codec.buildUrl('MODELS', { provider, model: '', stream: false }) + (codec.modelsQuery ?? ''),
    origin,
    method: 'GET',
    headers: { ...codec.buildHeaders(provider, false), 'accept-encoding': 'identity' },
    connectMs: times.connectMs,
    repeat: 'once',
  };
}
