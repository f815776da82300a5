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
import { sourceOf } from '../../canonical/source.ts';
import { type Attach, decodeCarrier, encodeCarrier, type Length } from '../../codec/answers.ts';
import type { Flow } from '../../codec/block-emitter.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import { countOf, listOf, objectOf, textOf } from '../../codec/read.ts';
import { approximate, drop } from '../../codec/report.ts';
import { splitDataUrl } from '../../codec/requests.ts';
import { assignOwn, isObject, type JsonObject, sameJson } from '../../json/json.ts';
import { fieldsOf, keep } from './wire.ts';

export const TEXT: Flow = { kind: 'text', start: () => ({ type: 'text', text: '' }) };

export const REFUSAL: Flow = { kind: 'refusal', start: () => ({ type: 'text', text: '', refusal: true }) };

export const THINKING: Flow = { kind: 'thinking', start: () => ({ type: 'thinking', thinking: '', variant: 'full' }) };

export function audioFlow({ id }: JsonObject): Flow {
  return { kind: 'audio', start: () => ({ type: 'audio', source: {}, ...(typeof id === 'string' && { audio_id: id }) }) };
}

/** An OpenRouter image: `{type:"image_url", image_url:{url}}`. Fields other than the URL are kept under their wire names. */
export function decodeImage(part: JsonObject): ImageBlock {
  const { image_url: image, ...rest } = part;
  const url = isObject(image) ? image['url'] : image;
  const text = typeof url === 'string' ? url : '';
  return { type: 'image', source: splitDataUrl(text) ?? { url: text }, extensions: { 'openai-chat': rest } };
}

export function encodeImage(block: ImageBlock): JsonObject {
  const { data, media_type, url } = block.source;
  return {
    ...block.extensions?.['openai-chat'],
    image_url: { url: data === undefined ? url : `data:${media_type};base64,${data}` },
  };
}

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

/** The log probabilities of a text completion, lists side by side, in the form of a chat. */
export function asContent(logprobs: unknown): unknown {
  const { tokens, token_logprobs: values, top_logprobs: tops }: JsonObject = objectOf(logprobs);
  if (!Array.isArray(tokens)) return logprobs;
  return {
    content: tokens.map((token, i) => ({ token, logprob: listOf(values)[i], top_logprobs: ranked(listOf(tops)[i]) })),
  };
}

const ranked = (top: unknown): JsonObject[] | undefined =>
  isObject(top) ? Object.entries(top).map(([token, logprob]) => ({ token, logprob })) : undefined;

/** Those of the text, or of the refusal. */
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

/** The logprobs of a message in the shape of the wire, or undefined when it has none. */
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

/** Where vendors put what the model thought, the best first. */
const TEXT_FIELDS = ['reasoning_content', 'reasoning', 'reasoning_text'] as const;

/** Opaque state that belongs to it (OpenRouter, Copilot, and others). */
const STATE_FIELDS = ['reasoning_details', 'reasoning_signature', 'reasoning_opaque', 'reasoning_encrypted'] as const;

export const REASONING_FIELDS: readonly string[] = [...TEXT_FIELDS, ...STATE_FIELDS];

/** The thinking of an assistant message, and the blobs of other protocols that came with it. */
interface Reasoning {
  blocks: { block: ThinkingBlock; place: string }[];
  /** Blobs for the blocks that follow, in order. */
  next: { blob: SignedBlob; place: string }[];
}

/** A blob of another provider, where it stands, and where the text begins that it signs. */
interface Carried {
  blob: SignedBlob;
  attach: Attach;
  place: string;
  start: number;
}

