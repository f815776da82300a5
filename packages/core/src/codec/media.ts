/** Media types of images, audio and files that come without one, or with one that says nothing. */

/** What is known about a medium. */
interface Medium {
  /** The declared type. */
  type?: string | undefined;
  /** A file name or URL. */
  name?: string | undefined;
  /** Base64. */
  data?: string | undefined;
}

/** The media type: the declared one, otherwise one derived from the data or the name; undefined when nothing shows it. */
export function findMediaType({ type, name = '', data = '' }: Medium): string | undefined {
  if (type !== undefined && !SAYS_NOTHING.test(type)) return type;
  return STARTS.find(([start]) => data.startsWith(start))?.[1] ?? findTypeByName(name);
}

/** No type, and the type of unknown bytes. */
const SAYS_NOTHING = /^\s*($|;|(application|binary)\/octet-stream\b)/i;

/** How the base64 of each type begins. */
const STARTS: readonly (readonly [string, string])[] = [
  ['iVBOR', 'image/png'],
  ['/9j/', 'image/jpeg'],
  ['R0lGOD', 'image/gif'],
  ['UklGR', 'image/webp'],
  ['JVBERi', 'application/pdf'],
];

const TYPES: Readonly<Record<string, string>> = {
  pdf: 'application/pdf',
  txt: 'text/plain',
  md: 'text/markdown',
  csv: 'text/csv',
  json: 'application/json',
  html: 'text/html',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  mp3: 'audio/mp3',
  wav: 'audio/wav',
  mp4: 'video/mp4',
};

function findTypeByName(name: string): string | undefined {
  const [plain = ''] = name.split(/[?#]/, 1);
  const end = plain.slice(plain.lastIndexOf('.') + 1).toLowerCase();
  return Object.hasOwn(TYPES, end) ? TYPES[end] : undefined;
}

/** A name for a file of this type. */
export const nameFile = (type: string): string => `document.${Object.keys(TYPES).find((end) => TYPES[end] === type) ?? 'bin'}`;
