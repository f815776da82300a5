import type { ProtocolId, ProviderProfile } from '@sluice/core';
import { expect, test } from 'vitest';
import { adaptTo } from '../../packages/gateway/src/doctor/live.ts';

test.each<[ProtocolId, string, Partial<ProviderProfile>, Partial<ProviderProfile> | undefined]>([
  [
    'openai-chat',
    "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
    {},
    { max_tokens_field: 'max_completion_tokens' },
  ],
  ['openai-chat', 'Extra inputs are not permitted: max_completion_tokens', {}, { max_tokens_field: 'max_tokens' }],
  ['openai-chat', 'max_tokens is not supported', {}, { max_tokens_field: 'max_completion_tokens' }],
  ['openai-chat', 'max_tokens is not supported', { max_tokens_field: 'max_completion_tokens' }, undefined],
  ['openai-chat', 'unknown field stream_options', {}, { stream_usage: false }],
  ['openai-chat', "'temperature' does not support 0 with this model", {}, { supports_sampling: false }],
  ['openai-responses', "Unsupported parameter: 'temperature'", {}, { supports_sampling: false }],
  ['anthropic-messages', 'temperature is deprecated for this model', {}, { rejects_sampling: true }],
  ['anthropic-messages', 'thinking.type: adaptive is not supported', {}, { thinking_mode: 'budget' }],
  ['anthropic-messages', 'thinking.budget_tokens: not allowed', {}, { thinking_mode: 'adaptive' }],
  ['gemini', 'temperature is not supported', {}, undefined],
  ['openai-chat', 'the model is overloaded', {}, undefined],
])('%s: the error "%s" changes the profile', (protocol, message, known, learned) => {
  expect(adaptTo({ code: 'INVALID_INPUT', message }, protocol, known)).toEqual(learned);
});
