import type { JsonObject } from '../../accumulate/overlay.ts';
import type { AudioBlock, FileBlock, ImageBlock, OpaqueBlock, TextBlock, ThinkingBlock } from '../../canonical/blocks.ts';
import { at as placedAt } from '../../canonical/source.ts';
import { type CodecContext, missing } from '../shared/codec.ts';
import { splitDataUrl } from '../shared/data-url.ts';
import { expectList, expectName, expectObject, expectText, optional, pointerOf } from '../shared/expect.ts';
import { isDetail } from '../shared/openai-fields.ts';
import { isBreakpoint } from '../shared/prompt-cache.ts';
import { listOf, objectOf, textOf, unknownFields } from '../shared/read.ts';
import { decodeCacheControl, keep, placesOf, unknownWithin } from './fields.ts';

/** What the content of users, of tools and of the assistant may hold. */
export type Part = TextBlock | ImageBlock | AudioBlock | FileBlock | OpaqueBlock;
export type AssistantPart = TextBlock | ThinkingBlock | OpaqueBlock;

interface Site {
  /** JSON path. */
  at: string;
  context: CodecContext;
}

/** The node, remembering its JSON path when the caller wants that. */
export const placed = <T extends object>(param: string, node: T, context: CodecContext): T =>
  context.trace ? placedAt(pointerOf(param), node, context) : node;

/** The same, of a part that has other words. */
function placedPart<T extends object>(param: string, node: T, part: JsonObject, context: CodecContext): T {
  if (!context.trace) return node;
  const pointer = pointerOf(param);
  return placedAt(pointer, node, context, placesOf(pointer, part));
}

type Decode<Block> = (part: JsonObject, site: Site) => Block;

const PARTS: Readonly<Record<string, Decode<Part>>> = {
  text: decodeText,
  image_url: decodeImage,
  input_audio: decodeAudio,
  file: decodeFile,
};

/** Systems speak; other parts come back as they were. */
const SYSTEM_PARTS: Readonly<Record<string, Decode<TextBlock>>> = { text: decodeText };

/** The assistant's own; other parts come back as they were. */
const ASSISTANT_PARTS: Readonly<Record<string, Decode<AssistantPart>>> = {
  text: decodeText,
  refusal: decodeRefusal,
  thinking: decodeThinking,
};

export const decodeContent = (content: unknown, site: Site): Part[] => decodeParts(content, site, PARTS);
export const decodeSystemContent = (content: unknown, site: Site): (TextBlock | OpaqueBlock)[] =>
  decodeParts(content, site, SYSTEM_PARTS);
export const decodeAssistantContent = (content: unknown, site: Site): AssistantPart[] =>
  decodeParts(content, site, ASSISTANT_PARTS);

/** A text, or a list of parts. Empty text says nothing. */
function decodeParts<Block extends { type: string }>(
  content: unknown,
  { at, context }: Site,
  table: Readonly<Record<string, Decode<Block>>>,
): (Block | TextBlock | OpaqueBlock)[] {
  if (typeof content === 'string') return content === '' ? [] : [placed(at, { type: 'text', text: content }, context)];
  return (optional(content, at, expectList) ?? []).flatMap((value, i): (Block | TextBlock | OpaqueBlock)[] => {
    const site = { at: `${at}[${i}]`, context };
    if (typeof value === 'string') return value === '' ? [] : [placed(site.at, { type: 'text', text: value }, context)];
    const part = expectObject(value, site.at);
    const type = expectText(part['type'], `${site.at}.type`);
    if (part['text'] === '') return [];
    const decode = Object.hasOwn(table, type) ? table[type] : undefined;
    const block = decode ? decode(part, site) : ({ type: 'opaque', origin: 'openai-chat', raw: part } satisfies OpaqueBlock);
    return [placedPart(site.at, block, part, context)];
  });
}

const TEXT_FIELDS = new Set(['type', 'text']);

function decodeText(part: JsonObject, { at }: Site): TextBlock {
  return {
    type: 'text',
    text: expectText(part['text'], `${at}.text`),
    ...marks(part, unknownFields(part, TEXT_FIELDS) ?? {}),
  };
}

/** The breakpoint is mapped, every other mark is kept. */
function marks(part: JsonObject, { prompt_cache_breakpoint: point, ...rest }: JsonObject) {
  const odd = point !== undefined && !isBreakpoint(part) ? { prompt_cache_breakpoint: point } : {};
  return { ...decodeCacheControl(part), ...keep({ ...rest, ...odd }) };
}

