import { deriveId } from '../../accumulate/derive-id.ts';
import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { Citation, ContentBlock, ImageBlock, ToolUseBlock } from '../../canonical/blocks.ts';
import type { ProtocolId, SignedBlob } from '../../canonical/protocol.ts';
import { isClientCall } from '../../canonical/response.ts';
import { isForeign } from '../shared/answer.ts';
import { type Attach, encodeCarrier, encodeCarrierInId } from '../shared/carrier.ts';
import { approximate, type CodecContext, drop } from '../shared/codec.ts';
import { fieldsOf } from './fields.ts';

// What a whole message and a stream write in the same words.

const OWN: ProtocolId = 'anthropic-messages';

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

export function createAnswer(source: Parameters<typeof isForeign>[0], context: CodecContext): Answer {
  const { request } = context;
  const isOther = isForeign(source, OWN, context);
  const isRequested = !request || (request.thinking !== undefined && request.thinking.type !== 'disabled');
  return { context, isForeign: isOther, wantsThinking: isRequested || !isOther };
}

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

/** A signature of another provider is carried in the place of our own, so that the client hands it back. */
export function encodeSignature(blob: SignedBlob, attach: Attach, { target }: CodecContext): string {
  return blob.origin === OWN ? blob.value : encodeCarrier(blob, blob.provider ?? target?.provider.id ?? '', attach);
}

/** Reasoning of another provider that nobody signed: clients want some signature, and one that carries nothing is read as none. */
export function encodeUnsigned(context: CodecContext): string {
  const origin = context.source ?? context.target?.provider.protocol ?? 'openai-chat';
  return encodeSignature({ origin, form: 'signature', value: '' }, 'self', context);
}

/** A signature without a place: no thinking was requested, and no call follows that could carry it. */
export function dropSignature(path: string, type: ContentBlock['type'], { context }: Answer): void {
  const message = `the signature of a ${type} block cannot be carried to a client that did not request thinking; dropped`;
  context.note({ code: 'DROPPED', path, feature: `content.${type}.signature`, message });
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

/** A call that another provider ran itself is nothing that this client could run, or understand. */
export function isLostCall({ kind, name }: ToolUseBlock, path: string, { context, isForeign }: Answer): boolean {
  if (!isForeign || isClientCall(kind)) return false;
  drop(context, { path, feature: 'content.server_tool_use', message: `${name} was called and run by the provider` });
  return true;
}

export const NO_LOGPROBS = 'an answer of Anthropic Messages holds no log probabilities';

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
