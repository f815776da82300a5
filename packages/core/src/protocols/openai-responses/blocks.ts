/** Single blocks of OpenAI Responses, both directions: text, reasoning items, citations, logprobs. */

import type { Citation, OpaqueBlock, TextBlock, ThinkingBlock, TokenLogprob, TopLogprob } from '../../canonical/message.ts';
import type { Extensions, SignedBlob } from '../../canonical/protocol.ts';
import { type Attach, carryBlob, decodeCarrier, type Length } from '../../codec/answers.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import { listOrEmpty, objectOrEmpty, textOrEmpty, unknownFields } from '../../codec/read.ts';
import { assignOwn, isObject, type JsonObject, parseJson, writeJson } from '../../json/json.ts';
import { isDerivedId, replayableId } from './endpoints.ts';
import { type Channel, findChannel, nonBlank, PROTOCOL, readExtensions, readLooseText, type WireItem } from './wire.ts';

// ---- decode: streams

/** A text block as it starts. */
export const startText = (item: WireItem, isRefusal: boolean): TextBlock => {
  const phase = nonBlank(item.phase);
  return {
    type: 'text',
    text: '',
    ...(isRefusal && { refusal: true }),
    ...keepItemFields(item, phase === undefined ? undefined : { phase }),
  };
};

/** Wire fields without a place in the block; `item_id` is the id of its item. */
function keepItemFields(item: WireItem, others: JsonObject | undefined): { extensions?: Extensions } {
  const id = nonBlank(item.id);
  if (id === undefined && others === undefined) return {};
  return { extensions: { [PROTOCOL]: { ...(id !== undefined && { item_id: id }), ...others } } };
}

const REASONING_FIELDS: ReadonlySet<string> = new Set(
  Object.keys({ type: 0, id: 0, content: 0, summary: 0, encrypted_content: 0 } satisfies {
    [K in keyof WireItem]?: 0;
  }),
);

/** A thinking block as it starts. */
export const startThinking = (item: WireItem, channel: Channel | undefined): ThinkingBlock => ({
  type: 'thinking',
  thinking: '',
  ...((channel === 'summary' || channel === 'full') && { variant: channel }),
  ...keepItemFields(item, unknownFields(item, REASONING_FIELDS)),
});

/**
 * Unknown fields of a reasoning item (OpenRouter's `format`), which must be sent back with it. So is the status with which it
 * ended: clients of servers that send one require it (`@ai-sdk/xai`).
 */
export function readReasoningExtras({ status, ...item }: WireItem): JsonObject | undefined {
  return unknownFields(status === 'incomplete' || status === 'completed' ? { status, ...item } : item, REASONING_FIELDS);
}

/** An item or part of this protocol, passed through unchanged. */
export const buildOpaque = (raw: unknown): OpaqueBlock => ({ type: 'opaque', origin: PROTOCOL, raw });

/** The encrypted content of a reasoning item. */
export function buildSignature(value: string, item: WireItem): SignedBlob {
  const id = nonBlank(item.id);
  return { origin: PROTOCOL, form: 'encrypted', value, ...(id !== undefined && { item_id: id }) };
}

/** A content part as a complete item lists it. */
export interface ListedPart {
  channel: Channel | undefined;
  text: string;
  raw: JsonObject;
}

/** Reads the parts of a complete item: a list of objects; some servers send plain text. */
export function readListedParts(list: unknown, plain: Channel): ListedPart[] {
  if (typeof list === 'string') return [{ channel: plain, text: list, raw: {} }];
  if (!Array.isArray(list)) return [];
  return list.flatMap((raw: unknown): ListedPart[] => {
    if (typeof raw === 'string') return [{ channel: plain, text: raw, raw: {} }];
    if (!isObject(raw)) return [];
    const channel = raw['type'] === undefined ? plain : findChannel(raw['type']);
    return [
      {
        channel: channel === 'text' && plain !== 'text' ? plain : channel,
        text: readLooseText(raw['refusal'] ?? raw['text']),
        raw,
      },
    ];
  });
}

