import type { ContentBlock } from '../canonical/message.ts';
import type { Note } from '../canonical/notes.ts';
import type { Node } from '../canonical/protocol.ts';
import type { CanonicalRequest } from '../canonical/request.ts';
import { locate, placesOf, SOURCE } from '../canonical/source.ts';
import type { Codec, CodecContext, HeaderBag, WireRequest } from '../codec/protocol.ts';
import { approximate, drop } from '../codec/report.ts';
import { isObject, sameJson } from '../json/json.ts';
import { type ConvertOptions, createContext, NoteList, profileOf, targetOf } from './context.ts';

/** What stands at a pointer, and the pointer as the source spells it. */
export interface Found {
  pointer: string;
  value: unknown;
}

/** The body of a request, in which notes point at things. Input of strangers: names are looked up as own properties only. */
export class SourceBody {
  readonly #body: unknown;
  readonly #nameOf: Codec['nameOf'];
  readonly #spellings = new Map<object, ReadonlyMap<string, string>>();

  constructor(body: unknown, { nameOf }: Pick<Codec, 'nameOf'>) {
    this.#body = body;
    this.#nameOf = nameOf;
  }

  /** A field of the body itself. */
  field(name: string): Found | undefined {
    const body = this.#body;
    const spelled = typeof body === 'object' && body !== null ? this.#spelled(body, name) : undefined;
    if (spelled === undefined) return undefined;
    return { pointer: `/${escaped(spelled)}`, value: Object.getOwnPropertyDescriptor(body, spelled)?.value };
  }

  find(pointer: string): Found | undefined {
    const found: Found = { pointer: '', value: this.#body };
    for (const segment of pointer.split('/').slice(1)) {
      const { value } = found;
      if (typeof value !== 'object' || value === null) return undefined;
      const name = this.#spelled(value, unescaped(segment));
      if (name === undefined) return undefined;
      found.pointer += `/${escaped(name)}`;
      found.value = Object.getOwnPropertyDescriptor(value, name)?.value;
    }
    return found;
  }

  /** The pointer in the words of the source; as it is, when nothing stands there. */
  spell(pointer: string): string {
    return this.#nameOf ? (this.find(pointer)?.pointer ?? pointer) : pointer;
  }

  #spelled(node: object, name: string): string | undefined {
    if (Object.hasOwn(node, name)) return name;
    return this.#nameOf && this.#spellingsOf(node, this.#nameOf).get(name);
  }

  /** The first key for each name. Kept for each node: looking through all keys for each unknown one is quadratic. */
  #spellingsOf(node: object, nameOf: (field: string) => string): ReadonlyMap<string, string> {
    const known = this.#spellings.get(node);
    if (known) return known;
    const spellings = new Map<string, string>();
    for (const key of Object.keys(node)) {
      const name = nameOf(key);
      if (!spellings.has(name)) spellings.set(name, key);
    }
    this.#spellings.set(node, spellings);
    return spellings;
  }
}

/** A field as a segment of a JSON pointer. */
const escaped = (field: string): string => field.replaceAll('~', '~0').replaceAll('/', '~1');

const unescaped = (segment: string): string => segment.replaceAll('~1', '/').replaceAll('~0', '~');

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

/** What belongs to a request beside its body. */
interface RequestSource {
  /** The path it was sent to. Gemini names the model and the kind of answer there; other protocols need none. */
  path?: string | undefined;
  /** Its headers, in lower case. */
  headers?: HeaderBag | undefined;
}

export interface RequestOptions extends ConvertOptions, RequestSource {
  /** The name under which the upstream knows the model; by default the one of the request. */
  model?: string | undefined;
  /** Whether the upstream is asked for a stream; by default what the client asked for. */
  stream?: boolean | undefined;
}

export interface ConvertedRequest extends Pick<WireRequest, 'body' | 'path' | 'headers'> {
  /** What could not be carried, or was carried in other words. Paths are JSON pointers into the source. */
  notes: Note[];
  /** The question in the canonical form: the conversion of the answer wants it. */
  request: CanonicalRequest;
}

/**
 * A request of one protocol as a request of another.
 *
 * ```ts
 * const { body, path, notes, request } = convertRequest(json, { from: openaiChatCodec, to: anthropicMessagesCodec, model: 'claude-sonnet-5' });
 * ```
 *
 * Throws a CodecError when the request is wrong, when it asks for what the target does not have and nothing less would do, or when the policy
 * is strict about something that would be lost.
 */
export function convertRequest(body: unknown, options: RequestOptions): ConvertedRequest {
  const { from, to, policy = {}, provider } = options;
  const source = new SourceBody(body, from);
  const notes = new NoteList();
  const told = {
    note: (note: Note) => notes.add({ ...note, path: source.spell(note.path) }),
    locate: (path: string) => source.spell(path),
  };
  const decoding = decodeContext(options, told);
  const request = from.request.decode(wireOf(body, options), decoding);
  // What only the source's protocol knows is lost to another, and told.
  if (from.id !== to.id) dropUnknown(request, source, from, decoding);
  // Not by a spread: to V8, every spread that grows is an object of a new kind, and whoever reads it has to learn it.
  const asked: CanonicalRequest = Object.assign({}, request);
  if (options.model !== undefined) asked.model = options.model;
  if (options.stream !== undefined) asked.stream = options.stream;
  const context = createContext({
    note: told.note,
    locate: told.locate,
    profile: profileOf(to, options, asked.model),
    policy,
    now: options.now,
    newId: options.newId,
    target: targetOf(to, provider, { model: asked.model, stream: asked.stream ?? false }),
    source: from.id,
  });
  const wire = to.request.encode(asked, context);
  return { body: wire.body, path: wire.path, headers: wire.headers, notes: notes.list, request };
}

/** A request and where it comes from. */
export interface DecodeOptions extends RequestSource, Pick<ConvertOptions, 'from' | 'policy'> {
  /** The model, where neither the path nor the body names it. */
  model?: string | undefined;
  stream?: boolean | undefined;
}

/**
 * A request in the canonical form.
 *
 * ```ts
 * const request = decodeRequest(json, { from: anthropicMessagesCodec });
 * ```
 */
export function decodeRequest(body: unknown, options: DecodeOptions): CanonicalRequest {
  return options.from.request.decode(wireOf(body, options), decodeContext(options, { note: () => undefined }));
}

/** Nodes remember their places, so that notes can name them. */
const decodeContext = ({ from, policy }: DecodeOptions, { note, locate }: Pick<CodecContext, 'note' | 'locate'>): CodecContext =>
  createContext({ note, locate, profile: from.profileFor(''), policy, trace: true });

/** A body alone as a request: sent where a client of the protocol would send it, with the model where the protocol says it. */
function wireOf(body: unknown, { from, path, headers = {}, model, stream = false }: DecodeOptions): WireRequest {
  const wire = { method: 'POST', path: path ?? '', headers, body };
  const named = modelOf(body) ?? model;
  if (path !== undefined || named === undefined) return wire;
  const called = pathOf(from, named, stream);
  const isInPath = called !== pathOf(from, `${named}.`, stream);
  return { ...wire, path: called, body: isInPath || !isObject(body) ? body : { ...body, model: named } };
}

const modelOf = (body: unknown): string | undefined =>
  isObject(body) && typeof body['model'] === 'string' && body['model'] !== '' ? body['model'] : undefined;

const NOWHERE = 'http://localhost';

function pathOf(codec: Codec, model: string, stream: boolean): string {
  const provider = { id: '', protocol: codec.id, base_url: NOWHERE };
  return codec.buildUrl('CHAT', { provider, model, stream }).slice(NOWHERE.length);
}
