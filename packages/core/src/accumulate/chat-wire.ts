/** The parts of a chunk that are read by name. Everything is unknown until it is looked at: it comes from strangers. */
export interface WireChunk {
  id?: unknown;
  object?: unknown;
  created?: unknown;
  model?: unknown;
  choices?: unknown;
  usage?: unknown;
  service_tier?: unknown;
  system_fingerprint?: unknown;
  x_groq?: unknown;
  error?: unknown;
}

export interface WireChoice {
  index?: unknown;
  delta?: unknown;
  message?: unknown;
  /** The delta of the old completions: a piece of the text. */
  text?: unknown;
  finish_reason?: unknown;
  logprobs?: unknown;
  usage?: unknown;
  error?: unknown;
  content_filter_results?: unknown;
  /** In place of `finish_reason`: OpenAI's vision preview. */
  finish_details?: unknown;
  /** In place of `delta`: Azure, on your data. */
  messages?: unknown;
}

export interface WireDelta {
  role?: unknown;
  content?: unknown;
  refusal?: unknown;
  tool_calls?: unknown;
  function_call?: unknown;
  reasoning_content?: unknown;
  reasoning?: unknown;
  reasoning_text?: unknown;
  reasoning_details?: unknown;
  annotations?: unknown;
  images?: unknown;
  audio?: unknown;
  /** LiteLLM: the reasoning once more, with its signature. */
  thinking_blocks?: unknown;
}

const keysOf = <T>(fields: Record<keyof T, 0>): ReadonlySet<string> => new Set(Object.keys(fields));

export const CHOICE_FIELDS: ReadonlySet<string> = keysOf<
  Omit<WireChoice, 'content_filter_results' | 'finish_details' | 'messages'>
>({
  index: 0,
  delta: 0,
  message: 0,
  text: 0,
  finish_reason: 0,
  logprobs: 0,
  usage: 0,
  error: 0,
});

export const DELTA_FIELDS: ReadonlySet<string> = keysOf<WireDelta>({
  role: 0,
  content: 0,
  refusal: 0,
  tool_calls: 0,
  function_call: 0,
  reasoning_content: 0,
  reasoning: 0,
  reasoning_text: 0,
  reasoning_details: 0,
  annotations: 0,
  images: 0,
  audio: 0,
  thinking_blocks: 0,
});
