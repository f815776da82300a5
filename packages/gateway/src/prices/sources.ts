/** Where the prices of each known provider come from, as data. */

import type { ProviderId } from '../providers/table.ts';

/** Where the prices of a provider come from. */
export type PriceSource =
  /**
   * The snapshot lists its models under these ids; the first that has a model counts. `names`: those that it serves,
   * where the snapshot also lists others. A model whose name ends with `freeSuffix` costs nothing.
   */
  | { readonly is: 'listed'; readonly under: readonly string[]; readonly names?: RegExp; readonly freeSuffix?: string }
  /** The model name ends with the vendor that serves it; without one, the router chooses and the price is unknown. */
  | { readonly is: 'routed'; readonly suffixes: Readonly<Record<string, string>> }
  /** Nothing is charged per token. */
  | { readonly is: 'free'; readonly why: string }
  /** The snapshot does not list it. */
  | { readonly is: 'unlisted'; readonly why: string };

const OWN_MACHINE: PriceSource = { is: 'free', why: 'runs on your own machine' };

const NOT_IN_SNAPSHOT: PriceSource = { is: 'unlisted', why: 'the snapshot does not list it' };

/**
 * The price source of every provider in the table, by the first row of each vendor. A test holds that none is missing
 * and that the snapshot has each id.
 */
const PRICE_SOURCES = {
  openai: { is: 'listed', under: ['openai'] },
  anthropic: { is: 'listed', under: ['anthropic'] },
  // The snapshot also lists what Vertex AI serves.
  google: { is: 'listed', under: ['google'], names: /^gem(ini|ma)/i },
  // OpenAI's models cost the same there. A deployment has a price when it is named like its model.
  azure: { is: 'listed', under: ['azure', 'openai'] },
  openrouter: { is: 'listed', under: ['openrouter'], freeSuffix: ':free' },
  'vercel-gateway': NOT_IN_SNAPSHOT,
  huggingface: {
    is: 'routed',
    suffixes: {
      cerebras: 'huggingface_cerebras',
      'fireworks-ai': 'huggingface_fireworks-ai',
      groq: 'huggingface_groq',
      hyperbolic: 'huggingface_hyperbolic',
      nebius: 'huggingface_nebius',
      novita: 'huggingface_novita',
      nscale: 'huggingface_nscale',
      ovhcloud: 'huggingface_ovhcloud',
      publicai: 'huggingface_publicai',
      sambanova: 'huggingface_sambanova',
      together: 'huggingface_together',
    },
  },
  'github-models': NOT_IN_SNAPSHOT,
  groq: { is: 'listed', under: ['groq'] },
  deepseek: { is: 'listed', under: ['deepseek'] },
  mistral: { is: 'listed', under: ['mistral'] },
  xai: { is: 'listed', under: ['x-ai'] },
  together: { is: 'listed', under: ['together'] },
  fireworks: { is: 'listed', under: ['fireworks'] },
  cerebras: { is: 'listed', under: ['cerebras'] },
  moonshot: { is: 'listed', under: ['moonshotai'] },
  zai: { is: 'listed', under: ['zai'] },
  'zai-coder': { is: 'unlisted', why: 'a subscription, without prices per token' },
  minimax: { is: 'listed', under: ['minimax'] },
  alibaba: NOT_IN_SNAPSHOT,
  deepinfra: NOT_IN_SNAPSHOT,
  perplexity: { is: 'listed', under: ['perplexity'] },
  nvidia: NOT_IN_SNAPSHOT,
  sambanova: NOT_IN_SNAPSHOT,
  'ollama-cloud': { is: 'unlisted', why: 'a subscription, without prices per token' },
  ollama: OWN_MACHINE,
  lmstudio: OWN_MACHINE,
  vllm: OWN_MACHINE,
  llamacpp: OWN_MACHINE,
  demo: { is: 'free', why: 'the built-in model' },
} as const satisfies Partial<Record<ProviderId | 'demo', PriceSource>>;

const BY_ID: Readonly<Record<string, PriceSource>> = PRICE_SOURCES;

/** The price source of a vendor; undefined for a provider of the operator's own. */
export const findPriceSource = (vendor: string): PriceSource | undefined =>
  Object.hasOwn(BY_ID, vendor) ? BY_ID[vendor] : undefined;

/** Vendors with a price source, in the order of the table. */
export const PRICED_VENDORS: readonly string[] = Object.keys(PRICE_SOURCES);
