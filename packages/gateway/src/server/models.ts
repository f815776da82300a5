/** The models that clients can list, with their limits and prices. */

import { type CanonicalModel, type Codec, CodecError, type ProtocolId } from '@sluice/core';
import { CODECS, checkModelName, encodeModelInfo, encodeModels, type Route } from '@sluice/core/engine';
import type { ListedModel } from '../exchange/model-lists.ts';
import type { Candidate, Directory, Services } from '../exchange/types.ts';
import { ANYBODY, type Caller } from '../keys/caller.ts';
import { checkModelScope, isModelAllowed, type NamedModel } from '../keys/scope.ts';
import { type Bucket, chooseRates, formatDollarsPerUnit, type Rates } from '../prices/rates.ts';
import type { ModelPrice } from '../prices/table.ts';

/** The list of models that the caller may use, in the client's protocol. */
export async function listModels(
  client: Codec,
  directory: Directory,
  { modelLists }: Services,
  { policy }: Caller = ANYBODY,
): Promise<unknown> {
  const { prices, unlisted } = directory;
  const named = directory.models.map((id) => describeTarget(id, directory, directory.resolve(id, client.id)[0]));
  const listed = await Promise.all(
    unlisted.map(async (endpoint) => {
      const provider = endpoint.provider.id;
      const models = await modelLists.listModels(endpoint);
      return models.map((model) => buildModel(`${provider}/${model.id}`, prices.find(provider, model.id), model));
    }),
  );
  const all = [...named, ...listed.flat()];
  const models =
    policy.models.length === 0 ? all : all.filter(({ id }) => isModelAllowed(policy, nameModel(id, client, directory)));
  return encodeModels({ models, has_more: false }, { to: client });
}

const nameModel = (name: string, client: Codec, directory: Directory): NamedModel => ({
  name,
  targets: listTargets(directory, client.id, name),
});

/** What a model name stands for, as `provider/model`: one for each account and address of a provider. */
export const listTargets = (directory: Directory, protocol: ProtocolId, model: string): readonly string[] =>
  directory.resolve(model, protocol).map(({ provider, model: name }) => `${provider.id}/${name}`);

/** One model, in the client's protocol. Throws when no provider serves it, or the caller may not use it. */
export function describeModel({ client, path }: Route, directory: Directory, caller: Caller = ANYBODY): unknown {
  const id = readId(path);
  checkModelName(id);
  checkModelScope(caller, id, (name) => listTargets(directory, client.id, name));
  const [first] = directory.resolve(id, client.id);
  if (first) return encodeModelInfo(describeTarget(id, directory, first), { to: client });
  throw new CodecError({
    code: 'NOT_FOUND',
    message: directory.whyUnknown(id),
    http_status: 404,
    param: 'model',
  });
}

/** A name of the configuration has the facts of the model that is tried first. */
function describeTarget(id: string, { prices }: Directory, target: Candidate | undefined): CanonicalModel {
  if (!target) return buildModel(id);
  const output = findOutputLimit(target);
  return buildModel(id, prices.find(target.provider.id, target.model), {
    ...(output !== undefined && { max_output_tokens: output }),
  });
}

/** The default of a profile is a guess for unknown models, so it is not shown. */
function findOutputLimit({ provider, profile }: Candidate): number | undefined {
  const preset = CODECS[provider.protocol].profileFor('', '').max_output_tokens;
  return profile.max_output_tokens === preset ? undefined : profile.max_output_tokens;
}

/** Limits that the provider states take precedence over those of the price snapshot. */
function buildModel(id: string, price?: ModelPrice, limits: Partial<ListedModel> = {}): CanonicalModel {
  const { max_input_tokens: input = price?.contextWindow, max_output_tokens: output } = limits;
  const rates = price && chooseRates(price.periods, Date.now());
  const pricing = rates && { pricing: buildPricing(rates) };
  return {
    id,
    owned_by: id.includes('/') ? id.slice(0, id.indexOf('/')) : 'sluice',
    ...(input !== undefined && { max_input_tokens: input }),
    ...(output !== undefined && { max_output_tokens: output }),
    // Gemini's list has no place for prices: its clients may be generated from a schema and reject unknown fields.
    extensions: {
      'openai-chat': { ...pricing },
      // Most clients of OpenAI's list read `context_length`; the codec writes `context_window`.
      'openai-responses': { ...pricing, ...(input !== undefined && { context_length: input }) },
      'anthropic-messages': { ...pricing },
    },
  };
}

/** Prices in the form of OpenRouter, which many clients read: US dollars per token, request or search. */
function buildPricing(rates: Rates): Record<string, string> {
  const entries = Object.entries(PRICING_FIELDS).flatMap(([field, bucket]) => {
    const rate = rates[bucket];
    return rate ? [[field, formatDollarsPerUnit(rate.base)]] : [];
  });
  return Object.fromEntries(entries);
}

const PRICING_FIELDS = {
  prompt: 'input',
  completion: 'output',
  input_cache_read: 'cache_read',
  input_cache_write: 'cache_write',
  internal_reasoning: 'reasoning',
  audio: 'input_audio',
  request: 'request',
  web_search: 'web_search',
} as const satisfies Record<string, Bucket>;

function readId(path: string): string {
  const [plain = ''] = path.split('?', 1);
  const id = plain.slice(plain.indexOf('/models/') + '/models/'.length);
  try {
    return decodeURIComponent(id);
  } catch {
    return id;
  }
}
