import type { RuleId } from '../rules/index.ts';

/**
 * What the official SDKs do with a stream that violates this rule alone, as measured: `npm run docs` writes this file, and
 * the same test holds it.
 */
export const SDK_BREAKAGE: Partial<Record<RuleId, Readonly<Record<string, string>>>> = {
  'anthropic/block-start-missing': {
    '@anthropic-ai/sdk 1.8': 'throws: Cannot read properties of undefined (reading "type")',
  },
  'anthropic/block-start-repeated': {
    '@anthropic-ai/sdk 1.8': 'reads an extra call',
  },
  'anthropic/delta-of-another-kind': {
    '@anthropic-ai/sdk 1.8': 'loses text',
  },
  'anthropic/ended-early': {
    '@anthropic-ai/sdk 1.8': 'throws: stream ended without producing a Message with role=assistant',
  },
  'anthropic/event-name-missing': {
    '@anthropic-ai/sdk 1.8': 'throws: request ended without sending any chunks',
  },
  'anthropic/index-gap': {
    '@anthropic-ai/sdk 1.8': 'loses text',
  },
  'anthropic/index-reused': {
    '@anthropic-ai/sdk 1.8': 'reads other arguments',
  },
  'anthropic/input-after-stop': {
    '@anthropic-ai/sdk 1.8': 'throws: Unexpected non-whitespace character after JSON',
  },
  'anthropic/input-sent-twice': {
    '@anthropic-ai/sdk 1.8': 'throws: Expected "," or "}" after property value in JSON',
  },
  'anthropic/message-start-incomplete': {
    '@anthropic-ai/sdk 1.8': 'throws: Cannot read properties of undefined (reading "push")',
  },
  'anthropic/message-start-repeated': {
    '@anthropic-ai/sdk 1.8': 'throws: Unexpected event order, got message_start before receiving "message_stop"',
  },
  'anthropic/message-stop-missing': {
    '@anthropic-ai/sdk 1.8': 'throws: stream ended without producing a Message with role=assistant',
  },
  'anthropic/start-text-repeated': {
    '@anthropic-ai/sdk 1.8': 'reads text that was not sent',
  },
  'anthropic/tool-name-missing': {
    '@anthropic-ai/sdk 1.8': 'reads another tool name',
  },
  'anthropic/type-missing': {
    '@anthropic-ai/sdk 1.8': 'throws: request ended without sending any chunks',
  },
  'chat/choice-index-missing': {
    'openai 6.49': 'throws: stream ended without producing a ChatCompletionMessage with role=assistant',
    'openai 7.53': 'throws: Chat completion stream contains an invalid choice index: undefined',
  },
  'chat/choices-missing': {
    'openai 6.49': 'throws: chunk.choices is not iterable',
    'openai 7.53': 'throws: chunk.choices is not iterable',
  },
  'chat/content-cumulative': {
    'openai 6.49': 'reads text that was not sent',
    'openai 7.53': 'reads text that was not sent',
  },
  'chat/content-parts': {
    'openai 6.49': 'reads text that was not sent',
    'openai 7.53': 'reads text that was not sent',
  },
  'chat/ended-early': {
    'openai 6.49': 'throws: missing finish_reason for choice 0',
    'openai 7.53': 'throws: missing finish_reason for choice 0',
  },
  'chat/error-empty': {
    'openai 6.49': 'throws: {}',
    'openai 7.53': 'throws: {}',
  },
  'chat/finish-missing': {
    'openai 6.49': 'throws: missing finish_reason for choice 0',
    'openai 7.53': 'throws: missing finish_reason for choice 0',
  },
  'chat/role-missing': {
    'openai 6.49': 'throws: missing role for choice 0',
    'openai 7.53': 'throws: missing role for choice 0',
  },
  'chat/tool-args-cumulative': {
    'openai 6.49': 'reads other arguments',
    'openai 7.53': 'reads other arguments',
  },
  'chat/tool-args-leading-empty-object': {
    'openai 6.49': 'reads other arguments',
    'openai 7.53': 'reads other arguments',
  },
  'chat/tool-args-object': {
    'openai 6.49': 'reads other arguments',
    'openai 7.53': 'reads other arguments',
  },
  'chat/tool-calls-object': {
    'openai 6.49': 'throws: tool_calls is not iterable',
    'openai 7.53': 'throws: tool_calls is not iterable',
  },
  'chat/tool-index-drifts': {
    'openai 6.49': 'throws: tool call snapshot missing `type`',
    'openai 7.53': 'throws: Chat completion stream contains an invalid tool call index: 1001',
  },
  'chat/tool-index-gap': {
    'openai 6.49': 'throws: Cannot read properties of undefined (reading "type")',
    'openai 7.53': 'throws: Cannot read properties of undefined (reading "id")',
  },
  'chat/tool-index-missing': {
    'openai 6.49': 'loses a call',
    'openai 7.53': 'throws: Chat completion stream contains an invalid tool call index: undefined',
  },
  'chat/tool-index-reused': {
    'openai 6.49': 'loses a call',
    'openai 7.53': 'loses a call',
  },
  'chat/tool-index-string': {
    'openai 7.53': 'throws: Chat completion stream contains an invalid tool call index: 0',
  },
  'chat/tool-index-wild': {
    'openai 6.49': 'loses a call',
    'openai 7.53': 'throws: Chat completion stream contains an invalid tool call index: -1',
  },
  'chat/tool-name-empty': {
    'openai 6.49': 'reads another tool name',
    'openai 7.53': 'reads another tool name',
  },
  'chat/tool-name-fragmented': {
    'openai 6.49': 'reads another tool name',
    'openai 7.53': 'reads another tool name',
  },
  'chat/tool-name-missing': {
    'openai 6.49': 'reads another tool name',
    'openai 7.53': 'reads another tool name',
  },
  'chat/tool-type-case': {
    'openai 6.49': 'throws: Currently only `function` tool calls are supported; Received `FUNCTION`',
  },
  'chat/tool-type-missing': {
    'openai 6.49': 'throws: tool call snapshot missing `type`',
    'openai 7.53': 'throws: tool call snapshot missing `type`',
  },
  'gemini/args-not-object': {
    '@google/genai 1.52': 'reads other arguments',
    '@google/genai 2.32': 'reads other arguments',
  },
  'gemini/comment': {
    '@google/genai 1.52': 'loses text',
    '@google/genai 2.32': 'loses text',
  },
  'gemini/done-sentinel': {
    '@google/genai 1.52': 'throws: Unexpected token "D", "[DONE]" is not valid JSON',
    '@google/genai 2.32': 'throws: Unexpected token "D", "[DONE]" is not valid JSON',
  },
  'gemini/finish-missing': {
    '@google/genai 1.52': 'treats a truncated response as complete',
    '@google/genai 2.32': 'treats a truncated response as complete',
  },
  'gemini/malformed-part': {
    '@google/genai 1.52': 'throws: Cannot read properties of null (reading "thought")',
    '@google/genai 2.32': 'throws: Cannot read properties of null (reading "thought")',
  },
  'gemini/nameless-call': {
    '@google/genai 1.52': 'reads an extra call',
    '@google/genai 2.32': 'reads an extra call',
  },
  'gemini/response-wrapper': {
    '@google/genai 1.52': 'loses text',
    '@google/genai 2.32': 'loses text',
  },
  'gemini/snake-case': {
    '@google/genai 1.52': 'loses a call',
    '@google/genai 2.32': 'loses a call',
  },
  'gemini/stray-call-end': {
    '@google/genai 1.52': 'reads an extra call',
    '@google/genai 2.32': 'reads an extra call',
  },
  'responses/call-id-differs': {
    'openai 7.53 (responses)': 'throws: expected output item call_id "call_1", got "call_1_done"',
  },
  'responses/call-id-missing': {
    'openai 7.53 (responses)': 'throws: expected a non-empty output item call_id for response.output_item.added',
  },
  'responses/call-id-repeated': {
    'openai 7.53 (responses)': 'throws: duplicate output item identity "call:function_call:call_1"',
  },
  'responses/call-name-missing': {
    'openai 6.49 (responses)': 'reads another tool name',
    'openai 7.53 (responses)': 'reads another tool name',
  },
  'responses/created-missing': {
    'openai 6.49 (responses)':
      'throws: When snapshot hasn’t been set yet, expected "response.created" event, got response.output_…',
    'openai 7.53 (responses)':
      'throws: When snapshot hasn’t been set yet, expected "response.created" event, got response.output_…',
  },
  'responses/failed-without-error': {
    'openai 6.49 (responses)': 'does not see the error',
    'openai 7.53 (responses)': 'does not see the error',
  },
  'responses/item-id-rotates': {
    'openai 7.53 (responses)': 'throws: expected item_id "…", got "…"',
  },
  'responses/item-not-added': {
    'openai 6.49 (responses)': 'throws: missing output at index 0',
    'openai 7.53 (responses)': 'throws: missing output at index 0',
  },
  'responses/item-repeated': {
    'openai 6.49 (responses)': 'throws: missing output at index 1',
    'openai 7.53 (responses)': 'throws: missing output at index 1',
  },
  'responses/output-empty': {
    'openai 6.49 (responses)': 'loses text',
    'openai 7.53 (responses)': 'loses text',
  },
  'responses/output-index-differs': {
    'openai 6.49 (responses)': 'throws: missing output at index 100',
    'openai 7.53 (responses)': 'throws: missing output at index 100',
  },
  'responses/output-index-missing': {
    'openai 6.49 (responses)': 'throws: missing output at index undefined',
    'openai 7.53 (responses)': 'throws: missing output at index undefined',
  },
  'responses/output-index-reused': {
    'openai 7.53 (responses)': 'throws: Duplicate response output index 0.',
  },
  'responses/parallel-wrapper': {
    'openai 6.49 (responses)': 'loses a call',
    'openai 7.53 (responses)': 'loses a call',
  },
  'responses/part-index-differs': {
    'openai 6.49 (responses)': 'throws: missing content at index 1',
    'openai 7.53 (responses)': 'throws: missing content at index 1',
  },
  'responses/part-not-added': {
    'openai 6.49 (responses)': 'throws: missing content at index 0',
    'openai 7.53 (responses)': 'throws: missing content at index 0',
  },
  'responses/terminal-missing': {
    'openai 6.49 (responses)': 'treats a truncated response as complete',
    'openai 7.53 (responses)': 'treats a truncated response as complete',
  },
  'responses/text-of-another-kind': {
    'openai 7.53 (responses)': 'throws: expected output item type "message", got "reasoning"',
  },
  'responses/type-missing': {
    'openai 6.49 (responses)': 'throws: When snapshot hasn’t been set yet, expected "response.created" event, got undefined',
    'openai 7.53 (responses)': 'throws: Unhandled response stream event: unknown',
  },
  'responses/unknown-event': {
    'openai 6.49 (responses)': 'throws: Unhandled response stream event: {"type":"response.vendor_hint","hint":1}',
    'openai 7.53 (responses)': 'throws: Unhandled response stream event: unknown',
  },
  'sse/after-end': {
    'openai 6.49 (responses)': 'throws: Unhandled response stream event: {"type":"ping"}',
    'openai 7.53 (responses)': 'throws: Unhandled response stream event: unknown',
  },
  'sse/bare-json': {
    '@google/genai 1.52': 'throws: Incomplete JSON segment at the end',
    '@google/genai 2.32': 'throws: Incomplete JSON segment at the end',
    'openai 6.49': 'throws: request ended without sending any chunks',
    'openai 6.49 (responses)': 'does not see the error',
    'openai 7.53': 'throws: request ended without sending any chunks',
    'openai 7.53 (responses)': 'does not see the error',
  },
  'sse/done-padded': {
    'openai 6.49': 'throws: Unexpected token "D", " [DONE] " is not valid JSON',
    'openai 7.53': 'throws: Error reading response: malformed server-sent event JSON.',
  },
  'sse/empty-data': {
    '@google/genai 1.52': 'throws: Unexpected end of JSON input',
    '@google/genai 2.32': 'throws: Unexpected end of JSON input',
    'openai 6.49': 'throws: Unexpected end of JSON input',
    'openai 6.49 (responses)': 'throws: Unexpected end of JSON input',
    'openai 7.53': 'throws: Error reading response: malformed server-sent event JSON.',
    'openai 7.53 (responses)': 'throws: Error reading response: malformed server-sent event JSON.',
  },
  'sse/error-event-without-data': {
    '@google/genai 1.52': 'does not see the error',
    '@google/genai 2.32': 'does not see the error',
  },
  'sse/json-body-instead-of-stream': {
    'openai 6.49': 'throws: request ended without sending any chunks',
    'openai 7.53': 'throws: request ended without sending any chunks',
  },
  'sse/keepalive-as-data': {
    '@google/genai 1.52': 'throws: Unexpected token ":", ": keepalive" is not valid JSON',
    '@google/genai 2.32': 'throws: Unexpected token ":", ": keepalive" is not valid JSON',
    'openai 6.49': 'throws: Unexpected token ":", ": keepalive" is not valid JSON',
    'openai 6.49 (responses)': 'throws: Unexpected token ":", ": keepalive" is not valid JSON',
    'openai 7.53': 'throws: Error reading response: malformed server-sent event JSON.',
    'openai 7.53 (responses)': 'throws: Error reading response: malformed server-sent event JSON.',
  },
  'sse/malformed-json': {
    '@google/genai 1.52': 'throws: Expected property name or "}" in JSON',
    '@google/genai 2.32': 'throws: Expected property name or "}" in JSON',
    'openai 6.49': 'throws: Expected property name or "}" in JSON',
    'openai 6.49 (responses)': 'throws: Expected property name or "}" in JSON',
    'openai 7.53': 'throws: Error reading response: malformed server-sent event JSON.',
    'openai 7.53 (responses)': 'throws: Error reading response: malformed server-sent event JSON.',
  },
  'sse/several-payloads': {
    'openai 6.49': 'throws: Unexpected non-whitespace character after JSON',
    'openai 7.53': 'throws: Error reading response: malformed server-sent event JSON.',
  },
  'sse/trailing-garbage': {
    '@anthropic-ai/sdk 1.8': 'throws: Unexpected non-whitespace character after JSON',
    '@google/genai 1.52': 'throws: Unexpected non-whitespace character after JSON',
    '@google/genai 2.32': 'throws: Unexpected non-whitespace character after JSON',
    'openai 6.49': 'throws: Unexpected non-whitespace character after JSON',
    'openai 6.49 (responses)': 'throws: Unexpected non-whitespace character after JSON',
    'openai 7.53': 'throws: Error reading response: malformed server-sent event JSON.',
    'openai 7.53 (responses)': 'throws: Error reading response: malformed server-sent event JSON.',
  },
  'sse/unterminated-event': {
    '@anthropic-ai/sdk 1.8': 'throws: stream ended without producing a Message with role=assistant',
    '@google/genai 1.52': 'throws: Incomplete JSON segment at the end',
    '@google/genai 2.32': 'throws: Incomplete JSON segment at the end',
  },
};
