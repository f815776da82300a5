import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import { textOf } from '../shared/read.ts';
import { inputText } from './tool-reader.ts';
import type { WireBlock, WireMessage } from './wire.ts';

/** A whole reply in place of a stream. */
export const isWholeMessage = ({ type, role, content }: JsonObject): boolean =>
  Array.isArray(content) && (type === 'message' || (type === undefined && role === 'assistant'));

/** A whole message as the stream it would have been: one way of reading for both. */
export function* messagePayloads(message: WireMessage): Generator<JsonObject> {
  const { content, stop_reason, stop_sequence, stop_details, ...start } = message;
  yield { type: 'message_start', message: start };
  if (Array.isArray(content)) yield* contentPayloads(content);
  yield { type: 'message_delta', delta: { stop_reason, stop_sequence, stop_details } };
  yield { type: 'message_stop' };
}

export function* contentPayloads(content: readonly unknown[]): Generator<JsonObject> {
  for (const [index, block] of content.entries()) {
    if (!isObject(block)) continue;
    const { start, deltas } = split(block);
    yield { type: 'content_block_start', index, content_block: start };
    for (const delta of deltas) yield { type: 'content_block_delta', index, delta };
    yield { type: 'content_block_stop', index };
  }
}

/** A block as its start, with what is streamed taken out, and the deltas that bring it. */
function split(block: WireBlock): { start: WireBlock; deltas: JsonObject[] } {
  const { type } = block;
  if (type === 'text') {
    const citations = Array.isArray(block.citations) ? block.citations : [];
    const deltas = citations.map((citation: unknown): JsonObject => ({ type: 'citations_delta', citation }));
    return { start: { ...block, text: '', citations: [] }, deltas: [{ type: 'text_delta', text: block.text }, ...deltas] };
  }
  if (type === 'thinking') {
    const { thinking, signature } = block;
    return {
      start: { ...block, thinking: '', signature: '' },
      deltas: [
        { type: 'thinking_delta', thinking },
        { type: 'signature_delta', signature },
      ],
    };
  }
  if (!textOf(type).endsWith('tool_use')) return { start: block, deltas: [] };
  return { start: { ...block, input: {} }, deltas: [{ type: 'input_json_delta', partial_json: inputText(block.input) }] };
}
