import { isObject } from '../accumulate/overlay.ts';
import type { Note } from '../canonical/notes.ts';
import type { CanonicalRequest } from '../canonical/request.ts';
import type { Codec, CodecContext, HeaderBag, WireRequest } from '../protocols/shared/codec.ts';
import { type ConvertOptions, createContext, profileOf, targetOf } from './context.ts';
import { dropUnknown } from './drop-unknown.ts';
import { NoteList } from './notes.ts';
import { SourceBody } from './source-body.ts';

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
