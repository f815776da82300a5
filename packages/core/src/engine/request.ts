/**
 * Converts requests. Fields that only the source protocol has are noted with their JSON pointers in the source body.
 */

import type { ContentBlock } from '../canonical/message.ts';
import type { Note } from '../canonical/notes.ts';
import type { Node, ProtocolId } from '../canonical/protocol.ts';
import type { CanonicalMessage, CanonicalRequest } from '../canonical/request.ts';
import { locate, readFieldSources, SOURCE } from '../canonical/source.ts';
import { extensionPath } from '../codec/extensions.ts';
import type { Codec, CodecContext, HeaderBag, WireRequest } from '../codec/protocol.ts';
import { explainNoContent, noteApproximated, noteDropped } from '../codec/report.ts';
import { isObject } from '../json/json.ts';
import { closeDocument, openDocument } from '../json/literals.ts';
import { buildTarget, type ConvertOptions, createContext, findProfile, NoteList } from './context.ts';

/**
 * Converts a request of one protocol to another.
 *
 * ```ts
 * const { body, path, notes, request } = convertRequest(json, { from: openaiChatCodec, to: anthropicMessagesCodec });
 * ```
 *
 * Throws a CodecError when the request is invalid, when it requires a feature that the target does not have and that
 * cannot be approximated, or when the policy is strict about a loss.
 */
export function convertRequest(body: unknown, options: RequestOptions): ConvertedRequest {
  const { from, to, policy = {}, provider } = options;
  const source = new SourceBody(body, from);
  const notes = new NoteList();
  const reporting = {
    note: (note: Note) => notes.add({ ...note, path: source.spell(note.path) }),
    locate: (path: string) => source.spell(path),
  };
  const decoding = decodeContext(options, reporting);
  const wire = buildWire(body, options);
  if (from.id !== to.id) from.leave?.(wire, reporting);
  const request = decodeText(wire, options, decoding);
  if (from.id !== to.id) reportProtocolOnlyFields(request, source, from, decoding);
  // Not a spread: one that adds fields gives the object a new shape, which makes all its readers slower.
  const sent: CanonicalRequest = Object.assign({}, request);
  if (options.model !== undefined) sent.model = options.model;
  if (options.stream !== undefined) sent.stream = options.stream;
  if (options.prefill) sent.messages = [...request.messages, options.prefill];
  const context = createContext({
    note: reporting.note,
    locate: reporting.locate,
    profile: findProfile(to, options, sent.model),
    policy,
    now: options.now,
    newId: options.newId,
    target: buildTarget(to, provider, { model: sent.model, stream: sent.stream ?? false }),
    from,
  });
  const { body: converted, path, headers } = encode(to, sent, context, notes);
  return { body: converted, path, headers, notes: notes.list, request };
}

function encode(to: Codec, request: CanonicalRequest, context: CodecContext, notes: NoteList): WireRequest {
  try {
    return to.request.encode(request, context);
  } catch (error) {
    throw explainNoContent(error, notes.list);
  }
}

/** Options of a request conversion. */
export interface RequestOptions extends ConvertOptions, RequestSource {
  /** The model's name at the upstream; by default the one in the request. */
  model?: string | undefined;
  /** Whether to request a stream from the upstream; by default whatever the client requested. */
  stream?: boolean | undefined;
  /** A trailing assistant message, which the upstream continues. */
  prefill?: CanonicalMessage | undefined;
}

/** The parts of a request besides its body. */
interface RequestSource {
  /** The request path. Gemini has the model and the stream flag there; other protocols do not need it. */
  path?: string | undefined;
  /** The request headers, in lower case. */
  headers?: HeaderBag | undefined;
}

/** A request in the target's protocol. */
export interface ConvertedRequest extends Pick<WireRequest, 'body' | 'path' | 'headers'> {
  /** What was dropped or approximated. Paths are JSON pointers into the source. */
  notes: Note[];
  /** The canonical request, which the conversion of the response takes. */
  request: CanonicalRequest;
}

