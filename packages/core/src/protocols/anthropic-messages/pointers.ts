/** Where Anthropic Messages says what the canonical request says elsewhere. */
export const PLACES: Readonly<Record<string, string>> = {
  parameters: '',
  user_id: '/metadata/user_id',
  output_format: '/output_config/format',
  'thinking/effort': '/output_config/effort',
  parallel_tool_use: '/tool_choice/disable_parallel_tool_use',
  'prompt_cache/cache_control': '/cache_control',
};

/** Fields of an answer that nobody elsewhere misses: the canonical answer says them, too, and who called is the model. */
export const IDLE: ReadonlySet<string> = new Set(['finish_reason', 'stop_details', 'content/caller']);
