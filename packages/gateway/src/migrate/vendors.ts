/** Providers of other gateways by the names that those give them, and how Sluice reaches them. */

import type { ProtocolId } from '@sluice/core';
import { findFamily } from '../providers/families.ts';
import { findRow, PROVIDER_IDS } from '../providers/lookup.ts';
import type { ProviderId } from '../providers/table.ts';

/** Names of LiteLLM (the part before the slash) and of Portkey that differ from the ids of Sluice. */
const OTHER_NAMES: Readonly<Record<string, ProviderId>> = {
  ai_gateway: 'vercel-gateway',
  'azure-open-ai': 'azure',
  'azure-openai': 'azure',
  azure_text: 'azure',
  dashscope: 'alibaba',
  'fireworks-ai': 'fireworks',
  fireworks_ai: 'fireworks',
  gemini: 'google',
  github: 'github-models',
  hosted_vllm: 'vllm',
  lm_studio: 'lmstudio',
  'mistral-ai': 'mistral',
  nvidia_nim: 'nvidia',
  'open-ai': 'openai',
  ollama_chat: 'ollama',
  'perplexity-ai': 'perplexity',
  'together-ai': 'together',
  together_ai: 'together',
  vercel_ai_gateway: 'vercel-gateway',
  'x-ai': 'xai',
  'z-ai': 'zai',
};

/** Servers that need an address of their own and use the OpenAI protocol. */
const OPENAI_COMPATIBLE: ReadonlySet<string> = new Set([
  'custom_openai',
  'openai_like',
  'litellm_proxy',
  'llamafile',
  'docker_model_runner',
  'xinference',
  'infinity',
]);

/** A provider by the name of another gateway. */
export type Vendor = { row: ProviderId } | { row: undefined; protocol: ProtocolId };

/** Finds a provider; undefined for one that Sluice cannot reach. */
export function findVendor(name: string): Vendor | undefined {
  const id = Object.hasOwn(OTHER_NAMES, name) ? OTHER_NAMES[name] : name;
  const row = PROVIDER_IDS.find((one) => one === id);
  if (row) return { row };
  return OPENAI_COMPATIBLE.has(name) ? { row: undefined, protocol: 'openai-chat' } : undefined;
}

/**
 * The known provider whose id is part of a name such as `openai-prod-7f3a` or `my_groq_key`, the longest first. Names are
 * free, so the model may show more.
 */
export function guessVendor(name: string, model = ''): Vendor | undefined {
  const words = toWords(name);
  if (CLOUDS.some((cloud) => words.includes(cloud))) return undefined;
  const ids = [...PROVIDER_IDS, ...Object.keys(OTHER_NAMES)].toSorted((a, b) => b.length - a.length);
  const found = ids.find((id) => words.includes(toWords(id))) ?? findFamily(model);
  return found === undefined ? undefined : findVendor(found);
}

const toWords = (name: string): string => `-${name.toLowerCase().replaceAll(/[_\s]/g, '-')}-`;

/** Clouds that serve models of other vendors, and that Sluice cannot reach. */
const CLOUDS = ['-bedrock-', '-vertex-', '-sagemaker-', '-azure-ai-', '-foundry-'];

/** The known provider at an address with this protocol. */
export function findByAddress(url: string, protocol: ProtocolId): ProviderId | undefined {
  if (!URL.canParse(url)) return undefined;
  const { origin } = new URL(url.replace(/^http:\/\/localhost\b/, 'http://127.0.0.1'));
  const matching = PROVIDER_IDS.filter((id) => {
    const row = findRow(id);
    return row?.base_url !== undefined && row.protocol === protocol && new URL(row.base_url).origin === origin;
  });
  // Plans of one vendor share the origin and differ in the path.
  return matching.find((id) => url.startsWith(findRow(id)?.base_url ?? '\n')) ?? matching[0];
}

/** The usual variable of a provider's key. */
export const findKeyVariable = (id: string): string => findRow(id)?.key_env[0] ?? `${id}_API_KEY`;

/** Cuts the endpoint off an address and tells the protocol that it implies. */
export function splitEndpoint(url: string): { base: string; protocol: ProtocolId | undefined } {
  const bare = url.replace(/\/+$/, '');
  for (const [end, protocol] of ENDPOINTS) if (end.test(bare)) return { base: bare.replace(end, ''), protocol };
  return { base: bare, protocol: undefined };
}

const ENDPOINTS: readonly (readonly [end: RegExp, protocol: ProtocolId])[] = [
  [/\/chat\/completions$/, 'openai-chat'],
  [/\/responses$/, 'openai-responses'],
  [/\/messages$/, 'anthropic-messages'],
  [/\/models(\/[^/]+)?$/, 'gemini'],
];
