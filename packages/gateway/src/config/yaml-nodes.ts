/** Nodes of the YAML parser: their paths, and the braces of references. */

import { isPair, isScalar, isSeq, type Pair } from 'yaml';
import type { Path } from './problems.ts';

/**
 * YAML reads the brace of `{ api_key: ${KEY} }` as the start of a map. For the parser, the braces of references are
 * replaced by private-use characters; each is one character, so positions do not change.
 */
const HIDDEN_BRACES = ['\ue000', '\ue001'] as const;

/** For the parser. */
export const hideBraces = (text: string): string =>
  text.replace(/\$\{([^{}\n]*)\}/g, `$$${HIDDEN_BRACES[0]}$1${HIDDEN_BRACES[1]}`);

/** After the parser. */
export const showBraces = (text: string): string => text.replaceAll(HIDDEN_BRACES[0], '{').replaceAll(HIDDEN_BRACES[1], '}');

type Step = string | number;

/** The path of a node from what `visit` passes. A key has the path of the map that contains it. */
export function buildPath(at: number | 'key' | 'value' | null, node: unknown, ancestors: readonly unknown[]): Path {
  const path: Step[] = [];
  const nodes = [...ancestors, node];
  for (const [i, step] of nodes.entries()) {
    if (isPair(step)) path.push(readKeyText(step));
    else if (i + 1 < nodes.length && isSeq(step))
      path.push(typeof at === 'number' && i + 2 === nodes.length ? at : step.items.indexOf(nodes[i + 1]));
  }
  return at === 'key' ? path.slice(0, -1) : path;
}

/** The text of a key. */
export const readKeyText = ({ key }: Pair<unknown, unknown>): string => showBraces(String(isScalar(key) ? key.value : key));

/** A path as one text, for expressions. */
export const joinPath = (path: Path): string => path.map((step) => String(step).replaceAll('/', '%')).join('/');
