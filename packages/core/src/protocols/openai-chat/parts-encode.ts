import { isObject, type JsonObject, sameJson } from '../../accumulate/overlay.ts';
import type { Citation, ImageBlock, TokenLogprob, ToolUseBlock } from '../../canonical/blocks.ts';
import type { Extensions, SignedBlob } from '../../canonical/protocol.ts';
import type { Length } from '../shared/answer.ts';
import { type Attach, encodeCarrier } from '../shared/carrier.ts';
import { approximate, type CodecContext, drop } from '../shared/codec.ts';
import { listOf, objectOf } from '../shared/read.ts';
import { encodeImage } from './blocks.ts';

// What a whole message and a stream write in the same words.

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

/** The model is the one that the client asked for; the id looks like one of this protocol, unless it is one. */
export function encodeEnvelope(source: Source, hasForeignId: boolean, context: CodecContext): Envelope {
  return {
    id: hasForeignId ? encodeId(source.id) : source.id || context.newId('chatcmpl-'),
    created: Math.floor(source.created || context.now()),
    model: context.request?.model ?? source.model,
  };
}

const encodeId = (id: string): string => (id.startsWith('chatcmpl-') ? id : `chatcmpl-${id.replace(/[^A-Za-z0-9_-]/g, '_')}`);

/** What the other protocols call the tiers. */
const SERVICE_TIERS: Record<string, string> = { standard: 'default', auto: 'auto', flex: 'flex', priority: 'priority' };

export function encodeTier(tier: string | undefined, foreign: boolean, context: CodecContext): string | undefined {
  if (tier === undefined || !foreign) return tier;
  const known = Object.hasOwn(SERVICE_TIERS, tier) ? SERVICE_TIERS[tier] : undefined;
  if (known === undefined) lose(context, '/service_tier', 'service_tier', `OpenAI Chat has no service tier ${tier}`);
  return known;
}

/** A citation as an annotation; undefined for what only has a meaning in another protocol. `offset`: of its block in the whole text. */
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

/** Google's own place for the signature of a call; the value goes as it came. */
const googleSignature = (value: string): JsonObject => ({ extra_content: { google: { thought_signature: value } } });

export const isGoogleSigned = (signature: SignedBlob | undefined): signature is SignedBlob => signature?.origin === 'gemini';

export function encodeCallSignature(signature: SignedBlob): JsonObject {
  return googleSignature(signature.value);
}

/**
 * An opaque value of another provider, in OpenRouter's shape; clients that do not know it drop it. `index` keeps entries apart, `start` says
 * where in the reasoning the text begins that it signs, when that is not the beginning.
 */
export function encodeSignature(
  blob: SignedBlob,
  attach: Attach,
  { index, start = 0 }: { index: number; start?: number | undefined },
  context: CodecContext,
): JsonObject {
  const provider = blob.provider ?? context.target?.provider.id ?? '';
  const data = blob.origin === 'openai-chat' ? blob.value : encodeCarrier(blob, provider, attach);
  return { type: 'reasoning.encrypted', data, index, ...(start > 0 && { start }) };
}

/** The fields of a call beside the standard ones: of the call, and of its `function` or `custom`. The wire's index is not among them. */
export function callFields({ extensions, kind }: ToolUseBlock): { outer: JsonObject; inner: JsonObject } {
  const body = kind === 'custom' ? 'custom' : 'function';
  const { index: _, [body]: inner, ...outer }: JsonObject = extensions?.['openai-chat'] ?? {};
  return { outer, inner: objectOf(inner) };
}

/** A call that another provider ran itself is nothing that this client could run; one of chat is written as it came. */
export const isForeignServerCall = ({ kind, extensions }: ToolUseBlock): boolean =>
  (kind === 'server' || kind === 'mcp') && extensions?.['openai-chat'] === undefined;

/** An image in OpenRouter's shape; undefined for a file that only its provider has. */
export function encodeImagePart(block: ImageBlock): JsonObject | undefined {
  const { url, data } = block.source;
  return url === undefined && data === undefined ? undefined : { type: 'image_url', ...encodeImage(block) };
}

/** Tokens in the shape of the wire. `raw`: the same tokens as the wire had them, when it had more. */
export function encodeTokens(tokens: readonly TokenLogprob[], raw: unknown): JsonObject[] {
  const encoded = tokens.map(({ top, ...token }) => ({
    ...encodeToken(token),
    top_logprobs: (top ?? []).map(encodeToken),
  }));
  const original = listOf(raw).filter(isObject);
  const isSame =
    original.length === encoded.length && original.every((token, i) => sameJson(pick(token), pick(encoded[i] ?? {})));
  return isSame ? original : encoded;
}

const encodeToken = ({ token, logprob, bytes }: TokenLogprob): JsonObject => ({ token, logprob, bytes: bytes ?? null });

const pick = ({ token, logprob }: JsonObject): JsonObject => ({ token, logprob });

/** Where a client reads reasoning; undefined when it reads none. A list of parts in place of the text would break every SDK. */
export function reasoningField({ profile }: CodecContext): 'reasoning_content' | 'reasoning' | undefined {
  if (profile.reasoning_field === 'none') return undefined;
  return profile.reasoning_field === 'reasoning' ? 'reasoning' : 'reasoning_content';
}

export function lose(context: CodecContext, path: string, feature: string, message: string): void {
  drop(context, { path, feature, message });
}

/** Chat has one text and a list of calls. */
export function approximateOrder(context: CodecContext, block: number): void {
  const message = 'text after a call stands before all calls: OpenAI Chat has no order between them';
  approximate(context, { path: `/content/${block}`, feature: 'content.order', message });
}

/** A call that is not whole, or has no name of its own. Chat clients need a name and know no status: only a note can tell. */
export function tellIncomplete({ name, status }: ToolUseBlock, path: string, context: CodecContext): void {
  if (status !== 'incomplete') return;
  const message = `the call of ${name} is not whole, which OpenAI Chat cannot express; do not run it`;
  approximate(context, { path, feature: 'content.tool_use', message });
}