function decodeRefusal(part: JsonObject, { at }: Site): TextBlock {
  return { type: 'text', text: expectText(part['refusal'], `${at}.refusal`), refusal: true };
}

const THINKING_FIELDS = new Set(['type', 'thinking']);

/** Mistral: `{type:"thinking",thinking:[{type:"text",text}]}`. */
function decodeThinking(part: JsonObject): ThinkingBlock {
  const { thinking } = part;
  const text =
    typeof thinking === 'string'
      ? thinking
      : listOf(thinking)
          .map((piece) => textOf(objectOf(piece)['text']))
          .join('');
  return { type: 'thinking', thinking: text, variant: 'full', ...keep(unknownFields(part, THINKING_FIELDS)) };
}

const IMAGE_FIELDS = new Set(['type', 'image_url']);
const URL_FIELDS = new Set(['url', 'detail']);

/** Mistral also takes the URL itself for `image_url`. */
function decodeImage(part: JsonObject, { at }: Site): ImageBlock {
  const image = part['image_url'];
  const { url: link, detail } = typeof image === 'string' ? { url: image } : expectObject(image, `${at}.image_url`);
  const url = expectName(link, `${at}.image_url.url`);
  const rest = unknownWithin(part, IMAGE_FIELDS, 'image_url', URL_FIELDS);
  return {
    type: 'image',
    source: { ...(splitDataUrl(url) ?? { url }), ...(isDetail(detail) && { detail }) },
    ...marks(part, rest),
  };
}

const AUDIO_FIELDS = new Set(['type', 'input_audio']);
const SOUND_FIELDS = new Set(['data', 'format']);

/** Mistral takes a text for `input_audio`: base64, a data URL, or the address of a file that only it fetches. */
function decodeAudio(part: JsonObject, site: Site): AudioBlock | OpaqueBlock {
  const text = part['input_audio'];
  if (typeof text !== 'string') return decodeSound(part, site);
  if (/^https?:/i.test(text)) return { type: 'opaque', origin: 'openai-chat', raw: part };
  const { data, media_type: type } = splitDataUrl(text) ?? { data: text, media_type: audioType(text) };
  const source = { data, ...(type !== undefined && { format: type.replace(/^audio\//, ''), media_type: type }) };
  return { type: 'audio', source, ...marks(part, { ...unknownFields(part, AUDIO_FIELDS), input_audio: text }) };
}

/** How the base64 of each type begins. */
const AUDIO_STARTS: readonly (readonly [RegExp, string])[] = [
  [/^UklGR/, 'audio/wav'],
  [/^(SUQz|\/\/[uvsr][A-Za-z0-9+/])/, 'audio/mp3'],
  [/^T2dnU/, 'audio/ogg'],
  [/^ZkxhQ/, 'audio/flac'],
];

const audioType = (data: string): string | undefined => AUDIO_STARTS.find(([start]) => start.test(data))?.[1];

function decodeSound(part: JsonObject, { at }: Site): AudioBlock {
  const audio = expectObject(part['input_audio'], `${at}.input_audio`);
  const format = expectText(audio['format'], `${at}.input_audio.format`);
  return {
    type: 'audio',
    source: { data: expectText(audio['data'], `${at}.input_audio.data`), format, media_type: `audio/${format}` },
    ...marks(part, unknownWithin(part, AUDIO_FIELDS, 'input_audio', SOUND_FIELDS)),
  };
}

const FILE_PART_FIELDS = new Set(['type', 'file']);
const FILE_FIELDS = new Set(['file_data', 'filename']);

/** Data is a data URL; raw base64 is taken too. An id stays among the kept fields: only who issued it can read it. */
function decodeFile(part: JsonObject, { at }: Site): FileBlock {
  const file = expectObject(part['file'], `${at}.file`);
  const data = optional(file['file_data'], `${at}.file.file_data`, expectText);
  const filename = optional(file['filename'], `${at}.file.filename`, expectText);
  const id = optional(file['file_id'], `${at}.file.file_id`, expectName);
  if (data === undefined && id === undefined) throw missing(`${at}.file.file_data`);
  const split = data === undefined ? undefined : splitDataUrl(data);
  return {
    type: 'file',
    source: {
      ...(data !== undefined && { file_data: split?.data ?? data }),
      ...(split && { media_type: split.media_type }),
      ...(id !== undefined && { file_id: id }),
      ...(filename !== undefined && { filename }),
    },
    ...marks(part, unknownWithin(part, FILE_PART_FIELDS, 'file', FILE_FIELDS)),
  };
}
