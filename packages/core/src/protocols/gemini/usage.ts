import { getOwn, isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { Note } from '../../canonical/notes.ts';
import type { CanonicalUsage, UsageDetails } from '../../canonical/usage.ts';
import { cachedOutside, listOf, objectOf } from '../shared/read.ts';
import { camelKeys, camelObject, camelOf } from './wire.ts';

const COUNTS = [
  'promptTokenCount',
  'candidatesTokenCount',
  'thoughtsTokenCount',
  'toolUsePromptTokenCount',
  'cachedContentTokenCount',
  'totalTokenCount',
] as const;

/** Vertex sends objects with nothing but `trafficType` in all chunks but the last. */
export function hasCounts(raw: JsonObject): boolean {
  const usage = camelKeys(raw);
  return COUNTS.some((key) => count(usage[key]) !== undefined);
}

/** proto3 writes int64 as text. */
function count(value: unknown): number | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) && number >= 0 ? number : undefined;
}

/** One usage object; the wire has no others: the last replaces the former whole, and a count it does not name is 0. */
export function decodeUsage(raw: JsonObject, note: (note: Note) => void): CanonicalUsage {
  const usage = camelKeys(raw);
  const prompt = count(usage['promptTokenCount']) ?? 0;
  const toolPrompt = count(usage['toolUsePromptTokenCount']);
  const thoughts = count(usage['thoughtsTokenCount']);
  const cached = count(usage['cachedContentTokenCount']);
  const counted = prompt + (toolPrompt ?? 0);
  const outside = cachedOutside(cached, counted, note);
  const input = counted + outside;
  const details = decodeDetails(usage, toolPrompt);
  return {
    input_tokens: input,
    output_tokens: (count(usage['candidatesTokenCount']) ?? 0) + (thoughts ?? 0),
    ...(cached !== undefined && { cache_read_tokens: cached }),
    ...(thoughts !== undefined && { reasoning_tokens: thoughts }),
    ...(details && { details }),
    ...(outside > 0 && { uncertain: true }),
    extensions: { gemini: raw },
  };
}

const MODALITIES = ['MODALITY_UNSPECIFIED', 'TEXT', 'IMAGE', 'VIDEO', 'AUDIO', 'DOCUMENT'] as const;

const INPUT: Partial<Record<string, keyof UsageDetails>> = {
  IMAGE: 'input_image',
  VIDEO: 'input_video',
  AUDIO: 'input_audio',
  DOCUMENT: 'input_document',
};
const OUTPUT: Partial<Record<string, keyof UsageDetails>> = { IMAGE: 'output_image', AUDIO: 'output_audio' };

function decodeDetails(usage: JsonObject, toolPrompt: number | undefined): UsageDetails | undefined {
  const details: UsageDetails = {};
  addModalities(details, usage['promptTokensDetails'], INPUT);
  addModalities(details, usage['toolUsePromptTokensDetails'], INPUT);
  addModalities(details, usage['candidatesTokensDetails'], OUTPUT);
  if (toolPrompt !== undefined) details.tool_use_prompt = toolPrompt;
  for (const _ in details) return details;
  return undefined;
}

function addModalities(details: UsageDetails, list: unknown, names: Partial<Record<string, keyof UsageDetails>>): void {
  for (const entry of listOf(list)) {
    if (!isObject(entry)) continue;
    const { modality, tokenCount }: { modality?: unknown; tokenCount?: unknown } = camelObject(entry);
    const name = typeof modality === 'number' ? MODALITIES[modality] : modality;
    const field = getOwn(names, name);
    if (field) details[field] = (details[field] ?? 0) + (count(tokenCount) ?? 0);
  }
}

/** Names that may come in either spelling; others may have underscores of their own. */
const WIRE_NAMES: ReadonlySet<string> = new Set([
  ...COUNTS,
  'promptTokensDetails',
  'cacheTokensDetails',
  'candidatesTokensDetails',
  'toolUsePromptTokensDetails',
  'trafficType',
  'serviceTier',
]);

/** Over what the wire had, so that counts nobody knows survive. The parts never exceed the whole, and the total is their sum. */
export function encodeUsage({ extensions, details = {}, ...usage }: CanonicalUsage, note: (note: Note) => void): JsonObject {
  const raw = Object.entries(objectOf(extensions?.gemini)).map(([key, value]) => [
    WIRE_NAMES.has(camelOf(key)) ? camelOf(key) : key,
    value,
  ]);
  const input = Math.max(0, usage.input_tokens);
  const output = Math.max(0, usage.output_tokens);
  const toolPrompt = within(details.tool_use_prompt, input);
  const cached = within(usage.cache_read_tokens, input);
  const thoughts = within(usage.reasoning_tokens, output);
  if (usage.cache_creation_tokens) note(uncounted(usage.cache_creation_tokens));
  return {
    ...Object.fromEntries(raw),
    promptTokenCount: input - (toolPrompt ?? 0),
    ...(cached !== undefined && { cachedContentTokenCount: cached }),
    candidatesTokenCount: output - (thoughts ?? 0),
    ...(toolPrompt !== undefined && { toolUsePromptTokenCount: toolPrompt }),
    ...(thoughts !== undefined && { thoughtsTokenCount: thoughts }),
    totalTokenCount: input + output,
    ...(!extensions?.gemini && {
      ...encodeDetails('promptTokensDetails', details, INPUT),
      ...encodeDetails('candidatesTokensDetails', details, OUTPUT),
    }),
  };
}

const within = (part: number | undefined, whole: number): number | undefined =>
  part === undefined ? undefined : Math.min(Math.max(0, part), whole);

const uncounted = (written: number): Note => ({
  code: 'APPROXIMATED',
  path: '/usage/cache_creation_tokens',
  feature: 'usage.cache_creation_tokens',
  message: `${written} tokens written to a cache are counted as a part of the prompt`,
});

function encodeDetails(key: string, details: UsageDetails, names: Partial<Record<string, keyof UsageDetails>>): JsonObject {
  const list = Object.entries(names).flatMap(([modality, name]) => {
    const tokenCount = name && details[name];
    return tokenCount ? [{ modality, tokenCount }] : [];
  });
  return list.length > 0 ? { [key]: list } : {};
}
