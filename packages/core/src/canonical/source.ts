/** Where a node stood in the source: a JSON pointer. A symbol, so that copies of the node keep it and no JSON ever shows it. */
export const SOURCE: unique symbol = Symbol('source');

interface Tracing {
  /** Nodes remember where they stood in the source. */
  trace?: boolean;
}

/** The node, remembering its place when the caller wants notes that point into the source. */
export function at<T extends object>(pointer: string, node: T, { trace }: Tracing): T {
  return trace ? { ...node, [SOURCE]: pointer } : node;
}

/** A path of a canonical request as a path of its source: the place of the deepest node that remembers one, and the rest. */
export function locate(path: string, request: object): string {
  const segments = path.split('/').slice(1);
  let node: unknown = request;
  let found = path;
  for (let i = 0; i < segments.length; i++) {
    node = childOf(node, segments[i] ?? '');
    const source = sourceOf(node);
    if (source !== undefined) found = [source, ...segments.slice(i + 1)].join('/');
  }
  return found;
}

function childOf(node: unknown, segment: string): unknown {
  if (typeof node !== 'object' || node === null) return undefined;
  return Object.getOwnPropertyDescriptor(node, segment)?.value;
}

function sourceOf(node: unknown): string | undefined {
  if (typeof node !== 'object' || node === null || !(SOURCE in node)) return undefined;
  return typeof node[SOURCE] === 'string' ? node[SOURCE] : undefined;
}
