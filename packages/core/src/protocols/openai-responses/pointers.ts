/** Where OpenAI Responses says what the canonical request says elsewhere. */
export const POINTERS: Readonly<Record<string, string>> = {
  '/system': '/instructions',
  '/messages': '/input',
  '/parameters': '',
  '/parameters/max_tokens': '/max_output_tokens',
  '/output_format': '/text/format',
  '/output_format/json_schema': '/text/format',
  '/verbosity': '/text/verbosity',
  '/parallel_tool_use': '/parallel_tool_calls',
  '/thinking': '/reasoning',
  '/user_id': '/safety_identifier',
  '/state': '',
  '/state/conversation_id': '/conversation',
  '/prompt_cache': '/prompt_cache_options',
  '/prompt_cache/key': '/prompt_cache_key',
};

/** Fields that are kept as they came although the canonical request says them, too; the last ones say nothing more than their node. */
export const FIELDS: Readonly<Record<string, string>> = {
  user: '/user_id',
  'reasoning/generate_summary': '/thinking/summary',
  prompt_cache_retention: '/prompt_cache',
  id: '',
  status: '',
  file_id: '',
  // What openai-node adds to what it sends back.
  parsed_arguments: '',
};
