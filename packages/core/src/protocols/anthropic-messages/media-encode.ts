import type { JsonObject } from '../../accumulate/overlay.ts';
import type { ContentBlock, FileBlock, ImageBlock, ToolResultBlock } from '../../canonical/blocks.ts';
import type { CanonicalRequest } from '../../canonical/request.ts';
import { changeAll, changeBlocks } from '../../passes/blocks.ts';
import { locatedContext } from '../../passes/located.ts';
import { type CodecContext, drop } from '../shared/codec.ts';
import { objectOf } from '../shared/read.ts';
import { encodeCacheControl, fieldsOf } from './fields.ts';

const IMAGE_TYPES: ReadonlySet<string> = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp']);

/** How the base64 of each type begins, for images that do not say what they are. */
const IMAGE_STARTS: readonly (readonly [string, string])[] = [
  ['/9j/', 'image/jpeg'],
  ['R0lG', 'image/gif'],
  ['UklG', 'image/webp'],
];

function imageType({ data = '', media_type: named }: ImageBlock['source']): string {
  const type = named?.toLowerCase().replace(/;.*/s, '').trim();
  if (type) return type === 'image/jpg' ? 'image/jpeg' : type;
  return IMAGE_STARTS.find(([start]) => data.startsWith(start))?.[1] ?? 'image/png';
}

export function encodeImage(block: ImageBlock): JsonObject | undefined {
  const { source: rest, ...fields } = fieldsOf(block);
  const source = imageSource(block.source);
  return source && { ...fields, type: 'image', source: { ...objectOf(rest), ...source }, ...encodeCacheControl(block) };
}

function imageSource(source: ImageBlock['source']): JsonObject | undefined {
  const { data, url, file_id: id } = source;
  const type = imageType(source);
  if (data !== undefined) return IMAGE_TYPES.has(type) ? { type: 'base64', media_type: type, data } : undefined;
  if (id !== undefined) return { type: 'file', file_id: id };
  return url?.startsWith('https://') ? { type: 'url', url } : undefined;
}

/** Of everything but a document of blocks. */
export function documentSource(source: FileBlock['source']): JsonObject | undefined {
  const { text, file_data: data, file_url: url, file_id: id, media_type: type = PDF } = source;
  if (text !== undefined) return { type: 'text', media_type: 'text/plain', data: text };
  if (id !== undefined) return { type: 'file', file_id: id };
  if (url !== undefined) return { type: 'url', url };
  if (data === undefined) return undefined;
  if (type === PDF) return { type: 'base64', media_type: type, data };
  const plain = isText(type) ? textOfBase64(data) : undefined;
  return plain === undefined ? undefined : { type: 'text', media_type: 'text/plain', data: plain };
}

const PDF = 'application/pdf';

const isText = (type: string): boolean => /^text\/|^application\/(json|xml|yaml|x-yaml)\b/.test(type);

function textOfBase64(data: string): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(atob(data), (char) => char.charCodeAt(0)));
  } catch {
    return undefined;
  }
}

/**
 * The request without the images and files that Anthropic cannot see or read. Before everything else: a message may have held nothing more,
 * and then the turns are others.
 */
export function dropUnreadable(request: CanonicalRequest, caller: CodecContext): CanonicalRequest {
  const context = locatedContext(caller, request);
  return changeBlocks(request, (block, path) =>
    block.type === 'tool_result' ? readResult(block, path, context) : readable(block, path, context),
  );
}

function readResult(block: ToolResultBlock, path: string, context: CodecContext): ToolResultBlock {
  if (typeof block.content === 'string') return block;
  const content = changeAll(block.content, (part, i) => readable(part, `${path}/content/${i}`, context));
  return content === block.content ? block : { ...block, content };
}

function readable<T extends ContentBlock>(block: T, path: string, context: CodecContext): T | undefined {
  const why = block.type === 'image' ? whyUnseen(block.source) : block.type === 'file' ? whyUnread(block.source) : undefined;
  if (why === undefined) return block;
  drop(context, { path, feature: block.type, message: `${block.type === 'image' ? 'an image' : 'a file'} is left out: ${why}` });
  return undefined;
}

function whyUnseen(source: ImageBlock['source']): string | undefined {
  const { data, url } = source;
  if ((data === undefined && url === undefined) || imageSource(source)) return undefined;
  return data === undefined ? 'only https URLs are fetched' : `${imageType(source)} is no image that Anthropic can see`;
}

function whyUnread(source: FileBlock['source']): string | undefined {
  if (source.file_data === undefined || documentSource(source)) return undefined;
  return `Anthropic reads PDF and text, not ${source.media_type}`;
}
