import type { JsonObject } from '../../accumulate/overlay.ts';

/** Where OpenAI Responses says what the canonical request says elsewhere. */
const PLACES: Readonly<Record<string, string>> = {
  system: '/instructions',
  messages: '/input',
  parameters: '',
  'parameters/max_tokens': '/max_output_tokens',
  output_format: '/text/format',
  'output_format/json_schema': '/text/format',
  verbosity: '/text/verbosity',
  parallel_tool_use: '/parallel_tool_calls',
  thinking: '/reasoning',
  state: '',
  'state/conversation_id': '/conversation',
  'state/prompt_id': '/prompt/id',
  prompt_cache: '/prompt_cache_options',
  'prompt_cache/key': '/prompt_cache_key',
};

/** What has an old name and a new one stands where this body says it. */
export const placesIn = (body: JsonObject): Record<string, string> => ({
  ...PLACES,
  user_id: (body['safety_identifier'] ?? undefined) === undefined ? '/user' : '/safety_identifier',
});

/** Fields that are kept as they came although the canonical request says them, too; the last ones say nothing more than their node. */
export const FIELDS: Readonly<Record<string, string>> = {
  'reasoning/generate_summary': '/thinking/summary',
  prompt_cache_retention: '/prompt_cache',
  service_tier: '/service_tier',
  id: '',
  status: '',
  // Of calls that the client runs, what the call of a function says.
  type: '',
  call_id: '',
  operation: '',
  action: '',
  output: '',
  file_id: '',
  // What openai-node adds to what it sends back.
  parsed_arguments: '',
};

/** Fields of an answer that nobody elsewhere misses: those that repeat the question, and those that the canonical answer says, too. */
export const IDLE: ReadonlySet<string> = new Set([
  'background',
  'conversation',
  'frequency_penalty',
  'instructions',
  'max_output_tokens',
  'max_tool_calls',
  'metadata',
  'parallel_tool_calls',
  'presence_penalty',
  'previous_response_id',
  'prompt',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'reasoning',
  'safety_identifier',
  'store',
  'temperature',
  'text',
  'tool_choice',
  'tools',
  'top_logprobs',
  'top_p',
  'truncation',
  'user',
  'finish_reason',
  'incomplete_details',
  'content/item_id',
  'content/output_index',
  'content/parallel_call_id',
  'content/status',
]);
