import { describe, expect, test } from 'vitest';
import { PROTOCOL_IDS, type ProtocolId } from '../../src/canonical/protocol.ts';
import { CODECS, convertError } from '../../src/engine/index.ts';

/** What servers respond when a request does not fit into the context. */
const MESSAGES: readonly [vendor: string, message: string][] = [
  ['OpenAI', "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens."],
  ['OpenAI, Responses', 'Your input exceeds the context window of this model. Please adjust your input and try again.'],
  ['Anthropic', 'prompt is too long: 213462 tokens > 200000 maximum'],
  ['Anthropic, with max_tokens', 'input length and `max_tokens` exceed context limit: 198000 + 21333 > 200000'],
  ['Google', 'The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).'],
  ['Google, before', 'The input token count exceeds the maximum number of tokens allowed 1048576.'],
  ['GitHub Copilot', 'prompt token count of 140000 exceeds the limit of 128000'],
  ['Bedrock', 'Input is too long for requested model.'],
  ['xAI', "This model's maximum prompt length is 131072 but the request contains 537812 tokens."],
  ['Groq', 'Please reduce the length of the messages or completion.'],
  ['Mistral', 'Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length'],
  ['Moonshot', 'Invalid request: Your request exceeded model token limit: 262144'],
  ['StepFun', 'The tokens in request more than max tokens allowed'],
  ['Zhipu', 'Prompt exceeds max length'],
  ['DashScope', 'Range of input length should be [1, 30720]'],
  ['MiniMax', 'invalid params, context window exceeds limit'],
  ['Cohere', 'too many tokens: total number of tokens in the prompt cannot exceed 128000'],
  ['vLLM', 'The decoder prompt (length 9001) is longer than the maximum model length of 8192.'],
  ['llama.cpp', 'the request exceeds the available context size, try increasing it'],
  ['LM Studio', 'Trying to keep the first 9001 tokens when context the overflows; it is greater than the context length of 8192'],
  ['Ollama', 'prompt too long; exceeded max context length by 1 tokens'],
  ['Text Generation Inference', 'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096'],
];

/** What a client of each protocol recognises. */
const RECOGNISED: Record<ProtocolId, RegExp> = {
  'openai-chat': /"code":"context_length_exceeded"/,
  'openai-responses': /"code":"context_length_exceeded"/,
  'anthropic-messages': /prompt is too long/,
  gemini: /input token count.{0,20} exceeds the maximum number of tokens allowed/i,
};

const bodyOf = (message: string) => ({
  error: { code: 400, message, status: 'INVALID_ARGUMENT', type: 'invalid_request_error' },
});

describe.each(MESSAGES)('%s', (_, message) => {
  test.each(PROTOCOL_IDS)('is recognised by clients of %s, from every other protocol', (to) => {
    for (const from of PROTOCOL_IDS.filter((protocol) => protocol !== to)) {
      const reply = convertError({ status: 400, body: bodyOf(message) }, { from: CODECS[from], to: CODECS[to] });
      expect(reply.error.code).toBe('CONTEXT_LENGTH');
      expect(reply.status).toBe(400);
      expect(JSON.stringify(reply.body)).toMatch(RECOGNISED[to]);
      expect(JSON.stringify(reply.body)).toContain(JSON.stringify(message).slice(1, -1));
    }
  });
});

test.each([
  [
    'Groq',
    413,
    'Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 8000, please reduce the length of the messages',
  ],
  ['Bedrock', 429, 'Too many tokens, please wait before trying again.'],
  ['Google', 429, 'You exceeded your current quota, please check your plan and billing details.'],
])('a limit of tokens per time is no overflow: %s', (_, status, message) => {
  for (const from of PROTOCOL_IDS) {
    const { error } = convertError({ status, body: bodyOf(message) }, { from: CODECS[from], to: CODECS['openai-chat'] });
    expect(error.code).not.toBe('CONTEXT_LENGTH');
  }
});

test('the phrase of the own vendor is not repeated', () => {
  const [, message] = MESSAGES[4] ?? [];
  const { body } = convertError({ status: 400, body: bodyOf(message ?? '') }, { from: CODECS['openai-chat'], to: CODECS.gemini });
  expect(JSON.stringify(body)).toContain(
    'The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).',
  );
});
