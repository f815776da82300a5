/** Where a node stood in the source: a JSON pointer. A symbol, so that copies of the node keep it and no JSON ever shows it. */
export const SOURCE: unique symbol = Symbol('source');

/** Where fields of the node stood that the source calls otherwise, by their path within the node. */
const FIELDS: unique symbol = Symbol('fields');

interface Placed {
  [SOURCE]?: string;
  [FIELDS]?: Readonly<Record<string, string | undefined>>;
}

interface Tracing {
  /** Nodes remember where they stood in the source. */
  trace?: boolean;
}

/**
 * The node, remembering its place when the caller wants notes that point into the source. `fields`: pointers to what the source calls
 * otherwise, `{ 'source/detail': '/messages/0/content/1/image_url/detail' }`. The node is the caller's own, and new: it is not copied.
 */
export function at<T extends object>(
  pointer: string,
  node: T,
  { trace }: Tracing,
  fields?: Readonly<Record<string, string | undefined>>,
): T {
  if (!trace) return node;
  const placed: Placed = node;
  placed[SOURCE] = pointer;
  if (fields) placed[FIELDS] = fields;
  return node;
}

/** A path of a canonical value as a path of its source: the place of the deepest node that remembers one, and the rest. */
export function locate(path: string, root: object): string {
  const segments = path.split('/').slice(1);
  let node: unknown = root;
  let found = within(root, segments) ?? path;
  for (let i = 0; i < segments.length; i++) {
    node = childOf(node, segments[i] ?? '');
    const source = sourceOf(node);
    if (source !== undefined) found = within(node, segments.slice(i + 1)) ?? [source, ...segments.slice(i + 1)].join('/');
  }
  return found;
}

/** Where the source says what the node says under another name, by paths within the node. */
export function placesOf(node: object): Readonly<Record<string, string | undefined>> {
  return (FIELDS in node && (node[FIELDS] as Readonly<Record<string, string | undefined>>)) || {}; // written by `at` alone
}

function childOf(node: unknown, segment: string): unknown {
  if (typeof node !== 'object' || node === null) return undefined;
  return Object.getOwnPropertyDescriptor(node, segment)?.value;
}

/** Where the node stood in the source; undefined when it does not remember. */
export function sourceOf(node: unknown): string | undefined {
  if (typeof node !== 'object' || node === null || !(SOURCE in node)) return undefined;
  return typeof node[SOURCE] === 'string' ? node[SOURCE] : undefined;
}

/** The place of a field that the source calls otherwise, and what stands below it. */
function within(node: unknown, rest: readonly string[]): string | undefined {
  if (typeof node !== 'object' || node === null || !(FIELDS in node)) return undefined;
  for (let end = rest.length; end > 0; end--) {
    const pointer = childOf(node[FIELDS], rest.slice(0, end).join('/'));
    if (typeof pointer === 'string') return [pointer, ...rest.slice(end)].join('/');
  }
  return undefined;
}
