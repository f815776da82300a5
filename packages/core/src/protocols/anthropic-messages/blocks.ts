/** One content block, citation or signature, in both directions. */

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
import type { Node, SignedBlob } from '../../canonical/protocol.ts';
import { type Attach, carryBlob, chooseModel, encodeCarrierInId, escapeId, findIssuer, isForeign } from '../../codec/answers.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import { textOrEmpty, unknownFields } from '../../codec/read.ts';
import { noteApproximated, noteDropped } from '../../codec/report.ts';
import { getOwn, isObject, type JsonObject } from '../../json/json.ts';
import { PROTOCOL, readExtensions, type WireBlock } from './wire.ts';

/** The note for log probabilities, which responses of this protocol cannot hold. */
export const NO_LOGPROBS = 'log probabilities are not supported by Anthropic Messages; dropped';

const REDACTED_FIELDS: ReadonlySet<string> = new Set(['type', 'data']);

/** Thinking that the provider encrypted: no text, only data to send back. */
export const decodeRedacted = (block: WireBlock, model: string): ThinkingBlock => ({
  type: 'thinking',
  thinking: '',
  variant: 'redacted',
  signature: { ...buildSignature(textOrEmpty(block.data), model), form: 'redacted' },
  ...keepUnknownFields(block, REDACTED_FIELDS),
});

/** A signature issued by Anthropic. `model` is the model that signed, or empty if unknown. */
export const buildSignature = (value: string, model: string): SignedBlob => ({
  origin: PROTOCOL,
  form: 'signature',
  value,
  ...(model !== '' && { model }),
});

/** Wraps the fields that are not in `known` as extensions; null counts as absent. */
export function keepUnknownFields(source: JsonObject, known: ReadonlySet<string>): Node {
  const fields = unknownFields(source, known);
  return fields ? { extensions: { [PROTOCOL]: fields } } : {};
}

