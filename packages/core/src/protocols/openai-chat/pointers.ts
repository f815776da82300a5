import type { JsonObject } from '../../accumulate/overlay.ts';

/** Where OpenAI Chat says what the canonical request says elsewhere. */
const PLACES: Readonly<Record<string, string>> = {
  parameters: '',
  'parameters/stop_sequences': '/stop',
  output_format: '/response_format',
  parallel_tool_use: '/parallel_tool_calls',
  thinking: '/reasoning_effort',
  prompt_cache: '/prompt_cache_options',
  'prompt_cache/key': '/prompt_cache_key',
  audio_output: '/audio',
};

/** What has an old name and a new one stands where this body says it. */
export function placesIn(body: JsonObject): Record<string, string> {
  const nameOf = (name: string, old: string): string =>
    `/${(body[name] ?? undefined) === undefined && (body[old] ?? undefined) !== undefined ? old : name}`;
  return {
    ...PLACES,
    'parameters/max_tokens': nameOf('max_completion_tokens', 'max_tokens'),
    tool_choice: nameOf('tool_choice', 'function_call'),
    user_id: nameOf('safety_identifier', 'user'),
  };
}

/** Fields that are kept as they came although the canonical request says them, too. */
export const FIELDS: Readonly<Record<string, string>> = {
  prompt_cache_retention: '/prompt_cache',
  service_tier: '/service_tier',
  thinking: '/thinking',
  reasoning: '/thinking',
  enable_thinking: '/thinking',
  thinking_budget: '/thinking',
  disable_thinking: '/thinking',
  cache_control: '',
  file_id: '',
  // The number of a call in a stream, which some clients keep.
  index: '',
};

/** Fields of an answer that nobody elsewhere misses: the reason and the role are canonical, and some are the decoder's own remarks. */
export const IDLE: ReadonlySet<string> = new Set([
  'finish_reason',
  'choice/',
  'message/',
  'message/role',
  'message/reasoning_names',
  'message/function_call',
  'message/audio',
  'content/index',
]);
