/** Where OpenAI Chat says what the canonical request says elsewhere. */
export const POINTERS: Readonly<Record<string, string>> = {
  '/parameters': '',
  '/parameters/max_tokens': '/max_completion_tokens',
  '/parameters/stop_sequences': '/stop',
  '/output_format': '/response_format',
  '/parallel_tool_use': '/parallel_tool_calls',
  '/thinking': '/reasoning_effort',
  '/user_id': '/user',
  '/prompt_cache': '/prompt_cache_options',
  '/prompt_cache/key': '/prompt_cache_key',
  '/audio_output': '/audio',
};

/** Fields that are kept as they came although the canonical request says them, too. */
export const FIELDS: Readonly<Record<string, string>> = {
  safety_identifier: '/user_id',
  prompt_cache_retention: '/prompt_cache',
  thinking: '/thinking',
  reasoning: '/thinking',
  enable_thinking: '/thinking',
  thinking_budget: '/thinking',
  disable_thinking: '/thinking',
  cache_control: '',
};
