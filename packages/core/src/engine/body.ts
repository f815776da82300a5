import { decodeUtf8 } from '../sse/bytes.ts';

/** What the beginning of a body looks like, in words for an error message. */
export function describeBody(head: Uint8Array): string {
  if (head.length === 0) return 'an empty body';
  if (head[0] === 0x1f && head[1] === 0x8b) return 'gzip data (decompress it first)';
  const text = decodeUtf8(head).trimStart();
  if (text === '') return 'only white space';
  if (text.includes('\u0000') || isMostlyUnprintable(text)) return 'binary data';
  if (/^<(!doctype )?html/i.test(text)) return `an HTML page (${quote(text)})`;
  if (text.startsWith('<')) return `XML or HTML (${quote(text)})`;
  if (/^[{[]/.test(text)) return `other JSON (${quote(text)})`;
  return `text that is no event stream (${quote(text)})`;
}

/** Whether a body has the outward form of an event stream: a line with a field or a comment. */
export function looksLikeSse(head: Uint8Array): boolean {
  return /^\uFEFF?(data|event|id|retry)?:/m.test(decodeUtf8(head));
}

/** What an event stream holds that nobody understood: its first event, or the first field in it. */
export const describeEvents = (head: Uint8Array): string => /^event:.{1,60}|"\w{1,60}"/m.exec(decodeUtf8(head))?.[0] ?? '';

function isMostlyUnprintable(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  const strange = text.match(/[\x01-\x08\x0e-\x1f\ufffd]/g)?.length ?? 0;
  return strange * 10 > text.length;
}

const quote = (text: string): string => JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
