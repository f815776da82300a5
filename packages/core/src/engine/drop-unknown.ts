import { sameJson } from '../accumulate/overlay.ts';
import type { ContentBlock } from '../canonical/blocks.ts';
import type { Node } from '../canonical/protocol.ts';
import type { CanonicalRequest } from '../canonical/request.ts';
import { locate, placesOf, SOURCE } from '../canonical/source.ts';
import { type CodecContext, drop, type ProtocolCodec } from '../protocols/shared/codec.ts';
import { escaped, type Found, type SourceBody } from './source-body.ts';

/**
 * Fields that only the source's protocol knows do not reach another one: each is told. Where the request says the same in canonical words,
 * whether that gets through is the encoder's business. What is not in the source is a decoder's own remark.
 */
export function dropUnknown(request: CanonicalRequest, source: SourceBody, from: ProtocolCodec, context: CodecContext): void {
  const reader = new UnsaidReader(request, source, from);
  eachNode(request, (node, path) => {
    const kept = node.extensions?.[from.id];
    if (!kept) return;
    for (const [field, value] of Object.entries(kept)) {
      if (path !== '' && Object.hasOwn(node, field)) continue;
      for (const { name, pointer } of reader.fieldsOf(node, path, field, value))
        drop(context, { path: pointer, feature: `unknown.${name}`, message: `only ${from.id} knows ${name}` });
    }
  });
}

interface Field {
  name: string;
  pointer: string;
}

/** Finds what of the kept fields nobody else says, and where it stands in the source. */
class UnsaidReader {
  readonly #request: CanonicalRequest;
  readonly #source: SourceBody;
  readonly #fields: NonNullable<ProtocolCodec['fields']>;
  #known: Known | undefined;

  constructor(request: CanonicalRequest, source: SourceBody, { fields = {} }: ProtocolCodec) {
    this.#request = request;
    this.#source = source;
    this.#fields = fields;
  }

  /** A field stands on its node, or on something around it, of which the node was the first. */
  fieldsOf(node: object, path: string, field: string, value: unknown): Field[] {
    const own = path === '' ? this.#source.field(field) : this.#source.find(`${path}/${escaped(field)}`);
    if (own) return this.#unsaid({ name: field, ...own }, value, saidBy(node));
    const kept = isPlain(value) ? value : { [field]: value };
    for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) {
      const around = path.slice(0, end);
      const found = Object.entries(kept).flatMap(([name, inner]): Field[] => {
        const stood = this.#source.find(`${around}/${escaped(name)}`);
        return stood && sameJson(stood.value, inner) ? this.#unsaid({ name, ...stood }, inner, NOTHING) : [];
      });
      if (found.length > 0) return found;
    }
    return [];
  }

  /** An object of which a part was read is looked into. `said`: pointers that the node itself answers for. */
  #unsaid({ name, pointer, value }: Field & Found, kept: unknown, said: ReadonlySet<string>): Field[] {
    this.#known ??= knownOf(this.#request, this.#source, this.#fields);
    const { idle, whole, said: others } = this.#known;
    if (isEmpty(value) || idle.has(name) || whole.has(pointer)) return [];
    const isSaid = others.has(pointer) || said.has(pointer);
    if (isPlain(kept) && (isSaid || isPartOf(kept, value) || isAround(pointer, others, whole, said)))
      return Object.entries(kept).flatMap(([inner, rest]) => {
        const found = this.#source.find(`${pointer}/${escaped(inner)}`);
        return found ? this.#unsaid({ name: inner, ...found }, rest, said) : [];
      });
    return isSaid ? [] : [{ name, pointer }];
  }
}

/** What the canonical request says. Nearly every request is without a field that only its protocol knows: this is read when there is one. */
interface Known {
  /** Fields that say nothing more than their node. */
  idle: ReadonlySet<string>;
  /** Where the source says it, */
  said: ReadonlySet<string>;
  /** and where it says so with all that stands below. */
  whole: ReadonlySet<string>;
}

function knownOf(request: CanonicalRequest, source: SourceBody, fields: NonNullable<ProtocolCodec['fields']>): Known {
  const paths = pathsOf(request);
  const whole = Object.entries(fields).flatMap(([field, path]) => (paths.has(path) ? [source.spell(`/${field}`)] : []));
  return {
    idle: new Set(Object.keys(fields).filter((field) => fields[field] === '')),
    said: new Set([...paths].map((path) => source.spell(locate(path, request)))),
    whole: new Set(whole),
  };
}

/** Something below the pointer is said. */
const isAround = (pointer: string, ...sets: readonly ReadonlySet<string>[]): boolean =>
  sets.some((set) => [...set].some((inner) => inner.startsWith(`${pointer}/`)));

const NOTHING: ReadonlySet<string> = new Set();

/** The request's own fields, and those one below. */
function pathsOf(request: CanonicalRequest): Set<string> {
  const paths = new Set<string>();
  for (const [name, value] of Object.entries(request)) {
    paths.add(`/${name}`);
    if (isPlain(value)) for (const inner of Object.keys(value)) paths.add(`/${name}/${inner}`);
  }
  return paths;
}

/** Where the source says what a node says under another name. */
const saidBy = (node: object): ReadonlySet<string> =>
  new Set(
    Object.entries(placesOf(node)).flatMap(([path, pointer]) => (pointer && valueIn(node, path) !== undefined ? [pointer] : [])),
  );

const valueIn = (node: unknown, path: string): unknown =>
  path.split('/').reduce<unknown>((inner, name) => (isPlain(inner) ? Reflect.get(inner, name) : undefined), node);

/** The rest was read. */
const isPartOf = (kept: object, whole: unknown): boolean =>
  isPlain(whole) && Object.keys(whole).some((name) => !Object.hasOwn(kept, name));

/** A list or an object with nothing in it. */
const isEmpty = (value: unknown): boolean => typeof value === 'object' && value !== null && Object.keys(value).length === 0;

const isPlain = (value: unknown): value is object => typeof value === 'object' && value !== null && !Array.isArray(value);

type Placed = Node & { [SOURCE]?: string };
type Visit<T> = (node: T, path: string) => void;

/** Every node that may carry fields of its own, with its place in the source. */
function eachNode(request: CanonicalRequest, visit: Visit<Node>): void {
  visit(request, '');
  if (request.system) eachPlaced(request.system, '/system', visit);
  if (request.tools) eachPlaced(request.tools, '/tools', visit);
  eachPlaced(request.messages, '/messages', (message, path) => {
    visit(message, path);
    eachBlock(message.content, `${path}/content`, visit);
  });
}

function eachBlock(blocks: readonly ContentBlock[], list: string, visit: Visit<Node>): void {
  eachPlaced(blocks, list, (block, path) => {
    visit(block, path);
    if (block.type === 'tool_result' && typeof block.content !== 'string') eachBlock(block.content, `${path}/content`, visit);
    if (block.type === 'file' && block.source.content) eachBlock(block.source.content, `${path}/source/content`, visit);
  });
}

function eachPlaced<T extends Placed>(nodes: readonly T[], list: string, visit: Visit<T>): void {
  for (const [i, node] of nodes.entries()) visit(node, node[SOURCE] ?? `${list}/${i}`);
}
