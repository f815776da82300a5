/**
 * Single blocks of OpenAI Chat, both directions: content, reasoning, signatures, citations, logprobs, and the notes
 * about them.
 */

import type {
  Citation,
  ContentBlock,
  ImageBlock,
  ThinkingBlock,
  TokenLogprob,
  ToolUseBlock,
  TopLogprob,
} from '../../canonical/message.ts';
import type { Extensions, SignedBlob } from '../../canonical/protocol.ts';
import { readSource } from '../../canonical/source.ts';
import { type Attach, carryBlob, chooseModel, decodeCarrier, type Length } from '../../codec/answers.ts';
import type { Flow } from '../../codec/block-emitter.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import { listOrEmpty, objectOrEmpty, textOrEmpty, toCount } from '../../codec/read.ts';
import { noteApproximated, noteDropped } from '../../codec/report.ts';
import { splitDataUrl } from '../../codec/requests.ts';
import { assignOwn, isObject, type JsonObject, sameJson } from '../../json/json.ts';
import { readExtensions, toExtensions } from './wire.ts';

/** The text flow of a choice. */
export const TEXT: Flow = { kind: 'text', start: () => ({ type: 'text', text: '' }) };

/** The refusal flow of a choice. */
export const REFUSAL: Flow = { kind: 'refusal', start: () => ({ type: 'text', text: '', refusal: true }) };

/** The reasoning flow of a choice. */
export const THINKING: Flow = { kind: 'thinking', start: () => ({ type: 'thinking', thinking: '', variant: 'full' }) };

/** The audio flow of a choice. */
export function audioFlow({ id }: JsonObject): Flow {
  return { kind: 'audio', start: () => ({ type: 'audio', source: {}, ...(typeof id === 'string' && { audio_id: id }) }) };
}

// ---- decode

/** An OpenRouter image: `{type:"image_url", image_url:{url}}`. Fields other than the URL become extensions. */
export function decodeImage(part: JsonObject): ImageBlock {
  const { image_url: image, ...rest } = part;
  const url = isObject(image) ? image['url'] : image;
  const text = typeof url === 'string' ? url : '';
  return { type: 'image', source: splitDataUrl(text) ?? { url: text }, extensions: { 'openai-chat': rest } };
}

/** A citation from an annotation, which is also kept unchanged. */
export function decodeCitation(annotation: unknown): Citation {
  const body = isObject(annotation) ? annotation['url_citation'] : undefined;
  const { url, title, content, start_index: start, end_index: end }: JsonObject = isObject(body) ? body : {};
  return {
    kind: isObject(body) ? 'url' : 'file',
    ...(typeof url === 'string' && { url }),
    ...(typeof title === 'string' && { title }),
    ...(typeof content === 'string' && { cited_text: content }),
    ...(typeof start === 'number' && { start }),
    ...(typeof end === 'number' && { end }),
    raw: annotation,
    origin: 'openai-chat',
  };
}

/** The token logprobs of the text or of the refusal. */
export function decodeLogprobs(logprobs: unknown, side: 'content' | 'refusal'): TokenLogprob[] | undefined {
  const tokens = isObject(logprobs) ? logprobs[side] : undefined;
  if (!Array.isArray(tokens) || tokens.length === 0) return undefined;
  return tokens.filter(isObject).map((token) => {
    const top = token['top_logprobs'];
    return { ...decodeToken(token), ...(Array.isArray(top) && { top: top.filter(isObject).map(decodeToken) }) };
  });
}

function decodeToken({ token, logprob, bytes }: JsonObject): TopLogprob {
  return {
    token: typeof token === 'string' ? token : '',
    logprob: typeof logprob === 'number' ? logprob : 0,
    ...((Array.isArray(bytes) || bytes === null) && { bytes }),
  };
}

/** Converts the logprobs of a text completion (parallel lists) to the chat form. */
export function toChatLogprobs(logprobs: unknown): unknown {
  const { tokens, token_logprobs: values, top_logprobs: tops }: JsonObject = objectOrEmpty(logprobs);
  if (!Array.isArray(tokens)) return logprobs;
  return {
    content: tokens.map((token, i) => ({ token, logprob: listOrEmpty(values)[i], top_logprobs: rankTop(listOrEmpty(tops)[i]) })),
  };
}

const rankTop = (top: unknown): JsonObject[] | undefined =>
  isObject(top) ? Object.entries(top).map(([token, logprob]) => ({ token, logprob })) : undefined;

