import type { JsonObject } from '../../accumulate/overlay.ts';
import type { AudioBlock, ContentBlock, FileBlock, ImageBlock, TextBlock } from '../../canonical/blocks.ts';
import type { CacheControl } from '../../canonical/protocol.ts';
import type { SystemBlock } from '../../canonical/request.ts';
import { approximate, type CodecContext, drop } from '../shared/codec.ts';
import { encodeBreakpoint } from '../shared/prompt-cache.ts';
import { objectOf } from '../shared/read.ts';
import { encodeMark, fieldsOf } from './fields.ts';

/** The blocks of a user, of a system message or of a tool result as parts; `at` is their JSON pointer. Empty text is left out. */
export function encodeParts(blocks: readonly ContentBlock[], at: string, context: CodecContext): JsonObject[] {
  return blocks.flatMap((block, i) => encodePart(block, `${at}/${i}`, context));
}

function encodePart(block: ContentBlock, at: string, context: CodecContext): JsonObject[] {
  switch (block.type) {
    case 'text':
      return block.text === '' ? [] : [encodeText(block, context)];
    case 'image':
      return [encodeImage(block, at, context)];
    case 'audio':
      return [encodeAudio(block, context)];
    case 'file':
      return [encodeFile(block, context)];
    case 'opaque':
      // A part of our own, which goes back as it came.
      return [objectOf(block.raw)];
    case 'thinking':
    case 'tool_use':
    case 'tool_result':
      drop(context, {
        path: at,
        feature: `messages.${block.type}`,
        message: `a ${block.type} block cannot stand here in OpenAI Chat`,
      });
      return [];
    default:
      return block satisfies never;
  }
}

/** A mark in the words of OpenRouter goes back as it came, wherever it stood; only models that know breakpoints get one. */
const breakpoint = (block: { cache_control?: CacheControl }, context: CodecContext): JsonObject =>
  context.profile.cache_breakpoints ? encodeBreakpoint(block) : encodeMark(block, context);

export function encodeText(block: TextBlock | SystemBlock, context: CodecContext): JsonObject {
  return { ...fieldsOf(block), type: 'text', text: block.text, ...breakpoint(block, context) };
}

function encodeImage(block: ImageBlock, at: string, context: CodecContext): JsonObject {
  const { url, data, media_type: type, detail } = block.source;
  const { image_url: rest, ...fields } = fieldsOf(block);
  if (detail === 'original')
    approximate(context, {
      path: `${at}/source/detail`,
      feature: 'image.detail',
      message: 'the detail "original" is sent as "high"',
    });
  const image_url = {
    ...objectOf(rest),
    url: data === undefined ? url : `data:${type ?? 'image/png'};base64,${data}`,
    ...(detail && { detail: detail === 'original' ? 'high' : detail }),
  };
  return { ...fields, type: 'image_url', image_url, ...breakpoint(block, context) };
}

function encodeAudio(block: AudioBlock, context: CodecContext): JsonObject {
  const { data, format } = block.source;
  const { input_audio: rest, ...fields } = fieldsOf(block);
  // A text goes back as it came, and to those who take nothing else; OpenAI takes no text.
  const isText = context.profile.audio_text ?? (typeof rest === 'string' && !context.profile.official);
  if (isText) return { ...fields, type: 'input_audio', input_audio: typeof rest === 'string' ? rest : data };
  return { ...fields, type: 'input_audio', input_audio: { ...objectOf(rest), data, format }, ...breakpoint(block, context) };
}

/** What a file is, by the end of its name; the API wants a name and a media type for each. */
const TYPES: Readonly<Record<string, string>> = {
  pdf: 'application/pdf',
  txt: 'text/plain',
  md: 'text/markdown',
  csv: 'text/csv',
  json: 'application/json',
  html: 'text/html',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
};

function encodeFile(block: FileBlock, context: CodecContext): JsonObject {
  const { file_data: data, file_id, filename: name, media_type: named } = block.source;
  const { file: rest, ...fields } = fieldsOf(block);
  const type = named || typeOf(name);
  const filename = name ?? `document.${Object.keys(TYPES).find((end) => TYPES[end] === type) ?? 'bin'}`;
  const file =
    data === undefined
      ? { ...objectOf(rest), file_id, ...(name !== undefined && { filename: name }) }
      : { ...objectOf(rest), filename, file_data: `data:${type};base64,${data}` };
  return { ...fields, type: 'file', file, ...breakpoint(block, context) };
}

function typeOf(name = ''): string {
  const end = name.slice(name.lastIndexOf('.') + 1).toLowerCase();
  return (Object.hasOwn(TYPES, end) && TYPES[end]) || 'application/pdf';
}

export const isPlainText = (part: JsonObject): boolean => part['type'] === 'text' && Object.keys(part).length === 2;

/** Plain texts in one; parts where there is more than text, or where several texts may stand side by side. */
export function encodeContent(blocks: readonly ContentBlock[], at: string, context: CodecContext): string | JsonObject[] {
  const parts = encodeParts(blocks, at, context);
  const isText = parts.every(isPlainText) && (parts.length <= 1 || !context.profile.content_parts);
  return isText ? parts.map(({ text }) => text).join('\n\n') : parts;
}
