import type { JsonObject } from '../../accumulate/overlay.ts';
import type { AudioBlock, FileBlock, ImageBlock, OpaqueBlock, TextBlock } from '../../canonical/blocks.ts';
import { at } from '../../canonical/source.ts';
import { type CodecContext, missing } from '../shared/codec.ts';
import { splitDataUrl } from '../shared/data-url.ts';
import { expectList, expectName, expectObject, expectText, optional, pointerOf } from '../shared/expect.ts';
import { isDetail } from '../shared/openai-fields.ts';
import { decodeBreakpoint } from '../shared/prompt-cache.ts';
import { objectOf, unknownFields } from '../shared/read.ts';
import { keep, PROTOCOL } from './kept.ts';

/** What users, systems and tools may say. */
export type Part = TextBlock | ImageBlock | AudioBlock | FileBlock | OpaqueBlock;

/** What all parts of one request share. */
export interface Scope {
  context: CodecContext;
}

type DecodePart = (part: JsonObject, param: string) => Part;

const PARTS: Readonly<Record<string, DecodePart>> = {
  input_text: decodeText,
  output_text: decodeText,
  text: decodeText,
  input_image: decodeImage,
  input_file: decodeFile,
  input_audio: decodeAudio,
};

/** A text, or a list of parts. Empty text says nothing; a part that nobody here knows goes back as it came. */
export function decodeContent(content: unknown, param: string, scope: Scope): Part[] {
  const place = pointerOf(param);
  if (typeof content === 'string')
    return content === '' ? [] : [at(place, { type: 'text', text: content } satisfies TextBlock, scope.context)];
  return (optional(content, param, expectList) ?? []).flatMap((value, i): Part[] => {
    const inner = `${param}[${i}]`;
    const part = typeof value === 'string' ? { type: 'input_text', text: value } : expectObject(value, inner);
    if (part['text'] === '') return [];
    const type = expectText(part['type'], `${inner}.type`);
    const decode = Object.hasOwn(PARTS, type) ? PARTS[type] : undefined;
    const block: Part = decode ? decode(part, inner) : { type: 'opaque', origin: PROTOCOL, raw: part };
    return [at(`${place}/${i}`, block, scope.context, placesOf(`${place}/${i}`))];
  });
}

/** What a part calls otherwise than the canonical block. */
export const placesOf = (place: string): Record<string, string> => ({
  'source/detail': `${place}/detail`,
  'source/filename': `${place}/filename`,
  cache_control: `${place}/prompt_cache_breakpoint`,
  citations: `${place}/annotations`,
});

const TEXT_FIELDS = new Set(['type', 'text', 'prompt_cache_breakpoint']);

function decodeText(part: JsonObject, param: string): TextBlock {
  return {
    type: 'text',
    text: expectText(part['text'], `${param}.text`),
    ...decodeBreakpoint(part),
    ...keep(unknownFields(part, TEXT_FIELDS)),
  };
}

/** An id stays among the kept fields: they say whose it is. */
const IMAGE_FIELDS = new Set(['type', 'image_url', 'detail', 'prompt_cache_breakpoint']);

/** Chat's `{image_url:{url}}` is read as well. */
function decodeImage(part: JsonObject, param: string): ImageBlock {
  const link = objectOf(part['image_url'])['url'] ?? part['image_url'];
  const url = optional(link, `${param}.image_url`, expectName);
  const id = optional(part['file_id'], `${param}.file_id`, expectName);
  if (url === undefined && id === undefined) throw missing(`${param}.image_url`);
  const { detail } = part;
  return {
    type: 'image',
    source: {
      ...(url !== undefined && (splitDataUrl(url) ?? { url })),
      ...(id !== undefined && { file_id: id }),
      ...(isDetail(detail) && { detail }),
    },
    ...decodeBreakpoint(part),
    ...keep(unknownFields(part, IMAGE_FIELDS)),
  };
}

const FILE_FIELDS = new Set(['type', 'file_data', 'file_url', 'filename', 'prompt_cache_breakpoint']);

/** Data is a data URL; raw base64 is taken too. */
function decodeFile(part: JsonObject, param: string): FileBlock {
  const data = optional(part['file_data'], `${param}.file_data`, expectText);
  const url = optional(part['file_url'], `${param}.file_url`, expectName);
  const id = optional(part['file_id'], `${param}.file_id`, expectName);
  const filename = optional(part['filename'], `${param}.filename`, expectText);
  if (data === undefined && url === undefined && id === undefined) throw missing(`${param}.file_data`);
  const split = data === undefined ? undefined : splitDataUrl(data);
  return {
    type: 'file',
    source: {
      ...(data !== undefined && { file_data: split?.data ?? data }),
      ...(split && { media_type: split.media_type }),
      ...(url !== undefined && { file_url: url }),
      ...(id !== undefined && { file_id: id }),
      ...(filename !== undefined && { filename }),
    },
    ...decodeBreakpoint(part),
    ...keep(unknownFields(part, FILE_FIELDS)),
  };
}

const AUDIO_FIELDS = new Set(['type', 'input_audio', 'prompt_cache_breakpoint']);

function decodeAudio(part: JsonObject, param: string): AudioBlock {
  const audio = expectObject(part['input_audio'], `${param}.input_audio`);
  const format = expectText(audio['format'], `${param}.input_audio.format`);
  return {
    type: 'audio',
    source: { data: expectText(audio['data'], `${param}.input_audio.data`), format, media_type: `audio/${format}` },
    ...decodeBreakpoint(part),
    ...keep(unknownFields(part, AUDIO_FIELDS)),
  };
}
