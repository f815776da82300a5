import { assignOwn, type JsonObject } from '../../accumulate/overlay.ts';
import type { ThinkingBlock } from '../../canonical/blocks.ts';
import type { SignedBlob } from '../../canonical/protocol.ts';
import { decodeCarrier } from '../shared/carrier.ts';
import { listOf, objectOf, textOf, unknownFields } from '../shared/read.ts';
import { isDerivedId, replayableId } from './ids.ts';
import { fieldsOf, PROTOCOL } from './kept.ts';

/** A reasoning item of the history: what it says, and whom its blob signs. */
export interface Reasoning {
  blocks: ThinkingBlock[];
  /** For the call or text that follows, or for the text before. */
  signs?: { blob: SignedBlob; which: 'next' | 'last' };
}

const FIELDS = new Set(['type', 'id', 'summary', 'content', 'encrypted_content']);

/** A summary and a full text are two blocks of one item. Whose item it is, the kept fields say: ours mean nothing to a provider. */
export function decodeReasoning(item: JsonObject): Reasoning {
  const { id } = item;
  const isOurs = isDerivedId(id);
  const carried = decodeCarrier(textOf(item['encrypted_content']));
  const signature = carried ? carried.blob : encrypted(item);
  const blocks = decodeTexts(item, signature?.form === 'redacted');
  const isEmpty = blocks.length === 0;
  if (isEmpty && carried && (carried.attach === 'next' || carried.blob.form === 'thought_signature'))
    // Gemini signs no empty thought: behind a text it is the text that is signed.
    return { blocks: [], signs: { blob: carried.blob, which: carried.attach === 'next' ? 'next' : 'last' } };
  const itemId = !isOurs && typeof id === 'string' && id !== '' ? { item_id: id } : {};
  if (isEmpty && (signature || Object.keys(itemId).length > 0)) blocks.push(silent(signature?.form === 'redacted'));
  const fields = { ...unknownFields(item, FIELDS), ...itemId };
  const isOwn = !isOurs && !carried;
  return {
    blocks: blocks.map((block, i) => ({
      ...block,
      ...(i === 0 && signature && { signature }),
      ...(isOwn && { extensions: { [PROTOCOL]: i === 0 ? fields : { ...itemId, [PART]: i } } }),
    })),
  };
}

/** The number of a block within its item, where that is not the first. */
export const PART = 'part';

function encrypted({ encrypted_content: value, id }: JsonObject): SignedBlob | undefined {
  if (typeof value !== 'string' || value === '') return undefined;
  const itemId = typeof id === 'string' && id !== '' && !isDerivedId(id) ? { item_id: id } : {};
  return { origin: PROTOCOL, form: 'encrypted', value, ...itemId };
}

const silent = (isRedacted: boolean): ThinkingBlock => ({
  type: 'thinking',
  thinking: '',
  ...(isRedacted && { variant: 'redacted' }),
});

/** The summaries are one block, each part of the full text is another. */
function decodeTexts({ summary, content }: JsonObject, isRedacted: boolean): ThinkingBlock[] {
  if (isRedacted) return [];
  const summaries = textsOf(summary);
  return [
    ...(summaries.length > 0 ? [summarised(summaries)] : []),
    ...textsOf(content).map((thinking): ThinkingBlock => ({ type: 'thinking', thinking, variant: 'full' })),
  ];
}

const summarised = (parts: string[]): ThinkingBlock => ({
  type: 'thinking',
  thinking: parts.join('\n\n'),
  variant: 'summary',
  ...(parts.length > 1 && { summary_parts: parts }),
});

/** A list of parts, or plain text as some clients send it. */
const textsOf = (list: unknown): string[] =>
  (typeof list === 'string' ? [list] : listOf(list).map((part) => textOf(objectOf(part)['text']))).filter((text) => text !== '');

/** Whether the block was an item of this protocol, or is signed by it; anything else has no item to go back to. */
export const isOwnThinking = ({ extensions, signature }: ThinkingBlock): boolean =>
  extensions?.[PROTOCOL] !== undefined || signature?.origin === PROTOCOL;

/** Blocks of one item, as the item they were. */
export function encodeReasoning(blocks: readonly ThinkingBlock[]): JsonObject {
  const signature = blocks.find((block) => block.signature)?.signature;
  const all: JsonObject = {};
  for (const block of blocks) assignOwn(all, fieldsOf(block));
  const { item_id: named, [PART]: _, ...fields } = all;
  const id = replayableId(signature?.item_id ?? named, 'rs');
  const summary = blocks.flatMap(({ variant, summary_parts: parts, thinking }) =>
    variant === 'full' || thinking === '' ? [] : (parts ?? [thinking]),
  );
  const full = blocks.flatMap(({ variant, thinking }) => (variant === 'full' && thinking !== '' ? [thinking] : []));
  return {
    ...fields,
    type: 'reasoning',
    ...(id !== undefined && { id }),
    summary: summary.map((text) => ({ type: 'summary_text', text })),
    ...(full.length > 0 && { content: full.map((text) => ({ type: 'reasoning_text', text })) }),
    ...(signature && { encrypted_content: signature.value }),
  };
}

/** Whether two blocks that follow each other are of one item. */
export function isSameItem(before: ThinkingBlock, after: ThinkingBlock): boolean {
  const { item_id: id, [PART]: part } = fieldsOf(after);
  return part !== undefined || (id !== undefined && fieldsOf(before)['item_id'] === id);
}
