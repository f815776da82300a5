import type { JsonObject } from '../../packages/core/src/accumulate/overlay.ts';
import type { BlockEmitter, Flow } from '../../packages/core/src/protocols/shared/block-writer.ts';
import { decodePart } from './blocks.ts';

const TEXT: Flow = { kind: 'text', start: () => ({ type: 'text', text: '' }) };

/** A call arrives whole, text in pieces. */
export function decodeContent(part: JsonObject, writer: BlockEmitter): void {
  const block = decodePart(part);
  if (block.type === 'text') writer.write(TEXT, { type: 'text_delta', text: block.text });
  else writer.whole(block);
}
