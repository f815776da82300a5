import { deriveId } from '../../accumulate/argument-text.ts';
import {
  type Citation,
  type ContentBlock,
  type ImageBlock,
  isClientCall,
  type OpaqueBlock,
  type TextBlock,
  type ThinkingBlock,
  type ToolResultBlock,
  type ToolUseBlock,
} from '../../canonical/message.ts';
import type { Node, ProtocolId, SignedBlob } from '../../canonical/protocol.ts';
import { type Attach, encodeCarrier, encodeCarrierInId, isForeign } from '../../codec/answers.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import { textOf, unknownFields } from '../../codec/read.ts';
import { approximate, drop } from '../../codec/report.ts';
import { getOwn, isObject, type JsonObject } from '../../json/json.ts';
import { fieldsOf, type WireBlock } from './wire.ts';

export const NO_LOGPROBS = 'an answer of Anthropic Messages holds no log probabilities';

/** What is known of the answer at hand. */
export interface Answer {
  context: CodecContext;
  /** It was given in another protocol. */
  isForeign: boolean;
  /** The request allows thinking blocks. Without it a client expects none, and an empty one breaks some (genkit). */
  wantsThinking: boolean;
  /** Reasoning that shows nothing, on its way into the id of the next call: there is no block that could carry it. */
  held?: SignedBlob | undefined;
}

// What a whole message and a stream write in the same words.
const OWN: ProtocolId = 'anthropic-messages';

export function createAnswer(source: Parameters<typeof isForeign>[0], context: CodecContext): Answer {
  const { request } = context;
  const isOther = isForeign(source, OWN, context);
  const isRequested = !request || (request.thinking !== undefined && request.thinking.type !== 'disabled');
  return { context, isForeign: isOther, wantsThinking: isRequested || !isOther };
}

/** The last of a response: what no call took along. */
export function dropHeld(answer: Answer): void {
  if (answer.held) dropSignature('/content', 'thinking', answer);
  answer.held = undefined;
}

/** A thinking block that says nothing and only carries the signature of something else. */
export const carrierBlock = (blob: SignedBlob, attach: Attach, context: CodecContext): JsonObject => ({
  type: 'thinking',
  thinking: '',
  signature: encodeSignature(blob, attach, context),
});

/** A call that another provider ran itself is nothing that this client could run, or understand. */
export function isLostCall({ kind, name }: ToolUseBlock, path: string, { context, isForeign }: Answer): boolean {
  if (!isForeign || isClientCall(kind)) return false;
  drop(context, { path, feature: 'content.server_tool_use', message: `${name} was called and run by the provider` });
  return true;
}

/** A block of our own that is passed on as it came: it says what it is. */
export const isOwnBlock = (raw: unknown): raw is JsonObject => isObject(raw) && typeof raw['type'] === 'string';

/** An image as text: where it is, or that there was one. */
export function imageText({ source }: ImageBlock, path: string, context: CodecContext): string {
  approximate(context, {
    path,
    feature: 'content.image',
    message: 'an answer of Anthropic holds no image; a text stands for it',
  });
  return source.url === undefined ? `[image${source.media_type ? ` ${source.media_type}` : ''}]` : `![image](${source.url})`;
}

/** `said`: the transcript. */
export function tellAudio(said: boolean, path: string, context: CodecContext): void {
  const feature = 'content.audio';
  if (said) approximate(context, { path, feature, message: 'of the audio only the transcript is passed on' });
  else drop(context, { path, feature, message: 'an answer of Anthropic holds no audio' });
}

/** Only the first choice has a place here. */
export const dropChoices = (context: CodecContext): void =>
  drop(context, { path: '/choices', feature: 'choices', message: 'Anthropic Messages has one answer; the others are left out' });

const REDACTED_FIELDS: ReadonlySet<string> = new Set(['type', 'data']);

export const decodeRedacted = (block: WireBlock, model: string): ThinkingBlock => ({
  type: 'thinking',
  thinking: '',
  variant: 'redacted',
  signature: { ...signatureOf(textOf(block.data), model), form: 'redacted' },
  ...otherFields(block, REDACTED_FIELDS),
});

const ORIGIN = 'anthropic-messages';

export const signatureOf = (value: string, model: string): SignedBlob => ({
  origin: ORIGIN,
  form: 'signature',
  value,
  ...(model !== '' && { model }),
});

/** The fields without a place of their own, as extensions; null says as little as absence. */
export function otherFields(source: JsonObject, known: ReadonlySet<string>): Node {
  const kept = unknownFields(source, known);
  return kept ? { extensions: { [ORIGIN]: kept } } : {};
}

