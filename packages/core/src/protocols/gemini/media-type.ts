import type { AudioBlock, FileBlock, ImageBlock } from '../../canonical/blocks.ts';

/** How the base64 of a file begins. */
const BEGINNINGS: readonly (readonly [string, string])[] = [
  ['iVBOR', 'image/png'],
  ['/9j/', 'image/jpeg'],
  ['R0lGOD', 'image/gif'],
  ['UklGR', 'image/webp'],
  ['JVBERi', 'application/pdf'],
];

const BY_ENDING: Readonly<Record<string, string>> = {
  pdf: 'application/pdf',
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  txt: 'text/plain',
  md: 'text/markdown',
  csv: 'text/csv',
  json: 'application/json',
  html: 'text/html',
  mp3: 'audio/mp3',
  wav: 'audio/wav',
  mp4: 'video/mp4',
};

const DEFAULTS = { image: 'image/png', audio: 'audio/wav', file: 'application/pdf' } as const;

/** Every blob has a media type here: the one that was said, else what the bytes or the name show. */
export function mediaTypeOf(block: ImageBlock | AudioBlock | FileBlock, data: string | undefined): string {
  const { media_type: said } = block.source;
  if (said) return said;
  if (block.type === 'audio' && block.source.format) return `audio/${block.source.format}`;
  const begun = data === undefined ? undefined : BEGINNINGS.find(([start]) => data.startsWith(start))?.[1];
  return begun ?? byEnding(nameOf(block)) ?? DEFAULTS[block.type];
}

const nameOf = (block: ImageBlock | AudioBlock | FileBlock): string =>
  (block.type === 'file' ? (block.source.filename ?? block.source.file_url) : block.source.url) ?? '';

function byEnding(name: string): string | undefined {
  const [plain = ''] = name.split(/[?#]/, 1);
  const end = plain.slice(plain.lastIndexOf('.') + 1).toLowerCase();
  return Object.hasOwn(BY_ENDING, end) ? BY_ENDING[end] : undefined;
}
