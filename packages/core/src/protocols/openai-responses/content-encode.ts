import type { JsonObject } from '../../accumulate/overlay.ts';
import type { AudioBlock, ContentBlock, FileBlock, ImageBlock, TextBlock } from '../../canonical/blocks.ts';
import type { SystemBlock } from '../../canonical/request.ts';
import { type CodecContext, drop } from '../shared/codec.ts';
import { encodeBreakpoint } from '../shared/prompt-cache.ts';
import { objectOf } from '../shared/read.ts';
import { fieldsOf } from './kept.ts';

/** The blocks of a user, of a system message or of a tool result as parts; `at` is their JSON pointer. */
export function encodeParts(blocks: readonly ContentBlock[], at: string, context: CodecContext): JsonObject[] {
  return blocks.flatMap((block, i) => encodePart(block, `${at}/${i}`, context));
}

function encodePart(block: ContentBlock, at: string, context: CodecContext): JsonObject[] {
  switch (block.type) {
    case 'text':
      return block.text === '' ? [] : [encodeInputText(block)];
    case 'image':
      return [encodeImage(block)];
    case 'audio':
      return [encodeAudio(block)];
    case 'file':
      return [encodeFile(block)];
    case 'opaque':
      return [objectOf(block.raw)]; // of this protocol: others have been filtered
    case 'thinking':
    case 'tool_use':
    case 'tool_result':
      drop(context, {
        path: at,
        feature: `messages.${block.type}`,
        message: `a ${block.type} block cannot stand here in OpenAI Responses`,
      });
      return [];
    default:
      return block satisfies never;
  }
}

export function encodeInputText(block: TextBlock | SystemBlock): JsonObject {
  const { message: _, instructions: __, ...fields } = fieldsOf(block);
  return { ...fields, type: 'input_text', text: block.text, ...encodeBreakpoint(block) };
}

function encodeImage(block: ImageBlock): JsonObject {
  const { url, data, media_type: type, file_id: id, detail } = block.source;
  const image_url = data === undefined ? url : `data:${type || 'image/png'};base64,${data}`;
  return {
    ...fieldsOf(block),
    type: 'input_image',
    ...(image_url !== undefined && { image_url }),
    ...(image_url === undefined && id !== undefined && { file_id: id }),
    detail: detail ?? 'auto',
    ...encodeBreakpoint(block),
  };
}

function encodeAudio(block: AudioBlock): JsonObject {
  const { data, format } = block.source;
  return { ...fieldsOf(block), type: 'input_audio', input_audio: { data, format }, ...encodeBreakpoint(block) };
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

function encodeFile(block: FileBlock): JsonObject {
  const { file_data: data, file_id: id, file_url: url, filename, media_type: named } = block.source;
  const type = named || typeOf(filename);
  const name = filename ?? `document.${Object.keys(TYPES).find((end) => TYPES[end] === type) ?? 'bin'}`;
  const given = filename === undefined ? {} : { filename };
  const source =
    data !== undefined
      ? { filename: name, file_data: `data:${type};base64,${data}` }
      : { ...given, ...(url === undefined ? { file_id: id } : { file_url: url }) };
  return { ...fieldsOf(block), type: 'input_file', ...source, ...encodeBreakpoint(block) };
}

function typeOf(name = ''): string {
  const end = name.slice(name.lastIndexOf('.') + 1).toLowerCase();
  return (Object.hasOwn(TYPES, end) && TYPES[end]) || 'application/pdf';
}

export const isPlainText = (part: JsonObject): boolean => part['type'] === 'input_text' && Object.keys(part).length === 2;
