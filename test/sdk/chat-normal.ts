import type { Json } from './chat.ts';

export const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);
export const objects = (value: unknown): Json[] => (Array.isArray(value) ? value.filter(isObject) : []);

const count = (value: unknown): number => (typeof value === 'number' ? value : 0);

/** The usage of a completion by the official rules: completion_tokens holds the reasoning, total is the sum, a part is at most the whole. */
export function officialUsage(completion: Json): void {
  const { usage } = completion;
  if (!isObject(usage)) return;
  const details = (key: string): Json => (isObject(usage[key]) ? usage[key] : {});
  const said = { prompt: count(usage['prompt_tokens']), completion: count(usage['completion_tokens']) };
  const sum = said.prompt + said.completion;
  const total = sum === 0 ? 0 : Math.max(count(usage['total_tokens']), sum);
  const isAudio = usage['prompt_audio_seconds'] !== undefined && usage['prompt_audio_seconds'] !== null;
  const completionTokens = isAudio ? said.completion : total - said.prompt;
  const cached = usage['prompt_cache_hit_tokens'] ?? usage['num_cached_tokens'];
  const prompt: Json = { cached_tokens: count(cached), ...details('prompt_tokens_details') };
  const output: Json = { reasoning_tokens: count(usage['reasoning_tokens']), ...details('completion_tokens_details') };
  prompt['cached_tokens'] = Math.min(count(prompt['cached_tokens']), total - completionTokens);
  output['reasoning_tokens'] = Math.min(count(output['reasoning_tokens']), completionTokens);
  completion['usage'] = {
    ...usage,
    prompt_tokens: total - completionTokens,
    completion_tokens: completionTokens,
    total_tokens: total,
    prompt_tokens_details: prompt,
    completion_tokens_details: output,
  };
}
