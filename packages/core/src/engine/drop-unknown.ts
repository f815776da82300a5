import type { ContentBlock } from '../canonical/blocks.ts';
import type { Node } from '../canonical/protocol.ts';
import type { CanonicalRequest } from '../canonical/request.ts';
import { locate, SOURCE } from '../canonical/source.ts';
import { type CodecContext, drop, type ProtocolCodec } from '../protocols/shared/codec.ts';
import { pointerOf } from './notes.ts';

/**
 * Fields that only the source's protocol knows do not reach another one: each is told. Where the request says the same in canonical words,
 * whether that gets through is the encoder's business. `body` is the source: what is not there is a decoder's own remark.
 */
export function dropUnknown(request: CanonicalRequest, body: unknown, from: ProtocolCodec, context: CodecContext): void {
  const said = saidBy(request, from);
  for (const { node, path } of nodesOf(request)) {
    for (const [field, value] of Object.entries(node.extensions?.[from.id] ?? {})) {
      if (path !== '' && Object.hasOwn(node, field)) continue;
      for (const { name, pointer } of fieldsOf(body, path, field, value, said)) {
        if (from.fields?.[name] === '' || name === 'index') continue;
        drop(context, { path: pointer, feature: `unknown.${name}`, message: `only ${from.id} knows ${name}` });
      }
    }
  }
}

interface Field {
  name: string;
  pointer: string;
}

/** What of a kept field nobody else says, and where it stands in the source. */
function fieldsOf(body: unknown, path: string, field: string, value: unknown, said: Said): Field[] {
  const pointer = `${path}/${escaped(field)}`;
  if (hasValue(body, pointer)) return unsaid(body, { name: field, pointer }, value, said);
  // Fields of an object around the node are kept with it, under the name of that object.
  return isPlain(value) ? unsaidWithin(body, path.slice(0, path.lastIndexOf('/')), value, said) : [];
}

/** An object of which a part is said elsewhere is looked into. */
function unsaid(body: unknown, field: Field, kept: unknown, said: Said): Field[] {
  const { pointer } = field;
  if (said.isWhole(pointer)) return [];
  if (!said.has(pointer) && !said.isAround(pointer)) return [field];
  return isPlain(kept) ? unsaidWithin(body, pointer, kept, said) : [];
}

const unsaidWithin = (body: unknown, around: string, kept: object, said: Said): Field[] =>
  Object.entries(kept).flatMap(([name, value]) => {
    const pointer = `${around}/${escaped(name)}`;
    return hasValue(body, pointer) ? unsaid(body, { name, pointer }, value, said) : [];
  });

function hasValue(body: unknown, pointer: string): boolean {
  let node = body;
  for (const segment of pointer.split('/').slice(1).map(unescaped)) {
    if (typeof node !== 'object' || node === null || !Object.hasOwn(node, segment)) return false;
    node = Object.getOwnPropertyDescriptor(node, segment)?.value;
  }
  return true;
}

/** A field as a segment of a JSON pointer. */
const escaped = (field: string): string => field.replaceAll('~', '~0').replaceAll('/', '~1');
const unescaped = (segment: string): string => segment.replaceAll('~1', '/').replaceAll('~0', '~');

/** Where the source says what the canonical request says. */
interface Said {
  has(pointer: string): boolean;
  /** With all that stands below it. */
  isWhole(pointer: string): boolean;
  /** Something below the pointer is said. */
  isAround(pointer: string): boolean;
}

function saidBy(request: CanonicalRequest, { pointers, fields = {} }: ProtocolCodec): Said {
  const paths = new Set<string>();
  for (const [name, value] of Object.entries(request)) {
    paths.add(`/${name}`);
    if (isPlain(value)) for (const inner of Object.keys(value)) paths.add(`/${name}/${inner}`);
  }
  const said = new Set([...paths].map((path) => pointerOf(locate(path, request), pointers)));
  const whole = new Set(Object.entries(fields).flatMap(([field, path]) => (paths.has(path) ? [`/${field}`] : [])));
  const all = [...said, ...whole];
  return {
    has: (pointer) => said.has(pointer),
    isWhole: (pointer) => whole.has(pointer),
    isAround: (pointer) => all.some((inner) => inner.startsWith(`${pointer}/`)),
  };
}

const isPlain = (value: unknown): value is object => typeof value === 'object' && value !== null && !Array.isArray(value);

interface Placed {
  node: Node & { [SOURCE]?: string };
  path: string;
}

/** Every node that may carry fields of its own, with its place in the source. */
function* nodesOf(request: CanonicalRequest): Iterable<Placed> {
  yield { node: request, path: '' };
  yield* placed(request.system ?? [], '/system');
  yield* placed(request.tools ?? [], '/tools');
  for (const { node, path } of placed(request.messages, '/messages')) {
    yield { node, path };
    yield* blocksOf(node.content, `${path}/content`);
  }
}

function* blocksOf(blocks: readonly ContentBlock[], list: string): Iterable<Placed> {
  for (const { node, path } of placed(blocks, list)) {
    yield { node, path };
    if (node.type === 'tool_result' && typeof node.content !== 'string') yield* blocksOf(node.content, `${path}/content`);
    if (node.type === 'file' && node.source.content) yield* blocksOf(node.source.content, `${path}/source/content`);
  }
}

function* placed<T extends Node & { [SOURCE]?: string }>(nodes: readonly T[], list: string): Iterable<{ node: T; path: string }> {
  for (const [i, node] of nodes.entries()) yield { node, path: node[SOURCE] ?? `${list}/${i}` };
}