/**
 * Decodes `url_citation`, `file_citation`, `container_file_citation` and `file_path`; other annotations by their
 * target.
 */
export function decodeCitation(annotation: JsonObject): Citation {
  const url = nonBlank(annotation['url']);
  const title = nonBlank(annotation['title']);
  const file_id = nonBlank(annotation['file_id']);
  const filename = nonBlank(annotation['filename']);
  const start = asNumber(annotation['start_index']);
  const end = asNumber(annotation['end_index']);
  return {
    kind: url === undefined ? 'file' : 'url',
    ...(url !== undefined && { url }),
    ...(title !== undefined && { title }),
    ...(file_id !== undefined && { file_id }),
    ...(filename !== undefined && { filename }),
    ...(start !== undefined && { start }),
    ...(end !== undefined && { end }),
    raw: annotation,
    origin: PROTOCOL,
  };
}

const asNumber = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);

/** The log probabilities of a text, or undefined. */
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

function decodeToken(value: unknown): TopLogprob | undefined {
  if (!isObject(value) || typeof value['token'] !== 'string' || typeof value['logprob'] !== 'number') return undefined;
  const { token, logprob, bytes } = value;
  return { token, logprob, ...((bytes === null || isBytes(bytes)) && { bytes }) };
}

const isBytes = (value: unknown): value is number[] => Array.isArray(value) && value.every((byte) => typeof byte === 'number');

/** Reads `{tool_uses:[{recipient_name:"functions.x",parameters}]}`; undefined if the arguments have another form. */
export function readParallelUses(text: string): { name: string; input: string }[] | undefined {
  const value = parseJson(text);
  const uses = isObject(value) ? value['tool_uses'] : undefined;
  if (!Array.isArray(uses) || uses.length === 0) return undefined;
  const calls: { name: string; input: string }[] = [];
  for (const use of uses) {
    const name = isObject(use) ? nonBlank(nonBlank(use['recipient_name'])?.replace(/^functions\./, '')) : undefined;
    const parameters = isObject(use) ? (use['parameters'] ?? {}) : {};
    const input = typeof parameters === 'string' ? parameters : writeJson(parameters);
    if (name === undefined || input === undefined) return undefined;
    calls.push({ name, input });
  }
  return calls;
}

// ---- decode: history

/** A reasoning item of the history: its blocks, and the block that its signature belongs to. */
export interface Reasoning {
  blocks: ThinkingBlock[];
  /** A signature of the call or text that follows, or of the text before. */
  signs?: { blob: SignedBlob; which: 'next' | 'last' };
}

const REASONING_ITEM_FIELDS = new Set(['type', 'id', 'summary', 'content', 'encrypted_content']);

/**
 * Decodes a reasoning item of the history. A summary and a full text are two blocks. Ids that we derived are dropped,
 * because no provider knows them.
 */
export function decodeReasoning(item: JsonObject, context: CodecContext): Reasoning {
  const { id } = item;
  const isDerived = isDerivedId(id);
  const carried = decodeCarrier(textOrEmpty(item['encrypted_content']), context);
  const signature = carried ? carried.blob : readEncrypted(item);
  const blocks = decodeTexts(item, signature?.form === 'redacted');
  const isEmpty = blocks.length === 0;
  if (isEmpty && carried && (carried.attach === 'next' || carried.blob.form === 'thought_signature'))
    // Gemini never signs an empty thought: after a text, the signature belongs to the text.
    return { blocks: [], signs: { blob: carried.blob, which: carried.attach === 'next' ? 'next' : 'last' } };
  const itemId = !isDerived && typeof id === 'string' && id !== '' ? { item_id: id } : {};
  if (isEmpty && (signature || Object.keys(itemId).length > 0)) blocks.push(buildEmpty(signature?.form === 'redacted'));
  const fields = { ...unknownFields(item, REASONING_ITEM_FIELDS), ...itemId };
  const isOwn = !isDerived && !carried;
  return {
    blocks: blocks.map((block, i) => ({
      ...block,
      ...(i === 0 && signature && { signature }),
      ...(isOwn && { extensions: { [PROTOCOL]: i === 0 ? fields : { ...itemId, [PART]: i } } }),
    })),
  };
}