/** One block, or one for each blob that signs a text of its own; none when there is nothing. What is not text goes back as it came. */
export function decodeReasoning(message: JsonObject): Reasoning {
  const field = TEXT_FIELDS.find((name) => textOf(message[name]) !== '');
  const details = listOf(message['reasoning_details']);
  const text = field ? textOf(message[field]) : details.map(detailText).join('');
  const carried = details.flatMap(carriedIn);
  const signing = carried.filter(({ attach }) => attach === 'self');
  const rest = stateOf(message, field);
  const next = carried.filter(({ attach }) => attach === 'next');
  if (text === '' && signing.length === 0 && Object.keys(rest).length === 0) return { blocks: [], next };
  const [first, ...others] = signing;
  const place = field ?? REASONING_FIELDS.find((name) => message[name] !== undefined) ?? '';
  return {
    blocks: [
      { block: { ...thought(textUpTo(text, 0, others[0]), first), ...keep(rest) }, place },
      ...others.map((signed, i) => ({
        block: thought(textUpTo(text, signed.start, others[i + 1]), signed),
        place: signed.place,
      })),
    ],
    next,
  };
}

function carriedIn(detail: unknown, i: number): Carried[] {
  const { data, start } = objectOf(detail);
  const carrier = decodeCarrier(textOf(data));
  return carrier ? [{ ...carrier, place: `reasoning_details[${i}]`, start: countOf(start) ?? Number.POSITIVE_INFINITY }] : [];
}

/** What the next blob signs begins a paragraph. */
function textUpTo(text: string, start: number, next: Carried | undefined): string {
  const piece = text.slice(start, next && Math.max(start, next.start));
  return next && piece.endsWith('\n\n') ? piece.slice(0, -2) : piece;
}

const thought = (text: string, signed: Carried | undefined): ThinkingBlock => ({
  type: 'thinking',
  thinking: text,
  variant: text === '' ? 'redacted' : 'full',
  ...(signed && { signature: signed.blob }),
});

/** All that is not the text itself; carriers are ours and stay here. */
function stateOf(message: JsonObject, textField: string | undefined): JsonObject {
  const rest: JsonObject = {};
  for (const name of REASONING_FIELDS) {
    const value = message[name];
    const own = Array.isArray(value) ? value.filter((item) => !decodeCarrier(textOf(objectOf(item)['data']))) : value;
    const isEmpty = own === undefined || own === null || own === '' || (Array.isArray(own) && own.length === 0);
    if (name !== textField && !isEmpty) rest[name] = own;
  }
  return rest;
}

/** `reasoning.text` and `reasoning.summary` are text; `reasoning.encrypted` is not. */
const detailText = (detail: unknown): string => textOf(objectOf(detail)['text']) || textOf(objectOf(detail)['summary']);

/** Signs the first blocks that can be signed and are not. */
export function signNext(content: readonly ContentBlock[], blobs: readonly SignedBlob[]): ContentBlock[] {
  let next = 0;
  return content.map((block) => {
    const canSign = (block.type === 'tool_use' || block.type === 'text') && !block.signature;
    const signature = canSign ? blobs[next++] : undefined;
    return canSign && signature ? { ...block, signature } : block;
  });
}

type TextField = (typeof TEXT_FIELDS)[number] | 'none';

/**
 * The field in which a chat client sent its reasoning; `none` when it stood in `reasoning_details` only. Undefined where the server is known for
 * another name than the usual one.
 */
export function sentField([first]: readonly ThinkingBlock[], field: TextField): TextField | undefined {
  if (!first || field !== 'reasoning_content') return undefined;
  const name = sourceOf(first)?.split('/').at(-1);
  return TEXT_FIELDS.find((known) => known === name) ?? (STATE_FIELDS.some((known) => known === name) ? 'none' : undefined);
}

/** The fields that give the thinking back, in the field where this server looks for it. */
export function encodeReasoning(blocks: readonly ThinkingBlock[], field: TextField): JsonObject {
  const fields: JsonObject = {};
  for (const block of blocks) assignOwn(fields, fieldsOf(block));
  if (field === 'none') return fields;
  const text = blocks.map(({ thinking }) => thinking).filter((thinking) => thinking !== '');
  return { ...fields, [field]: text.join('\n\n') };
}

/** Mistral: a part of the content. */
export const encodeThinkingPart = (block: ThinkingBlock): JsonObject => ({
  ...fieldsOf(block),
  type: 'thinking',
  thinking: [{ type: 'text', text: block.thinking }],
});
