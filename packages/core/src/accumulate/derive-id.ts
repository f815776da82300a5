/**
 * A short stable id for what the wire left unnamed: the same input gives the same id, so that prompt caches stay warm and outputs can be
 * compared. Two rounds of FNV-1a over UTF-16 units; uniqueness comes from the position in `parts`, not from the hash.
 */
export function deriveId(prefix: string, ...parts: (string | number)[]): string {
  const text = parts.join('\u0000');
  return prefix + hash(text, 0x811c9dc5) + hash(text, 0x9747b28c) + hash(text, 0x5bd1e995);
}

function hash(text: string, seed: number): string {
  let h = seed;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  return (h >>> 0).toString(16).padStart(8, '0');
}
