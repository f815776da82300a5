/** Source positions of decoded nodes, so that notes about a request point into the document that the client sent. */

/**
 * The position of a node in its source, a JSON pointer. A symbol, so that copies of the node keep it and JSON never
 * shows it.
 */
export const SOURCE: unique symbol = Symbol('source');

/** Positions of fields that the source names differently, by their path within the node. */
const FIELDS: unique symbol = Symbol('fields');

interface Placed {
  [SOURCE]?: string;
  [FIELDS]?: Readonly<Record<string, string | undefined>>;
}

interface Tracing {
  /** Nodes record their position in the source. */
  trace?: boolean;
}

/**
 * Records the position of a node when the caller wants notes that point into the source. `fields`: pointers to fields
 * that the source names differently, `{ 'source/detail': '/messages/0/content/1/image_url/detail' }`. The node is
 * changed in place.
 */
export function withSource<T extends object>(
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

/** Records the position of one more field of a node that has its own position already. The node is changed in place. */
export function withFieldSource<T extends object>(field: string, pointer: string, node: T, { trace }: Tracing): T {
  if (!trace) return node;
  const placed: Placed = node;
  placed[FIELDS] = { ...placed[FIELDS], [field]: pointer };
  return node;
}

/**
 * Maps a path of a canonical value to a path of its source: the position of the deepest node with one, plus the rest.
 */
export function locate(path: string, root: object): string {
  const segments = path.split('/').slice(1);
  let node: unknown = root;
  let found = findField(root, segments) ?? path;
  for (let i = 0; i < segments.length; i++) {
    node = readChild(node, segments[i] ?? '');
    const source = readSource(node);
    if (source !== undefined) found = findField(node, segments.slice(i + 1)) ?? [source, ...segments.slice(i + 1)].join('/');
  }
  return found;
}

/** The position of a node in its source; undefined when none was recorded. */
export function readSource(node: unknown): string | undefined {
  if (typeof node !== 'object' || node === null || !(SOURCE in node)) return undefined;
  return typeof node[SOURCE] === 'string' ? node[SOURCE] : undefined;
}

/** Positions of the fields that the source names differently, by their path within the node. */
export function readFieldSources(node: object): Readonly<Record<string, string | undefined>> {
  return (FIELDS in node && (node[FIELDS] as Readonly<Record<string, string | undefined>>)) || {}; // written in this file only
}

/** The position of a field that the source names differently, plus the rest of the path. */
function findField(node: unknown, rest: readonly string[]): string | undefined {
  if (typeof node !== 'object' || node === null || !(FIELDS in node)) return undefined;
  for (let end = rest.length; end > 0; end--) {
    const pointer = readChild(node[FIELDS], rest.slice(0, end).join('/'));
    if (typeof pointer === 'string') return [pointer, ...rest.slice(end)].join('/');
  }
  return undefined;
}

function readChild(node: unknown, segment: string): unknown {
  if (typeof node !== 'object' || node === null) return undefined;
  return Object.getOwnPropertyDescriptor(node, segment)?.value;
}