/** A result that the provider produced itself. The wire block is kept whole because such results have many shapes. */
export function decodeResult(block: WireBlock, name: string | undefined): ToolResultBlock {
  const { content } = block;
  const isError = block.is_error === true || (isObject(content) && textOrEmpty(content['type']).endsWith('_error'));
  return {
    type: 'tool_result',
    tool_use_id: textOrEmpty(block.tool_use_id),
    ...(name !== undefined && { name }),
    content: decodeResultContent(content),
    ...(isError && { is_error: true }),
    kind: block.type === 'mcp_tool_result' ? 'mcp' : 'server',
    extensions: { [PROTOCOL]: block },
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

/** A block that only this protocol understands, kept whole. */
export const decodeOpaque = (raw: unknown): OpaqueBlock => ({ type: 'opaque', origin: PROTOCOL, raw });

const CITATION_KINDS: Record<string, Citation['kind']> = {
  char_location: 'document',
  page_location: 'document',
  content_block_location: 'document',
  search_result_location: 'search_result',
  web_search_result_location: 'url',
};

/** The wire's offsets refer to the cited document, not to this text, so they stay in `raw`. */
export function decodeCitation(raw: JsonObject): Citation {
  const type = textOrEmpty(raw['type']);
  const kind = getOwn(CITATION_KINDS, type);
  const url = raw['url'] ?? (type === 'search_result_location' ? raw['source'] : undefined);
  const title = raw['title'] ?? raw['document_title'];
  const { cited_text: cited, document_index: document, file_id: file } = raw;
  const page = pair(raw['start_page_number'], raw['end_page_number']);
  const block = pair(raw['start_block_index'], raw['end_block_index']);
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
    origin: PROTOCOL,
  };
}

const pair = (start: unknown, end: unknown): [number, number] | undefined =>
  typeof start === 'number' && typeof end === 'number' ? [start, end] : undefined;

// ---- encode: shared by whole responses and streams

/** What the encoders know about the response they write. */
export interface ResponseScope {
  /** The context of the conversion. */
  context: CodecContext;
  /** The response comes from another protocol. */
  isForeign: boolean;
  /**
   * The request allows thinking blocks. Clients that did not request them expect none, and empty ones break some
   * (genkit).
   */
  wantsThinking: boolean;
  /** A signature of reasoning without text. Without thinking blocks, it is carried in the id of the next call. */
  held?: SignedBlob | undefined;
  /** The beginning of the text of a response of another protocol, with which transcripts of audio are compared. */
  text: string;
}

/** Collects what the encoders need to know about a response. */
export function createResponseScope(source: Parameters<typeof isForeign>[0], context: CodecContext): ResponseScope {
  const { request } = context;
  const isOther = isForeign(source, PROTOCOL, context);
  const isRequested = !request || (request.thinking !== undefined && request.thinking.type !== 'disabled');
  return { context, isForeign: isOther, wantsThinking: isRequested || !isOther, text: '' };
}

/** Reports a held signature that no call carried; called at the end of a response. */
export function dropHeldSignature(response: ResponseScope): void {
  if (response.held) dropSignature('/content', 'thinking', response);
  response.held = undefined;
}

/** The id is made to look like one of this protocol if it is not; the model is the one that the client requested. */
export function encodeEnvelope({ id, model }: { id: string; model: string }, { context, isForeign }: ResponseScope): JsonObject {
  return {
    id: id === '' ? context.newId('msg_') : isForeign ? encodeId(id) : id,
    type: 'message',
    role: 'assistant',
    model: chooseModel(model, context),
  };
}

const encodeId = (id: string): string => (id.startsWith('msg_') ? id : `msg_${id.replace(/[^A-Za-z0-9_-]/g, '_')}`);

/** Service tiers of the official type, by the names that other protocols use for them. */
const TIERS: Readonly<Record<string, string>> = {
  standard: 'standard',
  default: 'standard',
  priority: 'priority',
  batch: 'batch',
};

/** Whether the official type has a name for a service tier. */
export const carriesTier = (tier: string): boolean => Object.hasOwn(TIERS, tier);

/** The service tier that served the request; in this protocol it is part of the usage. */
export const encodeTier = (tier: string | undefined, { isForeign }: ResponseScope): JsonObject =>
  isForeign && tier !== undefined && carriesTier(tier) ? { service_tier: TIERS[tier] } : {};

/** A call with its input. The official type requires `caller`. */
export const encodeCall = (block: ToolUseBlock, input: unknown, path: string, response: ResponseScope): JsonObject => ({
  type: TOOL_TYPES[block.kind ?? 'function'],
  ...(block.kind !== 'mcp' && { caller: { type: 'direct' } }),
  ...readExtensions(block),
  id: encodeSignedId(block, path, response),
  name: block.name,
  input,
});

/**
 * The id of a call. When no thinking block may carry a signature, the id carries it: that of the call, or that of the
 * reasoning before it.
 */
function encodeSignedId({ id: source, signature }: ToolUseBlock, path: string, response: ResponseScope): string {
  const { context, isForeign, wantsThinking, held } = response;
  // The server of this protocol gets its own ids back.
  const id = isForeign ? encodeCallId(source, path, context) : source;
  const blob = signature ?? held;
  if (wantsThinking || !blob || blob.origin === PROTOCOL) return id;
  if (!signature) response.held = undefined;
  const carried = encodeCarrierInId(id, blob, findIssuer(blob, context), signature ? 'next' : 'self', context.sealing);
  if (carried === undefined) dropSignature(path, 'tool_use', response);
  return carried ?? id;
}

const MAX_CLEAN_ID = 40;

/**
 * Anthropic accepts only `^[a-zA-Z0-9_-]+$` when the client sends the call back (Kimi writes `functions.Bash:0`), so
 * other characters are escaped until then. Of an id that is too long, the hash keeps those apart that begin alike. Both
 * are deterministic, so that prompt caches stay valid.
 */
function encodeCallId(id: string, path: string, context: CodecContext): string {
  const renamed = escapeId(id) ?? `${id.slice(0, MAX_CLEAN_ID).replace(/[^a-zA-Z0-9_-]/g, '_')}_${deriveId('', id).slice(0, 8)}`;
  if (renamed === id) return id;
  const message = `the call id ${id} is not valid in Anthropic Messages; sent as ${renamed}`;
  context.note({ code: 'RENAMED', path, feature: 'content.tool_use.id', message });
  return renamed;
}

/** Reports a signature that cannot be carried: thinking was not requested, and no call follows. */
export function dropSignature(path: string, type: ContentBlock['type'], { context }: ResponseScope): void {
  const message = `the signature of a ${type} block cannot be carried to a client that did not request thinking; dropped`;
  context.note({ code: 'DROPPED', path, feature: `content.${type}.signature`, message });
}

/** Whether a call is dropped: it was run by another provider, so this client can neither run nor understand it. */
export function dropServerCall({ kind, name }: ToolUseBlock, path: string, { context, isForeign }: ResponseScope): boolean {
  if (!isForeign || isClientCall(kind)) return false;
  noteDropped(context, {
    path,
    feature: 'content.server_tool_use',
    message: `${name} was run by the provider and is not supported by the client protocol; dropped`,
  });
  return true;
}

/**
 * Anthropic's citations are sent as they came. Others cannot be expressed: a web citation needs an `encrypted_index`
 * that only Anthropic issues, and a document citation needs a document of the request.
 */
export function encodeCitation({ origin, kind, raw }: Citation, path: string, context: CodecContext): unknown {
  if (origin === PROTOCOL && raw !== undefined) return raw;
  noteDropped(context, {
    path,
    feature: 'citations',
    message: `${kind} citations of ${origin} are not supported by Anthropic Messages; dropped`,
  });
  return undefined;
}

/**
 * A signature for unsigned reasoning of another provider: clients require one, and an empty carrier decodes to none.
 */
export function encodeUnsigned(context: CodecContext): string {
  const origin = context.source ?? context.target?.provider.protocol ?? 'openai-chat';
  return encodeSignature({ origin, form: 'signature', value: '' }, 'self', context);
}

/** An empty thinking block that only carries the signature of another block. */
export const buildCarrierBlock = (blob: SignedBlob, attach: Attach, context: CodecContext): JsonObject => ({
  type: 'thinking',
  thinking: '',
  signature: encodeSignature(blob, attach, context),
});

/** A signature of another provider is carried in place of Anthropic's, so that the client sends it back. */
export function encodeSignature(blob: SignedBlob, attach: Attach, context: CodecContext): string {
  return blob.origin === PROTOCOL ? blob.value : carryBlob(blob, attach, context);
}

/** An image as a Markdown link; undefined without a URL, because other words are none of the model. */
export function describeImage({ source }: ImageBlock, path: string, context: CodecContext): string | undefined {
  const loss = { path, feature: 'content.image' };
  const message = 'images in responses are not supported by Anthropic Messages';
  if (source.url === undefined) noteDropped(context, { ...loss, message: `${message}; dropped` });
  else noteApproximated(context, { ...loss, message: `${message}; sent as a link` });
  return source.url && `![image](${source.url})`;
}

/** Notes that audio was dropped, or replaced by its transcript. */
export function noteAudio(hasTranscript: boolean, path: string, context: CodecContext): void {
  const feature = 'content.audio';
  if (hasTranscript)
    noteApproximated(context, {
      path,
      feature,
      message: 'audio in responses is not supported by Anthropic Messages; its transcript is sent',
    });
  else noteDropped(context, { path, feature, message: 'audio in responses is not supported by Anthropic Messages; dropped' });
}

/** Whether a kept block has a type, so that it can be sent as it is. */
export const isTypedBlock = (raw: unknown): raw is JsonObject => isObject(raw) && typeof raw['type'] === 'string';

/** Notes the loss of all choices but the first. */
export const dropChoices = (context: CodecContext): void =>
  noteDropped(context, {
    path: '/choices',
    feature: 'choices',
    message: 'Anthropic Messages has one choice; the others are dropped',
  });

/** A canonical block of this protocol in wire form. */
export function encodeBlock(block: ContentBlock): JsonObject {
  const fields = block.extensions?.[PROTOCOL] ?? {};
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
      // The stream decoder of this protocol never produces these.
      return { type: block.type, source: block.source };
    default:
      return block satisfies never;
  }
}

/** A thinking block in wire form, redacted or not. */
export function encodeThinking({ thinking, variant, signature, extensions }: ThinkingBlock): JsonObject {
  const fields = extensions?.[PROTOCOL] ?? {};
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