function readEncrypted({ encrypted_content: value, id }: JsonObject): SignedBlob | undefined {
  if (typeof value !== 'string' || value === '') return undefined;
  const itemId = typeof id === 'string' && id !== '' && !isDerivedId(id) ? { item_id: id } : {};
  return { origin: PROTOCOL, form: 'encrypted', value, ...itemId };
}

/** All summaries are one block, each part of the full text is a block. */
function decodeTexts({ summary, content }: JsonObject, isRedacted: boolean): ThinkingBlock[] {
  if (isRedacted) return [];
  const summaries = readTexts(summary);
  return [
    ...(summaries.length > 0 ? [buildSummary(summaries)] : []),
    ...readTexts(content).map((thinking): ThinkingBlock => ({ type: 'thinking', thinking, variant: 'full' })),
  ];
}

/** Reads a list of parts; some clients send plain text. */
const readTexts = (list: unknown): string[] =>
  (typeof list === 'string' ? [list] : listOrEmpty(list).map((part) => textOrEmpty(objectOrEmpty(part)['text']))).filter(
    (text) => text !== '',
  );

const buildSummary = (parts: string[]): ThinkingBlock => ({
  type: 'thinking',
  thinking: parts.join('\n\n'),
  variant: 'summary',
  ...(parts.length > 1 && { summary_parts: parts }),
});

const buildEmpty = (isRedacted: boolean): ThinkingBlock => ({
  type: 'thinking',
  thinking: '',
  ...(isRedacted && { variant: 'redacted' }),
});

/** Extension with the number of a block within its item; the first block has none. */
export const PART = 'part';

// ---- encode

/** Encodes the blocks of one item as that item. */
export function encodeReasoning(blocks: readonly ThinkingBlock[]): JsonObject {
  const signature = blocks.find((block) => block.signature)?.signature;
  const all: JsonObject = {};
  for (const block of blocks) assignOwn(all, readExtensions(block));
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

/** Whether the block came from an item of this protocol or is signed by it; others have no item to return to. */
export const isOwnThinking = ({ extensions, signature }: ThinkingBlock): boolean =>
  extensions?.[PROTOCOL] !== undefined || signature?.origin === PROTOCOL;

/** Whether two consecutive blocks belong to one item. */
export function isSameItem(before: ThinkingBlock, after: ThinkingBlock): boolean {
  const { item_id: id, [PART]: part } = readExtensions(after);
  return part !== undefined || (id !== undefined && readExtensions(before)['item_id'] === id);
}

/** The encrypted content of a reasoning item: that of this protocol unchanged, a signature of another in a carrier. */
export function encodeBlob(blob: SignedBlob, attach: Attach, context: CodecContext): string {
  if (blob.origin === PROTOCOL && blob.form === 'encrypted') return blob.value;
  return carryBlob(blob, attach, context);
}

/** A citation as an annotation; undefined if it has no counterpart here. `length` is the length of its part. */
export function encodeCitation(citation: Citation, length: Length): JsonObject | undefined {
  const { kind, url, title, start, end, origin, raw } = citation;
  if (origin === PROTOCOL) return isObject(raw) ? raw : undefined;
  if (kind !== 'url' || url === undefined) return undefined;
  return { type: 'url_citation', start_index: start ?? 0, end_index: end ?? length.value, title: title ?? '', url };
}

/** Whether a citation has no end, so that it can be written only when its part is complete. */
export const isOpenEnded = ({ origin, end }: Citation): boolean => origin !== PROTOCOL && end === undefined;

/** Token logprobs in the wire form. */
export const encodeLogprobs = (tokens: readonly TokenLogprob[]): JsonObject[] =>
  tokens.map(({ top = [], ...token }) => ({ ...encodeToken(token), top_logprobs: top.map(encodeToken) }));

const encodeToken = ({ token, logprob, bytes }: TopLogprob): JsonObject => ({ token, logprob, bytes: bytes ?? [] });