/**
 * Decodes a request to the canonical form.
 *
 * ```ts
 * const request = decodeRequest(json, { from: anthropicMessagesCodec });
 * ```
 */
export function decodeRequest(body: unknown, options: DecodeOptions): CanonicalRequest {
  return decodeText(buildWire(body, options), options, decodeContext(options, { note: () => undefined }));
}

function decodeText(wire: WireRequest, options: DecodeOptions, context: CodecContext): CanonicalRequest {
  openDocument(wire.body, options.text ?? '');
  try {
    return options.from.request.decode(wire, context);
  } finally {
    closeDocument();
  }
}

/** Options for decoding a request. */
export interface DecodeOptions extends RequestSource, Pick<ConvertOptions, 'from' | 'policy' | 'sealing' | 'text'> {
  /** The model, where neither the path nor the body names it. */
  model?: string | undefined;
  stream?: boolean | undefined;
}

/** `trace`: nodes keep their pointers, so that notes can name them. */
const decodeContext = (
  { from, policy, sealing }: DecodeOptions,
  { note, locate }: Pick<CodecContext, 'note' | 'locate'>,
): CodecContext => createContext({ note, locate, profile: from.profileFor(''), policy, sealing, trace: true });

/**
 * Builds a request from a body alone: with the path that a client of the protocol would use, and the model where the
 * protocol expects it.
 */
function buildWire(body: unknown, { from, path, headers = {}, model, stream = false }: DecodeOptions): WireRequest {
  const wire = { method: 'POST', path: path ?? '', headers, body };
  const named = readModel(body) ?? model;
  if (path !== undefined || named === undefined) return wire;
  const own = buildPath(from, named, stream);
  const isInPath = own !== buildPath(from, `${named}.`, stream);
  return { ...wire, path: own, body: isInPath || !isObject(body) ? body : { ...body, model: named } };
}

const readModel = (body: unknown): string | undefined =>
  isObject(body) && typeof body['model'] === 'string' && body['model'] !== '' ? body['model'] : undefined;

function buildPath(codec: Codec, model: string, stream: boolean): string {
  const provider = { id: '', protocol: codec.id, base_url: PLACEHOLDER_URL };
  return codec.buildUrl('CHAT', { provider, model, stream }).slice(PLACEHOLDER_URL.length);
}

const PLACEHOLDER_URL = 'http://localhost';

// ---- fields that only the source's protocol has

/**
 * Notes the fields that only the source's protocol has, since they do not reach another one. A field that the canonical
 * request contains is left to the encoder. A field that is not in the source was added by a decoder.
 */
export function reportProtocolOnlyFields(
  request: CanonicalRequest,
  source: SourceBody,
  from: Codec,
  context: CodecContext,
): void {
  const finder = new UncoveredFinder(request, source, from);
  eachNode(request, (node, path) => {
    const extensions = node.extensions?.[from.id];
    if (!extensions) return;
    for (const [field, value] of Object.entries(extensions)) {
      if (path !== '' && Object.hasOwn(node, field)) continue;
      for (const found of finder.list(node, path, field, value)) noteField(found, from, context);
    }
  });
}

interface Field {
  name: string;
  pointer: string;
  /** Set when the source's value was read as another canonical value. */
  read?: { word: string; as: string };
}

function noteField({ name, pointer, read }: Field, { id }: Codec, context: CodecContext): void {
  const loss = { path: pointer, feature: `unknown.${name}` };
  if (read)
    noteApproximated(context, { ...loss, message: `${name} "${read.word}" is specific to ${id}; treated as "${read.as}"` });
  else noteDropped(context, { ...loss, message: `field "${name}" is specific to ${id}; dropped` });
}

