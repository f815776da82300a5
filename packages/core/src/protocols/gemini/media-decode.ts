import type { AudioBlock, FileBlock, ImageBlock } from '../../canonical/blocks.ts';
import { textOf } from '../shared/read.ts';
import { fieldsOf } from './kept.ts';
import { camelObject } from './wire.ts';

type MediaBlock = ImageBlock | AudioBlock | FileBlock;

/** Formats that Google hears; what calls itself something else is a file like any other. */
export const AUDIO_FORMATS: readonly string[] = ['wav', 'mp3', 'aac', 'ogg', 'flac', 'aiff', 'm4a', 'opus', 'pcm', 'webm', 'l16'];

/** What a part of a request says about its media, in canonical words. */
export function decodeMediaFields(block: MediaBlock): MediaBlock {
  if (block.type === 'image') return decodeDetail(block);
  if (block.type === 'file') return decodeVideo(block);
  const { data, media_type: type = '' } = block.source;
  const isHeard = data !== undefined && AUDIO_FORMATS.includes(wordOf(type));
  return isHeard ? block : asFile(block);
}

const wordOf = (type: string): string =>
  type
    .replace(/^audio\/(x-)?/, '')
    .replace(/;.*/s, '')
    .replace(/^mpeg$/, 'mp3');

/** Audio by its address, which only files have. */
function asFile({ source: { data, url, file_id: id, media_type: type }, extensions }: AudioBlock): FileBlock {
  return {
    type: 'file',
    source: {
      ...(data !== undefined && { file_data: data }),
      ...(url !== undefined && { file_url: url }),
      ...(id !== undefined && { file_id: id }),
      ...(type !== undefined && { media_type: type }),
    },
    ...(extensions && { extensions }),
  };
}

/** `videoMetadata` of the part: which stretch of a video is looked at, and how closely. */
function decodeVideo(block: FileBlock): FileBlock {
  const { startOffset, endOffset, fps } = camelObject(fieldsOf(block)['videoMetadata']);
  const video = {
    ...(typeof startOffset === 'string' && { start: startOffset }),
    ...(typeof endOffset === 'string' && { end: endOffset }),
    ...(typeof fps === 'number' && { fps }),
  };
  return Object.keys(video).length > 0 ? { ...block, source: { ...block.source, video } } : block;
}

const LEVELS: Readonly<Record<string, NonNullable<ImageBlock['source']['detail']>>> = {
  MEDIA_RESOLUTION_LOW: 'low',
  MEDIA_RESOLUTION_HIGH: 'high',
  MEDIA_RESOLUTION_ULTRA_HIGH: 'original',
};

/** `mediaResolution` of the part, as the detail of an image. */
function decodeDetail(block: ImageBlock): ImageBlock {
  const level = textOf(camelObject(fieldsOf(block)['mediaResolution'])['level']);
  const detail = Object.hasOwn(LEVELS, level) ? LEVELS[level] : undefined;
  return detail ? { ...block, source: { ...block.source, detail } } : block;
}

/** `auto` and whatever has no level of its own is left to the model. */
export const levelOf = (detail: ImageBlock['source']['detail']): string | undefined =>
  Object.keys(LEVELS).find((level) => LEVELS[level] === detail);
