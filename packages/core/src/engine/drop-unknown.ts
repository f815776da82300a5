import { sameJson } from '../accumulate/overlay.ts';
import type { ContentBlock } from '../canonical/blocks.ts';
import type { Node } from '../canonical/protocol.ts';
import type { CanonicalRequest } from '../canonical/request.ts';
import { locate, placesOf, SOURCE } from '../canonical/source.ts';
import { approximate, type Codec, type CodecContext, drop } from '../protocols/shared/codec.ts';
import { escaped, type Found, type SourceBody } from './source-body.ts';

/**
 * Fields that only the source's protocol knows do not reach another one: each is told. Where the request says the same in canonical words,
 * whether that gets through is the encoder's business. What is not in the source is a decoder's own remark.
 */
export function dropUnknown(request: CanonicalRequest, source: SourceBody, from: Codec, context: CodecContext): void {
  const reader = new UnsaidReader(request, source, from);
  eachNode(request, (node, path) => {
    const kept = node.extensions?.[from.id];
    if (!kept) return;
    for (const [field, value] of Object.entries(kept)) {
      if (path !== '' && Object.hasOwn(node, field)) continue;
      for (const found of reader.fieldsOf(node, path, field, value)) tell(found, from, context);
    }
  });
}

interface Field {
  name: string;
  pointer: string;
  /** The canonical word that stands for a word of the source's own. */
  read?: { word: string; as: string };
}

function tell({ name, pointer, read }: Field, { id }: Codec, context: CodecContext): void {
  const loss = { path: pointer, feature: `unknown.${name}` };
  if (read) approximate(context, { ...loss, message: `only ${id} knows ${name} "${read.word}"; treated as "${read.as}"` });
  else drop(context, { ...loss, message: `only ${id} knows ${name}` });
}

/** Finds what of the kept fields nobody else says, and where it stands in the source. */
class UnsaidReader {
  readonly #request: CanonicalRequest;
  readonly #source: SourceBody;
  readonly #fields: NonNullable<Codec['fields']>;
  #known: Known | undefined;

  constructor(request: CanonicalRequest, source: SourceBody, { fields = {} }: Codec) {
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
    if (isPlain(kept) && (isSaid || isPartOf(kept, value) || isAround(pointer, others.keys(), whole, said)))
      return Object.entries(kept).flatMap(([inner, rest]) => {
        const found = this.#source.find(`${pointer}/${escaped(inner)}`);
        return found ? this.#unsaid({ name: inner, ...found }, rest, said) : [];
      });
    if (!isSaid) return [{ name, pointer }];
    const as = others.get(pointer)?.name === name ? others.get(pointer)?.value : undefined;
    const isOther = typeof kept === 'string' && typeof as === 'string' && as !== kept;
    return isOther ? [{ name, pointer, read: { word: kept, as } }] : [];
  }
}

/** What the canonical request says. Nearly every request is without a field that only its protocol knows: this is read when there is one. */
interface Known {
  /** Fields that say nothing more than their node. */
  idle: ReadonlySet<string>;
  /** Where the source says it, under which canonical name and with which value, */
  said: ReadonlyMap<string, { name: string; value: unknown }>;
  /** and where it says so with all that stands below. */
  whole: ReadonlySet<string>;
}

function knownOf(request: CanonicalRequest, source: SourceBody, fields: NonNullable<Codec['fields']>): Known {
  const paths = pathsOf(request);
  const whole = Object.entries(fields).flatMap(([field, path]) => (paths.has(path) ? [source.spell(`/${field}`)] : []));
  return {
    idle: new Set(Object.keys(fields).filter((field) => fields[field] === '')),
    said: new Map([...paths].map(([path, value]) => [source.spell(locate(path, request)), { name: nameIn(path), value }])),
    whole: new Set(whole),
  };
}

/** Something below the pointer is said. */
const isAround = (pointer: string, ...places: readonly Iterable<string>[]): boolean =>
  places.some((list) => [...list].some((inner) => inner.startsWith(`${pointer}/`)));

const nameIn = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

const NOTHING: ReadonlySet<string> = new Set();

/** The request's own fields, and those one below, with their values. */
function pathsOf(request: CanonicalRequest): Map<string, unknown> {
  const paths = new Map<string, unknown>();
  for (const [name, value] of Object.entries(request)) {
    paths.set(`/${name}`, value);
    if (isPlain(value)) for (const [inner, below] of Object.entries(value)) paths.set(`/${name}/${inner}`, below);
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

/** null, or a list or an object with nothing in it. */
const isEmpty = (value: unknown): boolean => value === null || (typeof value === 'object' && Object.keys(value).length === 0);

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
