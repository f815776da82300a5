import { isMap, isPair, isScalar, isSeq, type Node, type Pair } from 'yaml';
import type { Path } from './problem.ts';
import { showBraces } from './source.ts';

type Step = string | number;

/** The path of a node, from what `visit` tells of the way to it. A key has the path of the map it stands in. */
export function buildPath(at: number | 'key' | 'value' | null, node: unknown, ancestors: readonly unknown[]): Path {
  const path: Step[] = [];
  const way = [...ancestors, node];
  for (const [i, step] of way.entries()) {
    if (isPair(step)) path.push(keyText(step));
    else if (i + 1 < way.length && isSeq(step)) path.push(step.items.indexOf(way[i + 1]));
  }
  return at === 'key' ? path.slice(0, -1) : path;
}

const keyText = ({ key }: Pair<unknown, unknown>): string => showBraces(String(isScalar(key) ? key.value : key));

export interface Child {
  key: Node | null;
  value: Node | null;
}

export function findChild(node: unknown, step: Step): Child | undefined {
  if (isMap<Node, Node | null>(node)) return node.items.find((pair) => keyText(pair) === step);
  if (!isSeq<Node>(node) || typeof step !== 'number') return undefined;
  const value = node.items[step];
  return value && { key: null, value };
}

export type Range = readonly [start: number, end: number];

export const readRange = (node: Node | null | undefined): Range | undefined =>
  node?.range ? [node.range[0], node.range[1]] : undefined;