/** The thinking blocks of an assistant message, and the signatures of other protocols that came with it. */
interface Reasoning {
  blocks: { block: ThinkingBlock; place: string }[];
  /** Signatures of the blocks that follow, in order. */
  next: { blob: SignedBlob; place: string }[];
}

/** Fields for reasoning text, in order of precedence. */
const TEXT_FIELDS = ['reasoning_content', 'reasoning', 'reasoning_text'] as const;

/**
 * Decodes the reasoning of an assistant message: one block, or one for each signature with its own text. Fields that
 * hold no text become extensions.
 */
export function decodeReasoning(message: JsonObject, context: CodecContext): Reasoning {
  const field = TEXT_FIELDS.find((name) => textOrEmpty(message[name]) !== '');
  const details = listOrEmpty(message['reasoning_details']);
  const text = field ? textOrEmpty(message[field]) : details.map(readDetailText).join('');
  const carried = details.flatMap((detail, i) => readCarried(detail, i, context));
  const signing = carried.filter(({ attach }) => attach === 'self');
  const rest = readState(message, field, context);
  const next = carried.filter(({ attach }) => attach === 'next');
  if (text === '' && signing.length === 0 && Object.keys(rest).length === 0) return { blocks: [], next };
  const [first, ...others] = signing;
  const place = field ?? REASONING_FIELDS.find((name) => message[name] !== undefined) ?? '';
  return {
    blocks: [
      { block: { ...buildThinking(sliceText(text, 0, others[0]), first), ...toExtensions(rest) }, place },
      ...others.map((signed, i) => ({
        block: buildThinking(sliceText(text, signed.start, others[i + 1]), signed),
        place: signed.place,
      })),
    ],
    next,
  };
}

/** The text of a detail; `reasoning.encrypted` has none. */
const readDetailText = (detail: unknown): string =>
  textOrEmpty(objectOrEmpty(detail)['text']) || textOrEmpty(objectOrEmpty(detail)['summary']);

/** A signature of another provider, its location, and the offset of the text that it signs. */
interface Carried {
  blob: SignedBlob;
  attach: Attach;
  place: string;
  start: number;
}

function readCarried(detail: unknown, i: number, context: CodecContext): Carried[] {
  const { data, start } = objectOrEmpty(detail);
  const carrier = decodeCarrier(textOrEmpty(data), context);
  return carrier ? [{ ...carrier, place: `reasoning_details[${i}]`, start: toCount(start) ?? Number.POSITIVE_INFINITY }] : [];
}

/** The reasoning fields other than the text, without our carriers, which providers cannot read. */
function readState(message: JsonObject, textField: string | undefined, context: CodecContext): JsonObject {
  const rest: JsonObject = {};
  for (const name of REASONING_FIELDS) {
    const value = message[name];
    const isOwn = (item: unknown): boolean => !decodeCarrier(textOrEmpty(objectOrEmpty(item)['data']), context);
    const own = Array.isArray(value) ? value.filter(isOwn) : value;
    const isEmpty = own === undefined || own === null || own === '' || (Array.isArray(own) && own.length === 0);
    if (name !== textField && !isEmpty) rest[name] = own;
  }
  return rest;
}

const buildThinking = (text: string, signed: Carried | undefined): ThinkingBlock => ({
  type: 'thinking',
  thinking: text,
  variant: text === '' ? 'redacted' : 'full',
  ...(signed && { signature: signed.blob }),
});

/** The text from `start` to the next signed text, without the paragraph break between them. */
function sliceText(text: string, start: number, next: Carried | undefined): string {
  const piece = text.slice(start, next && Math.max(start, next.start));
  return next && piece.endsWith('\n\n') ? piece.slice(0, -2) : piece;
}

/** Fields for opaque reasoning state (OpenRouter, Copilot and others). */
const STATE_FIELDS = ['reasoning_details', 'reasoning_signature', 'reasoning_opaque', 'reasoning_encrypted'] as const;

/** All message fields that hold reasoning or its state. */
export const REASONING_FIELDS: readonly string[] = /* @__PURE__ */ (TEXT_FIELDS as readonly string[]).concat(STATE_FIELDS); // widened to join the two

/** Adds the signatures to the first unsigned text and tool_use blocks. */
export function addSignatures(content: readonly ContentBlock[], blobs: readonly SignedBlob[]): ContentBlock[] {
  let next = 0;
  return content.map((block) => {
    const canSign = (block.type === 'tool_use' || block.type === 'text') && !block.signature;
    const signature = canSign ? blobs[next++] : undefined;
    return canSign && signature ? { ...block, signature } : block;
  });
}

