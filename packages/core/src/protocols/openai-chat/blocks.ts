import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { Citation, ContentBlock, ImageBlock, TokenLogprob, TopLogprob } from '../../canonical/blocks.ts';
import type { Flow } from '../shared/block-writer.ts';
import { splitDataUrl } from '../shared/data-url.ts';
import { listOf, objectOf } from '../shared/read.ts';

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
