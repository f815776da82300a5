const DATA_URL = /^data:([^;,]*)[^,]*;base64,/i;

/** A data URL in its two halves; undefined for what is none. */
export function splitDataUrl(url: string): { media_type: string; data: string } | undefined {
  const found = DATA_URL.exec(url);
  return found ? { media_type: found[1] ?? '', data: url.slice(found[0].length) } : undefined;
}