/** Finds the kept fields that no canonical field covers, and their pointers in the source. */
class UncoveredFinder {
  readonly #request: CanonicalRequest;
  readonly #source: SourceBody;
  readonly #protocol: ProtocolId;
  readonly #mirrored: NonNullable<Codec['mirroredFields']>;
  #known: Known | undefined;

  constructor(request: CanonicalRequest, source: SourceBody, { id, mirroredFields = {} }: Codec) {
    this.#request = request;
    this.#source = source;
    this.#protocol = id;
    this.#mirrored = mirroredFields;
  }

  /** A field is on its node, unless the decoder recorded another position. A field that a decoder added is nowhere. */
  list(node: object, path: string, field: string, value: unknown): Field[] {
    const recorded = readFieldSources(node)[extensionPath(this.#protocol, field)];
    const found = path === '' ? this.#source.field(field) : this.#source.find(recorded ?? `${path}/${escapeSegment(field)}`);
    return found ? this.#uncovered({ name: field, ...found }, value, listCovered(node)) : [];
  }

  /** Looks into an object of which a part was read. `covered`: pointers that the node itself covers. */
  #uncovered({ name, pointer, value }: Field & Found, kept: unknown, covered: ReadonlySet<string>): Field[] {
    this.#known ??= findKnown(this.#request, this.#source, this.#mirrored);
    const { redundant, whole, fields } = this.#known;
    if (isEmpty(value) || redundant.has(name) || whole.has(pointer)) return [];
    const isCovered = fields.has(pointer) || covered.has(pointer);
    if (isPlain(kept) && (isCovered || isPartial(kept, value) || isAround(pointer, fields.keys(), whole, covered)))
      return Object.entries(kept).flatMap(([inner, rest]) => {
        const found = this.#source.find(`${pointer}/${escapeSegment(inner)}`);
        return found ? this.#uncovered({ name: inner, ...found }, rest, covered) : [];
      });
    if (!isCovered) return [{ name, pointer }];
    const as = fields.get(pointer)?.name === name ? fields.get(pointer)?.value : undefined;
    const isOther = typeof kept === 'string' && typeof as === 'string' && as !== kept;
    return isOther ? [{ name, pointer, read: { word: kept, as } }] : [];
  }
}

/** What the canonical request covers. Built on demand: few requests have fields that only their protocol knows. */
interface Known {
  /** Fields that add nothing to their node. */
  redundant: ReadonlySet<string>;
  /** Canonical fields by their pointer in the source. */
  fields: ReadonlyMap<string, { name: string; value: unknown }>;
  /** Pointers that are covered with everything below them. */
  whole: ReadonlySet<string>;
}

function findKnown(request: CanonicalRequest, source: SourceBody, fields: NonNullable<Codec['mirroredFields']>): Known {
  const paths = listPaths(request);
  const whole = Object.entries(fields).flatMap(([field, path]) => (paths.has(path) ? [source.spell(`/${field}`)] : []));
  return {
    redundant: new Set(Object.keys(fields).filter((field) => fields[field] === '')),
    fields: new Map([...paths].map(([path, value]) => [source.spell(locate(path, request)), { name: lastSegment(path), value }])),
    whole: new Set(whole),
  };
}

/** Whether something below the pointer is covered. */
const isAround = (pointer: string, ...places: readonly Iterable<string>[]): boolean =>
  places.some((list) => [...list].some((inner) => inner.startsWith(`${pointer}/`)));

const lastSegment = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

/** The request's own fields and those one level below, with their values. */
function listPaths(request: CanonicalRequest): Map<string, unknown> {
  const paths = new Map<string, unknown>();
  for (const [name, value] of Object.entries(request)) {
    paths.set(`/${name}`, value);
    if (isPlain(value)) for (const [inner, below] of Object.entries(value)) paths.set(`/${name}/${inner}`, below);
  }
  return paths;
}

/** Pointers into the source of canonical fields that the node has under another name. */
const listCovered = (node: object): ReadonlySet<string> =>
  new Set(
    Object.entries(readFieldSources(node)).flatMap(([path, pointer]) =>
      pointer && !path.startsWith('extensions/') && readPath(node, path) !== undefined ? [pointer] : [],
    ),
  );

const readPath = (node: unknown, path: string): unknown =>
  path.split('/').reduce<unknown>((inner, name) => (isPlain(inner) ? Reflect.get(inner, name) : undefined), node);

/** Whether some fields of the whole object were read, so that `kept` is only the rest. */
const isPartial = (kept: object, whole: unknown): boolean =>
  isPlain(whole) && Object.keys(whole).some((name) => !Object.hasOwn(kept, name));

/** null, or an empty list or object. */
const isEmpty = (value: unknown): boolean => value === null || (typeof value === 'object' && Object.keys(value).length === 0);

const isPlain = (value: unknown): value is object => typeof value === 'object' && value !== null && !Array.isArray(value);

type Placed = Node & { [SOURCE]?: string };

type Visit<T> = (node: T, path: string) => void;

/** Visits every node that can have protocol-specific fields, with its pointer in the source. */
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

// ---- pointers into the source

/** The value at a JSON pointer, and the pointer as the source spells it. */
interface Found {
  pointer: string;
  value: unknown;
}

/**
 * The body of a request, into which notes point. It is untrusted input, so names are looked up as own properties only.
 */
export class SourceBody {
  readonly #body: unknown;
  readonly #standardName: Codec['standardName'];
  readonly #spellings = new Map<object, ReadonlyMap<string, string>>();

