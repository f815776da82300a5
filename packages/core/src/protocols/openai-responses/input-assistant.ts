import type { JsonObject } from '../../accumulate/overlay.ts';
import type { OpaqueBlock, TextBlock } from '../../canonical/blocks.ts';
import { expectList, expectObject, expectText, optional } from '../shared/expect.ts';
import { decodeBreakpoint } from '../shared/prompt-cache.ts';
import { listOf, unknownFields } from '../shared/read.ts';
import { decodeCitation, decodeLogprobs } from './blocks.ts';
import { PROTOCOL } from './kept.ts';
import { PART } from './reasoning.ts';
import { channelOf } from './wire.ts';

/** Which message a text stands in. */
const ITEM_FIELDS = ['item_id', 'phase', 'status', 'message', PART];
const MESSAGE_FIELDS = new Set(['type', 'role', 'content', 'id', 'phase', 'status']);
const PART_FIELDS = new Set(['type', 'text', 'refusal', 'annotations', 'logprobs', 'prompt_cache_breakpoint', ...ITEM_FIELDS]);

/** A message of the assistant, block by block, each with its place. What else the item says stays with its first text. */
export function decodeAssistantItem(
  item: JsonObject,
  param: string,
  isSigned: boolean,
): [block: TextBlock | OpaqueBlock, param: string][] {
  const { content, id, phase, status } = item;
  const inner = `${param}.content`;
  const parts =
    typeof content === 'string' ? [{ type: 'output_text', text: content }] : (optional(content, inner, expectList) ?? []);
  const rest = unknownFields(item, MESSAGE_FIELDS);
  const head = {
    ...(typeof id === 'string' && id !== '' && { item_id: id }),
    ...(typeof phase === 'string' && { phase }),
    ...(typeof status === 'string' && { status }),
  };
  return parts.flatMap((value, i): [TextBlock | OpaqueBlock, string][] => {
    const place = typeof content === 'string' ? inner : `${inner}[${i}]`;
    const part = typeof value === 'string' ? { type: 'output_text', text: value } : expectObject(value, place);
    const channel = channelOf(expectText(part['type'], `${place}.type`));
    // Only a whole message can hold a part that nobody here knows.
    if (channel !== 'text' && channel !== 'refusal') return [[opaqueMessage(item, part), place]];
    const fields = { ...head, ...(i === 0 && rest && { message: rest }), ...(i > 0 && { [PART]: i }) };
    const block = decodeText(part, place, channel === 'refusal', fields);
    return block.text === '' && !isSigned ? [] : [[block, place]];
  });
}

const opaqueMessage = (item: JsonObject, part: JsonObject): OpaqueBlock => ({
  type: 'opaque',
  origin: PROTOCOL,
  raw: { ...item, type: 'message', content: [part] },
});

function decodeText(part: JsonObject, param: string, isRefusal: boolean, fields: JsonObject): TextBlock {
  const name = isRefusal ? 'refusal' : 'text';
  const citations = listOf(part['annotations']).map((value, i) =>
    decodeCitation(expectObject(value, `${param}.annotations[${i}]`)),
  );
  const logprobs = decodeLogprobs(part['logprobs']);
  return {
    type: 'text',
    text: expectText(part[name], `${param}.${name}`),
    ...(isRefusal && { refusal: true }),
    ...(citations.length > 0 && { citations }),
    ...(logprobs && { logprobs }),
    ...decodeBreakpoint(part),
    extensions: { [PROTOCOL]: { ...unknownFields(part, PART_FIELDS), ...fields } },
  };
}
