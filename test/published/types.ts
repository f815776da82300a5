import { type Place, rootPlace } from '../../scripts/fields/types.js';
import { type Complaint, validate } from './validate.ts';

/** The declared types of what goes to an upstream and to a client. */
export interface Published {
  request: Place;
  response: Place;
  stream: Place;
}

const CHAT = 'openai-7/resources/chat/completions/completions.d.ts';
const RESPONSES = 'openai-7/resources/responses/responses.d.ts';

export const PUBLISHED = {
  'openai-chat': {
    request: rootPlace(CHAT, 'ChatCompletionCreateParamsBase'),
    response: rootPlace(CHAT, 'ChatCompletion'),
    stream: rootPlace(CHAT, 'ChatCompletionChunk'),
  },
  'openai-responses': {
    request: rootPlace(RESPONSES, 'ResponseCreateParamsBase'),
    response: rootPlace(RESPONSES, 'Response'),
    stream: rootPlace(RESPONSES, 'ResponseStreamEvent'),
  },
} satisfies Record<string, Published>;

export type PublishedProtocol = keyof typeof PUBLISHED;

export interface Exception {
  protocol: PublishedProtocol;
  /** In a response, or in `response` of an event. */
  field: string;
  why: string;
  /** OpenAI's own recorded bodies deviate in the same way. */
  sentByOpenAI?: true;
}

/** Where the output deviates from the declarations on purpose. */
export const EXCEPTIONS: readonly Exception[] = [
  { protocol: 'openai-responses', field: 'output_text', why: 'computed by the SDK, never sent', sentByOpenAI: true },
  { protocol: 'openai-responses', field: 'user', why: 'sent as null; older schemas require the field', sentByOpenAI: true },
  { protocol: 'openai-responses', field: 'usage', why: 'null until the response ends', sentByOpenAI: true },
  { protocol: 'openai-responses', field: 'store', why: 'required by the Open Responses schema', sentByOpenAI: true },
  { protocol: 'openai-responses', field: 'presence_penalty', why: 'required by the Open Responses schema', sentByOpenAI: true },
  { protocol: 'openai-responses', field: 'frequency_penalty', why: 'required by the Open Responses schema', sentByOpenAI: true },
  { protocol: 'openai-responses', field: 'name', why: 'openai 6.49 requires it in response.function_call_arguments.done' },
  {
    protocol: 'openai-responses',
    field: 'logprobs[].bytes',
    why: 'required in output_text parts, sent in deltas too',
    sentByOpenAI: true,
  },
  { protocol: 'openai-responses', field: 'logprobs[].top_logprobs[].bytes', why: 'as in the parts' },
  { protocol: 'openai-responses', field: 'error', why: 'the live API nests the fields of an error event; the type is flat' },
  { protocol: 'openai-responses', field: 'error.code', why: 'Codex shortens the conversation on context_length_exceeded' },
  {
    protocol: 'openai-chat',
    field: 'system_fingerprint',
    why: 'null where there is none: some clients require the field',
    sentByOpenAI: true,
  },
  { protocol: 'openai-chat', field: 'choices[].message.reasoning_content', why: 'reasoning has no declared field' },
  { protocol: 'openai-chat', field: 'messages[].reasoning_content', why: 'models of DeepSeek need their reasoning back' },
  { protocol: 'openai-chat', field: 'choices[].delta.reasoning_content', why: 'reasoning has no declared field' },
  {
    protocol: 'openai-chat',
    field: 'choices[].message.reasoning_details',
    why: 'signatures of reasoning have no declared field',
  },
  { protocol: 'openai-chat', field: 'choices[].delta.reasoning_details', why: 'signatures of reasoning have no declared field' },
  {
    protocol: 'openai-chat',
    field: 'choices[].delta.annotations',
    why: 'declared for messages only; clients merge deltas into one',
  },
  {
    protocol: 'openai-chat',
    field: 'choices[].message.annotations[].url_citation.content',
    why: 'the quoted text, as OpenRouter names it',
  },
  { protocol: 'openai-chat', field: 'choices[].message.images', why: 'generated images have no declared field' },
  {
    protocol: 'openai-chat',
    field: 'choices[].message.tool_calls[].extra_content',
    why: "Google's signatures of calls, as Google names them",
  },
  {
    protocol: 'openai-chat',
    field: 'choices[].delta.tool_calls[].extra_content',
    why: "Google's signatures of calls, as Google names them",
  },
  { protocol: 'openai-chat', field: 'usage.completion_tokens_details.image_tokens', why: 'tokens of generated images' },
];

export const usedExceptions = new Set<Exception>();

/** Deviations without an exception, as `field: problem`. `mayAdd`: fields that are not declared came from the upstream. */
export function deviations(protocol: PublishedProtocol, part: keyof Published, value: unknown, mayAdd: boolean): string[] {
  return validate(PUBLISHED[protocol][part], value)
    .filter(({ isUndeclared }) => !(isUndeclared && mayAdd))
    .filter((complaint) => !isExcepted(protocol, complaint))
    .map(({ field, problem }) => `${field}: ${problem}`);
}

function isExcepted(protocol: PublishedProtocol, { field }: Complaint): boolean {
  const found = EXCEPTIONS.find((one) => one.protocol === protocol && (field === one.field || field === `response.${one.field}`));
  if (found) usedExceptions.add(found);
  return found !== undefined;
}