/** A result that the provider produced itself. Its shapes are many, so the wire block is kept whole. */
export function decodeResult(block: WireBlock, name: string | undefined): ToolResultBlock {
  const { content } = block;
  const isError = block.is_error === true || (isObject(content) && textOf(content['type']).endsWith('_error'));
  return {
    type: 'tool_result',
    tool_use_id: textOf(block.tool_use_id),
    ...(name !== undefined && { name }),
    content: decodeResultContent(content),
    ...(isError && { is_error: true }),
    kind: block.type === 'mcp_tool_result' ? 'mcp' : 'server',
    extensions: { [ORIGIN]: block },
  };
}

function decodeResultContent(content: unknown): string | (TextBlock | OpaqueBlock)[] {
  if (typeof content === 'string') return content;
  if (content === undefined || content === null) return '';
  return (Array.isArray(content) ? content : [content]).map(decodeResultPart);
}

const decodeResultPart = (part: unknown): TextBlock | OpaqueBlock =>
  isObject(part) && part['type'] === 'text' && typeof part['text'] === 'string'
    ? { type: 'text', text: part['text'] }
    : decodeOpaque(part);

export const decodeOpaque = (raw: unknown): OpaqueBlock => ({ type: 'opaque', origin: ORIGIN, raw });

const CITATION_KINDS: Record<string, Citation['kind']> = {
  char_location: 'document',
  page_location: 'document',
  content_block_location: 'document',
  search_result_location: 'search_result',
  web_search_result_location: 'url',
};

/** The offsets of the wire point into the cited document, not into this text: they stay in `raw`. */
export function decodeCitation(raw: JsonObject): Citation {
  const type = textOf(raw['type']);
  const kind = getOwn(CITATION_KINDS, type);
  const url = raw['url'] ?? (type === 'search_result_location' ? raw['source'] : undefined);
  const title = raw['title'] ?? raw['document_title'];
  const { cited_text: cited, document_index: document, file_id: file } = raw;
  const page = range(raw['start_page_number'], raw['end_page_number']);
  const block = range(raw['start_block_index'], raw['end_block_index']);
  return {
    kind: kind ?? (typeof url === 'string' ? 'url' : 'document'),
    ...(typeof url === 'string' && { url }),
    ...(typeof title === 'string' && { title }),
    ...(typeof cited === 'string' && { cited_text: cited }),
    ...(typeof document === 'number' && { document_index: document }),
    ...(typeof file === 'string' && { file_id: file }),
    ...(page && { page }),
    ...(block && { block }),
    raw,
    origin: ORIGIN,
  };
}

const range = (start: unknown, end: unknown): [number, number] | undefined =>
  typeof start === 'number' && typeof end === 'number' ? [start, end] : undefined;

/** The id looks like one of this protocol, unless it is one; the model is the one that the client asked for. */
export function encodeEnvelope({ id, model }: { id: string; model: string }, { context, isForeign }: Answer): JsonObject {
  return {
    id: id === '' ? context.newId('msg_') : isForeign ? encodeId(id) : id,
    type: 'message',
    role: 'assistant',
    model: context.request?.model ?? model,
  };
}

const encodeId = (id: string): string => (id.startsWith('msg_') ? id : `msg_${id.replace(/[^A-Za-z0-9_-]/g, '_')}`);

/** What the official type knows, and what the other protocols call the same. */
const TIERS: Readonly<Record<string, string>> = {
  standard: 'standard',
  default: 'standard',
  priority: 'priority',
  batch: 'batch',
};

/** The tier that served the request is a part of the usage. */
export const encodeTier = (tier: string | undefined, { isForeign }: Answer): JsonObject =>
  isForeign && tier !== undefined && Object.hasOwn(TIERS, tier) ? { service_tier: TIERS[tier] } : {};

/** Reasoning of another provider that nobody signed: clients want some signature, and one that carries nothing is read as none. */
export function encodeUnsigned(context: CodecContext): string {
  const origin = context.source ?? context.target?.provider.protocol ?? 'openai-chat';
  return encodeSignature({ origin, form: 'signature', value: '' }, 'self', context);
}

/** A signature of another provider is carried in the place of our own, so that the client hands it back. */
export function encodeSignature(blob: SignedBlob, attach: Attach, { target }: CodecContext): string {
  return blob.origin === OWN ? blob.value : encodeCarrier(blob, blob.provider ?? target?.provider.id ?? '', attach);
}