  constructor(body: unknown, { standardName }: Pick<Codec, 'standardName'>) {
    this.#body = body;
    this.#standardName = standardName;
  }

  /** Finds a field of the body itself. */
  field(name: string): Found | undefined {
    const body = this.#body;
    const spelled = typeof body === 'object' && body !== null ? this.#findSpelling(body, name) : undefined;
    if (spelled === undefined) return undefined;
    return { pointer: `/${escapeSegment(spelled)}`, value: Object.getOwnPropertyDescriptor(body, spelled)?.value };
  }

  /** Finds the value at a pointer; undefined when there is none. */
  find(pointer: string): Found | undefined {
    const found: Found = { pointer: '', value: this.#body };
    for (const segment of pointer.split('/').slice(1)) {
      const { value } = found;
      if (typeof value !== 'object' || value === null) return undefined;
      const name = this.#findSpelling(value, unescapeSegment(segment));
      if (name === undefined) return undefined;
      found.pointer += `/${escapeSegment(name)}`;
      found.value = Object.getOwnPropertyDescriptor(value, name)?.value;
    }
    return found;
  }

  /** The pointer with the source's spelling of each name; unchanged when there is no such value. */
  spell(pointer: string): string {
    return this.#standardName ? (this.find(pointer)?.pointer ?? pointer) : pointer;
  }

  #findSpelling(node: object, name: string): string | undefined {
    if (Object.hasOwn(node, name)) return name;
    return this.#standardName && this.#listSpellings(node, this.#standardName).get(name);
  }

  /** The first key for each name. Cached per node: searching all keys for every unknown one is quadratic. */
  #listSpellings(node: object, standardName: (field: string) => string): ReadonlyMap<string, string> {
    const known = this.#spellings.get(node);
    if (known) return known;
    const spellings = new Map<string, string>();
    for (const key of Object.keys(node)) {
      const name = standardName(key);
      if (!spellings.has(name)) spellings.set(name, key);
    }
    this.#spellings.set(node, spellings);
    return spellings;
  }
}

/** A field name as a segment of a JSON pointer. */
const escapeSegment = (field: string): string => field.replaceAll('~', '~0').replaceAll('/', '~1');

const unescapeSegment = (segment: string): string => segment.replaceAll('~1', '/').replaceAll('~0', '~');