// ---- encode

/** The fields that every chunk and every whole response have. */
export interface Envelope {
  id: string;
  created: number;
  model: string;
}

interface Source {
  id: string;
  model: string;
  created?: number;
  extensions?: Extensions;
}

/** The model is the one that the client requested; a foreign id gets the prefix of this protocol. */
export function encodeEnvelope(source: Source, hasForeignId: boolean, context: CodecContext): Envelope {
  return {
    id: hasForeignId ? encodeId(source.id) : source.id || context.newId('chatcmpl-'),
    created: Math.floor(source.created || context.now()),
    model: chooseModel(source.model, context),
  };
}

const encodeId = (id: string): string => (id.startsWith('chatcmpl-') ? id : `chatcmpl-${id.replace(/[^A-Za-z0-9_-]/g, '_')}`);

/** Wire names of the service tiers of other protocols; both protocols of OpenAI have the same. */
const SERVICE_TIERS: Record<string, string> = {
  standard: 'default',
  default: 'default',
  auto: 'auto',
  flex: 'flex',
  scale: 'scale',
  priority: 'priority',
};

/** The service tier in OpenAI's names; an unknown one of another protocol is dropped. */
export function encodeTier(tier: string | undefined, foreign: boolean, context: CodecContext): string | undefined {
  if (tier === undefined || !foreign) return tier;
  const known = Object.hasOwn(SERVICE_TIERS, tier) ? SERVICE_TIERS[tier] : undefined;
  if (known === undefined)
    dropFeature(context, '/service_tier', 'service_tier', `service tier "${tier}" is not supported by OpenAI Chat; dropped`);
  return known;
}

/**
 * A citation as an annotation; undefined if it has no counterpart here. `offset` is the position of its block in the
 * text.
 */
export function encodeCitation(citation: Citation, offset: number, length: Length): unknown {
  const { kind, url, title, cited_text: content, start, end, origin, raw } = citation;
  if (origin === 'openai-chat') return raw;
  if (kind !== 'url' || url === undefined) return undefined;
  return {
    type: 'url_citation',
    url_citation: {
      start_index: offset + (start ?? 0),
      end_index: offset + (end ?? length.value),
      title: title ?? '',
      url,
      ...(content !== undefined && { content }),
    },
  };
}

/** An image in OpenRouter's form; undefined for a file id, which only its provider can resolve. */
export function encodeImagePart(block: ImageBlock): JsonObject | undefined {
  const { url, data } = block.source;
  return url === undefined && data === undefined ? undefined : { type: 'image_url', ...encodeImage(block) };
}

/** An image in OpenRouter's form, with the fields it had on the wire. */
export function encodeImage(block: ImageBlock): JsonObject {
  const { data, media_type, url } = block.source;
  return {
    ...block.extensions?.['openai-chat'],
    image_url: { url: data === undefined ? url : `data:${media_type};base64,${data}` },
  };
}

/** The logprobs of a whole message in the wire form, or undefined if it has none. */
export function encodeLogprobs(content: readonly ContentBlock[]): JsonObject | undefined {
  const sides: Record<'content' | 'refusal', JsonObject[]> = { content: [], refusal: [] };
  for (const block of content) {
    if (block.type !== 'text' || !block.logprobs) continue;
    const side = sides[block.refusal ? 'refusal' : 'content'];
    for (const { top, ...token } of block.logprobs) side.push({ ...token, top_logprobs: top ?? [] });
  }
  if (sides.content.length + sides.refusal.length === 0) return undefined;
  return { content: sides.content, ...(sides.refusal.length > 0 && { refusal: sides.refusal }) };
}

/**
 * Token logprobs in the wire form. `raw`: the original tokens, used if they match, because they may have more fields.
 */
export function encodeTokens(tokens: readonly TokenLogprob[], raw: unknown): JsonObject[] {
  const encoded = tokens.map(({ top, ...token }) => ({
    ...encodeToken(token),
    top_logprobs: (top ?? []).map(encodeToken),
  }));
  const original = listOrEmpty(raw).filter(isObject);
  const isSame =
    original.length === encoded.length &&
    original.every((token, i) => sameJson(pickIdentity(token), pickIdentity(encoded[i] ?? {})));
  return isSame ? original : encoded;
}

const encodeToken = ({ token, logprob, bytes }: TokenLogprob): JsonObject => ({ token, logprob, bytes: bytes ?? null });