/** Ours goes as it came. A web citation needs an `encrypted_index` that only Anthropic can issue, a document one a document of the request. */
export function encodeCitation({ origin, kind, raw }: Citation, path: string, context: CodecContext): unknown {
  if (origin === OWN && raw !== undefined) return raw;
  drop(context, {
    path,
    feature: 'citations',
    message: `a ${kind} citation of ${origin} is none that Anthropic could have made`,
  });
  return undefined;
}

const TYPES = { function: 'tool_use', custom: 'tool_use', server: 'server_tool_use', mcp: 'mcp_tool_use' } satisfies Record<
  NonNullable<ToolUseBlock['kind']>,
  string
>;

/** The head of a call; the official type asks who called. */
export const encodeCall = (block: ToolUseBlock, input: unknown, path: string, answer: Answer): JsonObject => ({
  type: TYPES[block.kind ?? 'function'],
  ...(block.kind !== 'mcp' && { caller: { type: 'direct' } }),
  ...fieldsOf(block),
  id: encodeSignedId(block, path, answer),
  name: block.name,
  input,
});

/** The id, and behind it what the client has to bring back where no thinking block may carry it: the call's signature, or reasoning before it. */
function encodeSignedId({ id: source, signature }: ToolUseBlock, path: string, answer: Answer): string {
  const { context, wantsThinking, held } = answer;
  const id = encodeCallId(source, path, context);
  const blob = signature ?? held;
  if (wantsThinking || !blob || blob.origin === OWN) return id;
  if (!signature) answer.held = undefined;
  const provider = blob.provider ?? context.target?.provider.id ?? '';
  const carried = encodeCarrierInId(id, blob, provider, signature ? 'next' : 'self');
  if (carried === undefined) dropSignature(path, 'tool_use', answer);
  return carried ?? id;
}

const MAX_CLEAN_ID = 40;

/**
 * Anthropic accepts only `^[a-zA-Z0-9_-]+$` when the client sends the call back (Kimi writes `functions.Bash:0`). The hash keeps ids apart
 * that differ in other characters only; the same id gets the same name every time, so that prompt caches stay warm.
 */
function encodeCallId(id: string, path: string, context: CodecContext): string {
  if (/^[a-zA-Z0-9_-]+$/.test(id)) return id;
  const clean = id.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, MAX_CLEAN_ID);
  const renamed = `${clean}_${deriveId('', id).slice(0, 8)}`;
  const message = `the call id ${id} is not valid in Anthropic Messages; sent as ${renamed}`;
  context.note({ code: 'RENAMED', path, feature: 'content.tool_use.id', message });
  return renamed;
}

/** A signature without a place: no thinking was requested, and no call follows that could carry it. */
export function dropSignature(path: string, type: ContentBlock['type'], { context }: Answer): void {
  const message = `the signature of a ${type} block cannot be carried to a client that did not request thinking; dropped`;
  context.note({ code: 'DROPPED', path, feature: `content.${type}.signature`, message });
}

/** A canonical block in the words of the wire. */
export function encodeBlock(block: ContentBlock): JsonObject {
  const fields = block.extensions?.[ORIGIN] ?? {};
  switch (block.type) {
    case 'text':
      return {
        type: 'text',
        ...fields,
        text: block.text,
        ...(block.citations && { citations: block.citations.map(({ raw }) => raw) }),
      };
    case 'thinking':
      return encodeThinking(block);
    case 'tool_use':
      return encodeToolUse(block, fields);
    case 'tool_result':
      return fields;
    case 'opaque':
      return isObject(block.raw) ? block.raw : { type: 'opaque', raw: block.raw };
    case 'image':
    case 'audio':
    case 'file':
      // No such block comes from this protocol's own stream.
      return { type: block.type, source: block.source };
    default:
      return block satisfies never;
  }
}

export function encodeThinking({ thinking, variant, signature, extensions }: ThinkingBlock): JsonObject {
  const fields = extensions?.[ORIGIN] ?? {};
  if (variant === 'redacted') return { type: 'redacted_thinking', ...fields, data: signature?.value ?? '' };
  return { type: 'thinking', ...fields, thinking, signature: signature?.value ?? '' };
}

const TOOL_TYPES = { function: 'tool_use', custom: 'tool_use', server: 'server_tool_use', mcp: 'mcp_tool_use' } satisfies Record<
  NonNullable<ToolUseBlock['kind']>,
  string
>;

const encodeToolUse = ({ id, name, input, kind }: ToolUseBlock, fields: JsonObject): JsonObject => ({
  type: TOOL_TYPES[kind ?? 'function'],
  ...fields,
  id,
  name,
  input,
});
