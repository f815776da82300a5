const SCHEME = 'data:';
const ENCODING = ';base64';

/** The media type and the base64 data of a data URL; undefined for any other text. A regular expression backtracks here: 60 kB took 20 s. */
export function splitDataUrl(url: string): { media_type: string; data: string } | undefined {
  if (url.slice(0, SCHEME.length).toLowerCase() !== SCHEME) return undefined;
  const comma = url.indexOf(',');
  const head = url.slice(SCHEME.length, Math.max(comma, SCHEME.length));
  if (head.slice(-ENCODING.length).toLowerCase() !== ENCODING) return undefined;
  return { media_type: head.slice(0, head.indexOf(';')), data: url.slice(comma + 1) };
}
