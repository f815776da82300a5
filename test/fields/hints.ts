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

const PADDING = 'padding against eavesdroppers in OpenAI’s own streams: others have none that could be left out';
const LABEL = 'a label that OpenAI asks for, no part of the answer; where schemas are always kept, strict says nothing';
const ITEM =
  'the number of an item on a server that keeps it, and how far it came: calls have ids of their own, and what is here is whole';
const NAMESPACE = 'calls have one only where the client declared one: a client of another protocol never did';
const PART = 'a part of a total that is told';
const TIER = 'what the answer was served by: a matter of the bill';

export const HINTS: readonly Hint[] = [
  {
    protocol: 'openai-chat',
    section: 'request',
    fields: ['messages'],
    to: ['anthropic', 'responses', 'gemini'],
    why: 'the list itself: what stands in it is decided below',
  },
  {
    protocol: 'openai-chat',
    section: 'request',
    fields: ['stream_options.include_usage'],
    to: ['anthropic', 'responses', 'gemini'],
    why: 'what the client wants to see: every server is asked for usage, and the encoder of the answer shows it or does not',
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
    why: 'the name of the tool, which the call that it answers has told',
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
    why: 'the bytes of the token that stands beside them',
  },
  {
    protocol: 'openai-chat',
    section: 'response',
    fields: ['created'],
    to: ['anthropic', 'gemini'],
    why: 'when the answer was given: these protocols do not say it',
  },
  {
    protocol: 'openai-chat',
    section: 'response',
    fields: ['system_fingerprint'],
    to: ['anthropic', 'responses', 'gemini'],
    why: 'which build of the server answered: it means something to OpenAI alone',
  },
  {
    protocol: 'gemini',
    section: 'request',
    fields: ['generationConfig.responseSchema.nullable', 'tools[].functionDeclarations[].parameters.nullable'],
    to: ['chat', 'anthropic', 'responses'],
    why: 'a value of which no type is said may be null anyway; of one that has a type it is said',
  },
  {
    protocol: 'gemini',
    section: 'request',
    fields: ['systemInstruction.role'],
    to: ['chat', 'anthropic', 'responses'],
    why: 'instructions are nobody’s turn: Google does not read the role',
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
    why: 'only Anthropic can read it; that a citation lost what it quotes is told',
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
    why: 'how sure Google is, and how it would show it: which source supports which stretch of the text is said',
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
