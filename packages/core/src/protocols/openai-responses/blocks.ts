import type { Citation, OpaqueBlock, TextBlock, ThinkingBlock, TokenLogprob, TopLogprob } from '../../canonical/message.ts';
import type { Extensions, SignedBlob } from '../../canonical/protocol.ts';
import { type Attach, decodeCarrier, encodeCarrier, type Length } from '../../codec/answers.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import { listOf, objectOf, textOf, unknownFields } from '../../codec/read.ts';
import { assignOwn, isObject, type JsonObject } from '../../json/json.ts';
import { isDerivedId, replayableId } from './endpoints.ts';
import { type Channel, fieldsOf, filled, PROTOCOL, type WireItem } from './wire.ts';

const ORIGIN = 'openai-responses';

const REASONING_FIELDS: ReadonlySet<string> = new Set(
  Object.keys({ type: 0, id: 0, content: 0, summary: 0, encrypted_content: 0 } satisfies {
    [K in keyof WireItem]?: 0;
  }),
);

/** The fields of the wire that a block has no place for, under their own names; `item_id` is the id of the item it came from. */
function keep(item: WireItem, others: JsonObject | undefined): { extensions?: Extensions } {
  const id = filled(item.id);
  if (id === undefined && others === undefined) return {};
  return { extensions: { [ORIGIN]: { ...(id !== undefined && { item_id: id }), ...others } } };
}

export const startText = (item: WireItem, isRefusal: boolean): TextBlock => {
  const phase = filled(item.phase);
  return {
    type: 'text',
    text: '',
    ...(isRefusal && { refusal: true }),
    ...keep(item, phase === undefined ? undefined : { phase }),
  };
};

export const startThinking = (item: WireItem, channel: Channel | undefined): ThinkingBlock => ({
  type: 'thinking',
  thinking: '',
  ...((channel === 'summary' || channel === 'full') && { variant: channel }),
  ...keep(item, unknownFields(item, REASONING_FIELDS)),
});

/** What OpenRouter and others add to a reasoning item (`format`), which has to go back with it. That it is done, its end says. */
export function reasoningExtras({ status, ...item }: WireItem): JsonObject | undefined {
  return unknownFields(status === 'incomplete' ? { status, ...item } : item, REASONING_FIELDS);
}

export const opaque = (raw: unknown): OpaqueBlock => ({ type: 'opaque', origin: ORIGIN, raw });

export function signedBlob(value: string, item: WireItem): SignedBlob {
  const id = filled(item.id);
  return { origin: ORIGIN, form: 'encrypted', value, ...(id !== undefined && { item_id: id }) };
}

const number = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);

/** `url_citation`, `file_citation`, `container_file_citation`, `file_path`; anything else by what it points at. */
export function decodeCitation(annotation: JsonObject): Citation {
  const url = filled(annotation['url']);
  const title = filled(annotation['title']);
  const file_id = filled(annotation['file_id']);
  const filename = filled(annotation['filename']);
  const start = number(annotation['start_index']);
  const end = number(annotation['end_index']);
  return {
    kind: url === undefined ? 'file' : 'url',
    ...(url !== undefined && { url }),
    ...(title !== undefined && { title }),
    ...(file_id !== undefined && { file_id }),
    ...(filename !== undefined && { filename }),
    ...(start !== undefined && { start }),
    ...(end !== undefined && { end }),
    raw: annotation,
    origin: ORIGIN,
  };
}

const isBytes = (value: unknown): value is number[] => Array.isArray(value) && value.every((byte) => typeof byte === 'number');

function decodeToken(value: unknown): TopLogprob | undefined {
  if (!isObject(value) || typeof value['token'] !== 'string' || typeof value['logprob'] !== 'number') return undefined;
  const { token, logprob, bytes } = value;
  return { token, logprob, ...((bytes === null || isBytes(bytes)) && { bytes }) };
}

export function decodeLogprobs(list: unknown): TokenLogprob[] | undefined {
  if (!Array.isArray(list) || list.length === 0) return undefined;
  const tokens = list.flatMap((value: unknown): TokenLogprob[] => {
    const token = decodeToken(value);
    if (!token) return [];
    const alternatives = isObject(value) ? value['top_logprobs'] : undefined;
    const top = Array.isArray(alternatives) ? alternatives.flatMap((entry: unknown) => decodeToken(entry) ?? []) : [];
    return [{ ...token, ...(top.length > 0 && { top }) }];
  });
  return tokens.length > 0 ? tokens : undefined;
}

/** A citation as an annotation of its part of this length; undefined for what has a meaning only in another protocol. */
export function encodeCitation(citation: Citation, length: Length): JsonObject | undefined {
  const { kind, url, title, start, end, origin, raw } = citation;
  if (origin === PROTOCOL) return isObject(raw) ? raw : undefined;
  if (kind !== 'url' || url === undefined) return undefined;
  return { type: 'url_citation', start_index: start ?? 0, end_index: end ?? length.value, title: title ?? '', url };
}

/** Whether an annotation needs the whole text of its part. */
export const isOpenEnded = ({ origin, end }: Citation): boolean => origin !== PROTOCOL && end === undefined;

const encodeToken = ({ token, logprob, bytes }: TopLogprob): JsonObject => ({ token, logprob, bytes: bytes ?? [] });

export const encodeLogprobs = (tokens: readonly TokenLogprob[]): JsonObject[] =>
  tokens.map(({ top = [], ...token }) => ({ ...encodeToken(token), top_logprobs: top.map(encodeToken) }));

/** The ciphertext of a reasoning item: this protocol's own goes as it came, another's travels in a carrier. */
export function encodeBlob(blob: SignedBlob, attach: Attach, context: CodecContext): string {
  if (blob.origin === PROTOCOL && blob.form === 'encrypted') return blob.value;
  return encodeCarrier(blob, blob.provider ?? context.target?.provider.id ?? '', attach);
}

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
