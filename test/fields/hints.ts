import { matcher } from '../../scripts/fields/pattern.js';

/** Fields that may go to another protocol without a word and without a note, and why nobody misses them there. */
export interface Hint {
  protocol: string;
  section: string;
  /** Patterns of paths (scripts/fields/pattern.js). */
  fields: readonly string[];
  /** In the column of the other protocols. */
  to: readonly string[];
  why: string;
}

const PADDING = 'padding against eavesdroppers in OpenAI’s own streams: other protocols have none';
const LABEL =
  'a label that OpenAI requires, not a part of the response; where schemas are always enforced, strict has no meaning';
const ITEM = 'the id of a stored item and its progress: calls have their own ids, and items in a request are complete';
const NAMESPACE = 'calls have one only if the client declared one, which clients of other protocols cannot';
const PART = 'a part of a total that is converted';
const TIER = 'the tier that served the response: only relevant for billing';

export const HINTS: readonly Hint[] = [
  {
    protocol: 'openai-chat',
    section: 'request',
    fields: ['messages'],
    to: ['anthropic', 'responses', 'gemini'],
    why: 'the list itself: its content is decided below',
  },
  {
    protocol: 'openai-chat',
    section: 'request',
    fields: ['stream_options.include_usage'],
    to: ['anthropic', 'responses', 'gemini'],
    why: 'a setting for the client: usage is requested from every server, and the response encoder shows or hides it',
  },
  {
    protocol: 'openai-chat',
    section: 'request',
    fields: ['stream_options.include_obfuscation'],
    to: ['anthropic', 'gemini'],
    why: PADDING,
  },
  {
    protocol: 'openai-responses',
    section: 'request',
    fields: ['stream_options.include_obfuscation'],
    to: ['anthropic', 'gemini'],
    why: PADDING,
  },
  {
    protocol: 'openai-chat',
    section: 'request',
    fields: ['response_format(json_schema).json_schema.name', 'response_format(json_schema).json_schema.strict'],
    to: ['anthropic', 'gemini'],
    why: LABEL,
  },
  {
    protocol: 'openai-responses',
    section: 'request',
    fields: ['text.format(json_schema).name', 'text.format(json_schema).strict'],
    to: ['anthropic', 'gemini'],
    why: LABEL,
  },
  {
    protocol: 'openai-responses',
    section: 'request',
    fields: ['input[*].id', 'input[*].status'],
    to: ['chat', 'anthropic', 'gemini'],
    why: ITEM,
  },
  {
    protocol: 'openai-responses',
    section: 'request',
    fields: ['input[function_call_output].name'],
    to: ['chat', 'anthropic', 'gemini'],
    why: 'the name of the tool, which its call contains',
  },
  {
    protocol: 'openai-responses',
    section: 'response',
    fields: ['output[*_call].id', 'output[function_call].status'],
    to: ['chat', 'anthropic', 'gemini'],
    why: ITEM,
  },
  {
    protocol: 'openai-responses',
    section: 'response',
    fields: ['output[*_call].namespace'],
    to: ['chat', 'anthropic', 'gemini'],
    why: NAMESPACE,
  },
  {
    protocol: 'openai-chat',
    section: 'response',
    fields: ['choices[].logprobs.*[].bytes', 'choices[].logprobs.*[].top_logprobs[].bytes'],
    to: ['gemini'],
    why: 'the bytes of the token beside them',
  },
  {
    protocol: 'openai-chat',
    section: 'response',
    fields: ['created'],
    to: ['anthropic', 'gemini'],
    why: 'the time of the response: these protocols have no field for it',
  },
  {
    protocol: 'openai-chat',
    section: 'response',
    fields: ['system_fingerprint'],
    to: ['anthropic', 'responses', 'gemini'],
    why: 'the build of the server: only meaningful for OpenAI',
  },
  {
    protocol: 'gemini',
    section: 'request',
    fields: ['generationConfig.responseSchema.nullable', 'tools[].functionDeclarations[].parameters.nullable'],
    to: ['chat', 'anthropic', 'responses'],
    why: 'a value without a type may be null anyway; with a type it is converted',
  },
  {
    protocol: 'gemini',
    section: 'request',
    fields: ['systemInstruction.role'],
    to: ['chat', 'anthropic', 'responses'],
    why: 'instructions have no role: Google does not read it',
  },
  { protocol: 'openai-chat', section: 'response', fields: ['service_tier'], to: ['gemini'], why: TIER },
  { protocol: 'gemini', section: 'response beyond the SDK', fields: ['usageMetadata.serviceTier'], to: ['anthropic'], why: TIER },
  {
    protocol: 'openai-chat',
    section: 'response',
    fields: ['usage.*_tokens_details.*'],
    to: ['anthropic', 'responses', 'gemini'],
    why: PART,
  },
  {
    protocol: 'gemini',
    section: 'response',
    fields: ['usageMetadata.*TokensDetails[].*'],
    to: ['anthropic', 'responses'],
    why: PART,
  },
  {
    protocol: 'anthropic-messages',
    section: 'response',
    fields: ['content[text].citations[web_search_result_location].encrypted_index'],
    to: ['chat', 'responses'],
    why: 'only Anthropic can read it; the loss of the quoted text is noted',
  },
  {
    protocol: 'gemini',
    section: 'response',
    fields: [
      'candidates[].groundingMetadata.groundingSupports[].confidenceScores',
      'candidates[].groundingMetadata.groundingSupports[].renderedParts',
      'candidates[].groundingMetadata.groundingSupports[].segment.partIndex',
    ],
    to: ['chat', 'responses'],
    why: 'the confidence and display hints of Google; which source supports which part of the text is converted',
  },
];

/** The line that says why a field may be silent in another protocol. */
export function hintFor(protocol: string, section: string, path: string, to: string): Hint | undefined {
  return HINTS.find(
    (hint) =>
      hint.protocol === protocol &&
      hint.section === section &&
      hint.to.includes(to) &&
      hint.fields.some((field) => matcher(field)(path)),
  );
}
