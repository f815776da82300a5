import type { JsonObject } from '../../src/json/json.ts';

/** Short hands for the events of the wire. */
export const start = (fields: JsonObject = {}): JsonObject => ({
  type: 'message_start',
  message: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    ...fields,
  },
});
export const open = (index: unknown, content_block: unknown): JsonObject => ({
  type: 'content_block_start',
  index,
  content_block,
});
export const text = (value = ''): JsonObject => ({ type: 'text', text: value });
export const thinking = (value = '', signature = ''): JsonObject => ({ type: 'thinking', thinking: value, signature });
export const tool = (id: unknown, name: unknown, input: unknown = {}): JsonObject => ({ type: 'tool_use', id, name, input });
export const delta = (index: unknown, value: unknown): JsonObject => ({ type: 'content_block_delta', index, delta: value });
export const say = (index: unknown, value: string): JsonObject => delta(index, { type: 'text_delta', text: value });
export const think = (index: unknown, value: string): JsonObject => delta(index, { type: 'thinking_delta', thinking: value });
export const sign = (index: unknown, signature: string): JsonObject => delta(index, { type: 'signature_delta', signature });
export const args = (index: unknown, partial_json: unknown): JsonObject =>
  delta(index, { type: 'input_json_delta', partial_json });
export const close = (index: unknown): JsonObject => ({ type: 'content_block_stop', index });
export const finish = (stop_reason: unknown, usage?: JsonObject, fields: JsonObject = {}): JsonObject => ({
  type: 'message_delta',
  delta: { stop_reason, stop_sequence: null, ...fields },
  ...(usage && { usage }),
});
export const stop: JsonObject = { type: 'message_stop' };
export const ping: JsonObject = { type: 'ping' };

/** A whole text block. */
export const says = (index: number, value: string): JsonObject[] => [open(index, text()), say(index, value), close(index)];
