/** Paths of the canonical request as pointers into a body of this protocol. Messages, tools and instructions remember their own place. */
export const PLACES: Readonly<Record<string, string>> = {
  messages: '/contents',
  system: '/systemInstruction',
  tool_choice: '/toolConfig/functionCallingConfig',
  parameters: '/generationConfig',
  'parameters/max_tokens': '/generationConfig/maxOutputTokens',
  'parameters/top_p': '/generationConfig/topP',
  'parameters/top_k': '/generationConfig/topK',
  'parameters/frequency_penalty': '/generationConfig/frequencyPenalty',
  'parameters/presence_penalty': '/generationConfig/presencePenalty',
  'parameters/stop_sequences': '/generationConfig/stopSequences',
  'parameters/n': '/generationConfig/candidateCount',
  'parameters/logprobs': '/generationConfig/responseLogprobs',
  'parameters/top_logprobs': '/generationConfig/logprobs',
  output_format: '/generationConfig/responseMimeType',
  thinking: '/generationConfig/thinkingConfig',
  'thinking/type': '/generationConfig/thinkingConfig',
  'thinking/budget_tokens': '/generationConfig/thinkingConfig/thinkingBudget',
  'thinking/effort': '/generationConfig/thinkingConfig/thinkingLevel',
  'thinking/display': '/generationConfig/thinkingConfig/includeThoughts',
  modalities: '/generationConfig/responseModalities',
  audio_output: '/generationConfig/speechConfig',
  metadata: '/labels',
  service_tier: '/serviceTier',
  'state/cached_content': '/cachedContent',
};

/** Fields that are kept as they came although the canonical request says them, too. */
export const FIELDS: Readonly<Record<string, string>> = {
  'generationConfig/speechConfig/voiceConfig': '/audio_output',
  'generationConfig/responseSchema': '/output_format',
  'generationConfig/responseJsonSchema': '/output_format',
  'generationConfig/_responseJsonSchema': '/output_format',
  // Of instructions, where it means nothing.
  role: '',
  // Of results: their call is known by then.
  id: '',
  parameters: '',
  parametersJsonSchema: '',
  response: '',
  responseJsonSchema: '',
  thought: '',
};

/** Fields of an answer that nobody elsewhere misses: the canonical answer says them, too. */
export const IDLE: ReadonlySet<string> = new Set([
  'candidate/',
  'content/',
  'createTime',
  'finish_reason',
  'finishMessage',
  'groundingMetadata/',
  'groundingMetadata/groundingChunks',
  'groundingMetadata/groundingSupports',
  'logprobsResult',
  'promptFeedback/',
  'promptFeedback/blockReason',
  'promptFeedback/blockReasonMessage',
  'usageMetadata',
]);
