import type { Json } from './chat.ts';

export const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);
export const objects = (value: unknown): Json[] => (Array.isArray(value) ? value.filter(isObject) : []);

const count = (value: unknown): number => (typeof value === 'number' ? value : 0);

const WRITTEN = ['cache_write_tokens', 'cache_creation_input_tokens'];

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
  const prompt = details('prompt_tokens_details');
  const output: Json = { reasoning_tokens: count(usage['reasoning_tokens']), ...details('completion_tokens_details') };
  const all: Json = { ...usage, ...prompt };
  const largest = (names: string[]): number => Math.max(...names.map((name) => count(all[name])));
  const reported = largest(['cached_tokens', 'prompt_cache_hit_tokens', 'num_cached_tokens', 'cache_read_input_tokens']);
  // More cached than prompt tokens (Azure's Grok): the total tells whether the prompt leaves them out.
  const isOutside = reported > said.prompt && (!usage['total_tokens'] || count(usage['total_tokens']) >= sum + reported);
  const promptTokens = total - completionTokens + (isOutside ? reported : 0);
  const cached = isOutside ? reported : Math.min(reported, promptTokens);
  output['reasoning_tokens'] = Math.min(count(output['reasoning_tokens']), completionTokens);
  prompt['cached_tokens'] = cached;
  if (WRITTEN.some((name) => typeof all[name] === 'number')) prompt['cache_write_tokens'] = largest(WRITTEN);
  completion['usage'] = {
    ...usage,
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: prompt,
    completion_tokens_details: output,
  };
}
