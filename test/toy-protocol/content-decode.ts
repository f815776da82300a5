import type { BlockEmitter, Flow } from '../../packages/core/src/codec/block-emitter.ts';
import type { JsonObject } from '../../packages/core/src/json/json.ts';
import { decodePart } from './blocks.ts';

const TEXT: Flow = { kind: 'text', start: () => ({ type: 'text', text: '' }) };

/** A call arrives whole, text in pieces. */
export function decodeContent(part: JsonObject, writer: BlockEmitter): void {
  const block = decodePart(part);
  if (block.type === 'text') writer.write(TEXT, { type: 'text_delta', text: block.text });
  else writer.whole(block);
}
