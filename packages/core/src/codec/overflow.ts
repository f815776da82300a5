/** Requests that are longer than the context of the model: how providers report them, and what clients recognise. */
import type { CanonicalError } from '../canonical/notes.ts';
import type { ProtocolId } from '../canonical/protocol.ts';

/** Whether the message of a provider says that the request exceeds the context. A limit of tokens per minute does not. */
export const isOverflow = (message: string): boolean =>
  !RATE_LIMIT.test(message) && OVERFLOWS.some((pattern) => pattern.test(message));

const RATE_LIMIT = /tokens per (?:min|hour|day)|rate.?limit|please wait|\bTPM\b/i;

const OVERFLOWS: readonly RegExp[] = [
  // OpenAI, Mistral, DeepSeek, vLLM, SGLang, llama.cpp, LM Studio, Ollama, MiniMax, OpenRouter.
  /context (?:window|size|length)/i,
  // Anthropic, Fireworks, Ollama, Baidu; the second is about input and max_tokens together.
  /prompt (?:tokens )?(?:is )?too long|messages is too long/i,
  /exceed context limit/i,
  // Google: "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576)."
  // GitHub Copilot: "prompt token count of 140000 exceeds the limit of 128000".
  /token count[^.]{0,60} exceeds the (?:maximum|limit)|exceeds? the maximum number of tokens/i,
  // Bedrock.
  /input is too long/i,
  // xAI, and newer vLLM.
  /maximum (?:prompt|model) length/i,
  // Groq.
  /reduce the length of the messages/i,
  // Moonshot, StepFun.
  /exceeded model token limit|more than max tokens allowed/i,
  // Zhipu, DashScope.
  /prompt exceeds max length|range of input length should be/i,
  // Text Generation Inference, Together.
  /tokens \+ `?max_new_tokens`? must be/i,
  // Cohere, and relays.
  /too many (?:prompt |input )?tokens|token limit reached/i,
];

type Vendor = Extract<ProtocolId, 'anthropic-messages' | 'gemini'>;

/** The words of a vendor on which its clients shorten the conversation. OpenAI's read a code instead. */
const WORDS: Readonly<Record<Vendor, { text: string; pattern: RegExp }>> = {
  'anthropic-messages': { text: 'prompt is too long', pattern: /prompt is too long/i },
  gemini: {
    text: 'The input token count exceeds the maximum number of tokens allowed',
    pattern: /input token count.{0,40} exceeds the maximum number of tokens allowed/i,
  },
};

/** The message of an error for clients of a protocol, with its vendor's words for a context that is too long. */
export function describeOverflow({ code, message, upstream }: CanonicalError, protocol: Vendor): string {
  const { text, pattern } = WORDS[protocol];
  const isMissing = code === 'CONTEXT_LENGTH' && upstream?.protocol !== protocol && !pattern.test(message);
  return isMissing ? `${text}: ${message}` : message;
}