const pickIdentity = ({ token, logprob }: JsonObject): JsonObject => ({ token, logprob });

/** The field in which the client reads reasoning, or undefined. Never a list of parts: SDKs expect text. */
export function findReasoningField({ profile }: CodecContext): 'reasoning_content' | 'reasoning' | undefined {
  if (profile.reasoning_field === 'none') return undefined;
  return profile.reasoning_field === 'reasoning' ? 'reasoning' : 'reasoning_content';
}

type TextField = (typeof TEXT_FIELDS)[number] | 'none';

/** The message fields for thinking of earlier turns; `field` is where the server reads the text. */
export function encodeReasoning(blocks: readonly ThinkingBlock[], field: TextField): JsonObject {
  const fields: JsonObject = {};
  for (const block of blocks) assignOwn(fields, readExtensions(block));
  if (field === 'none') return fields;
  const text = blocks.map(({ thinking }) => thinking).filter((thinking) => thinking !== '');
  return { ...fields, [field]: text.join('\n\n') };
}

/**
 * The field in which a chat client sent its reasoning, `none` for `reasoning_details` alone; undefined if the server
 * expects a field other than the default.
 */
export function findSentField([first]: readonly ThinkingBlock[], field: TextField): TextField | undefined {
  if (!first || field !== 'reasoning_content') return undefined;
  const name = readSource(first)?.split('/').at(-1);
  return TEXT_FIELDS.find((known) => known === name) ?? (STATE_FIELDS.some((known) => known === name) ? 'none' : undefined);
}

/** A thinking block as a content part (Mistral). */
export const encodeThinkingPart = (block: ThinkingBlock): JsonObject => ({
  ...readExtensions(block),
  type: 'thinking',
  thinking: [{ type: 'text', text: block.thinking }],
});

/**
 * A signature of another provider as an entry of OpenRouter's `reasoning_details`; clients ignore unknown entries.
 * `index` keeps the entries apart, `start` is the offset of the signed text in the reasoning if it is not 0.
 */
export function encodeSignature(
  blob: SignedBlob,
  attach: Attach,
  { index, start = 0 }: { index: number; start?: number | undefined },
  context: CodecContext,
): JsonObject {
  const data = blob.origin === 'openai-chat' ? blob.value : carryBlob(blob, attach, context);
  return { type: 'reasoning.encrypted', data, index, ...(start > 0 && { start }) };
}

/** The signature of a call where Google's compatible endpoint expects it, unchanged. */
export function encodeCallSignature(signature: SignedBlob): JsonObject {
  return { extra_content: { google: { thought_signature: signature.value } } };
}

/** Whether Gemini made the signature. */
export const isGoogleSigned = (signature: SignedBlob | undefined): signature is SignedBlob => signature?.origin === 'gemini';

/** The non-standard fields of a call and of its `function` or `custom` object, without the wire's index. */
export function readCallFields({ extensions, kind }: ToolUseBlock): { outer: JsonObject; inner: JsonObject } {
  const body = kind === 'custom' ? 'custom' : 'function';
  const { index: _, [body]: inner, ...outer }: JsonObject = extensions?.['openai-chat'] ?? {};
  return { outer, inner: objectOrEmpty(inner) };
}

/** Whether another provider ran the call itself: a chat client cannot run it. Such calls of chat are passed on. */
export const isForeignServerCall = ({ kind, extensions }: ToolUseBlock): boolean =>
  (kind === 'server' || kind === 'mcp') && extensions?.['openai-chat'] === undefined;

// ---- notes

/** Notes a dropped feature of a response. */
export function dropFeature(context: CodecContext, path: string, feature: string, message: string): void {
  noteDropped(context, { path, feature, message });
}

/** Notes text after a call: chat has one text and a list of calls, without an order between them. */
export function noteOrder(context: CodecContext, block: number): void {
  const message = 'the order of text and tool calls is not supported by OpenAI Chat; text is sent before all calls';
  noteApproximated(context, { path: `/content/${block}`, feature: 'content.order', message });
}

/** Notes an incomplete call: chat clients require a name and have no status field. */
export function noteIncompleteCall({ name, status }: ToolUseBlock, path: string, context: CodecContext): void {
  if (status !== 'incomplete') return;
  const message = `the tool call of ${name} is incomplete, which OpenAI Chat cannot express; do not run it`;
  noteApproximated(context, { path, feature: 'content.tool_use', message });
}
