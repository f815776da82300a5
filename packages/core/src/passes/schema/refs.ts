import type { JsonSchema } from '../../canonical/protocol.ts';

/** What a local reference points to; undefined for those that lead nowhere or elsewhere. */
export function resolveRef(ref: string, root: JsonSchema): unknown {
  if (ref === '#') return root;
  if (!ref.startsWith('#/')) return undefined;
  let node: unknown = root;
  for (const segment of ref.slice(2).split('/')) {
    if (typeof node !== 'object' || node === null) return undefined;
    node = Object.getOwnPropertyDescriptor(node, unescaped(segment))?.value;
  }
  return node;
}

/** A pointer in a URL: `%24defs`, `~1` for a slash, `~0` for a tilde. */
function unescaped(segment: string): string {
  let text = segment;
  try {
    text = decodeURIComponent(segment);
  } catch {
    // Not escaped, then.
  }
  return text.replaceAll('~1', '/').replaceAll('~0', '~');
}

/** How a reference is called in a text: its last segment. */
export const nameOfRef = (ref: string): string => unescaped(ref.slice(ref.lastIndexOf('/') + 1)) || ref;
