/** Describes the beginning of a body that is neither empty nor an event stream, for an error message. `head` decodes to `decoded`. */
export function describeBody(head: Uint8Array, decoded: string): string {
  if (head[0] === 0x1f && head[1] === 0x8b) return 'gzip data (decompress it first)';
  const text = decoded.trimStart();
  if (text === '') return 'only white space';
  if (text.includes('\u0000') || isMostlyUnprintable(text)) return 'binary data';
  if (/^<(!doctype )?html/i.test(text)) return `an HTML page (${quote(text)})`;
  if (text.startsWith('<')) return `XML or HTML (${quote(text)})`;
  if (/^[{[]/.test(text)) return `other JSON (${quote(text)})`;
  return `text that is no event stream (${quote(text)})`;
}

/** Whether a body has a line with an SSE field or a comment. */
export const looksLikeSse = (head: string): boolean => /^\uFEFF?(data|event|id|retry)?:/m.test(head);

/** The first event name, or the first JSON key, of an event stream that no protocol recognises. */
export const describeEvents = (head: string): string => /^event:.{1,60}|"\w{1,60}"/m.exec(head)?.[0] ?? '';

function isMostlyUnprintable(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  const strange = text.match(/[\x01-\x08\x0e-\x1f\ufffd]/g)?.length ?? 0;
  return strange * 10 > text.length;
}

const quote = (text: string): string => JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
