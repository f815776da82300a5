import type { CanonicalStreamEvent } from '../canonical/events.ts';
import { type CanonicalResponse, type CanonicalUsage, type ContentBlock, isClientCall } from '../canonical/message.ts';
import type { CanonicalError, Note } from '../canonical/notes.ts';
import type { Node } from '../canonical/protocol.ts';
import { eachProtocolOnlyField } from '../codec/extensions.ts';
import type { Codec, CodecContext, RepairCodec, WireReply } from '../codec/protocol.ts';
import { closeDocument, openDocument } from '../json/literals.ts';
import {
  buildTarget,
  type ConvertOptions,
  createContext,
  createIds,
  createNoteHandler,
  expectShallowCalls,
  findProfile,
  NoteList,
  type ResponseOptions,
} from './context.ts';
import { findRenamedTools, restoreResponse } from './restore.ts';

/**
 * Converts a whole response of one protocol to another.
 *
 * ```ts
 * const { body, notes } = convertResponse(json, { from: anthropicMessagesCodec, to: openaiChatCodec, request });
 * ```
 *
 * Throws a CodecError when the body is an error, or when the policy is strict about a loss.
 */
export const convertResponse = (body: unknown, options: ResponseOptions): ConvertedResponse =>
  rewriteResponse(body, options, createAdapter(options));

/** The same without an adapter: repairs a whole response in its own protocol. */
export function rewriteResponse(
  body: unknown,
  options: ResponseOptions<RepairCodec>,
  adapt: Adapt = keepResponse,
): ConvertedResponse {
  const notes = new NoteList();
  const response = readResponse(body, options, notes, adapt);
  const context = createResponseContext(options, notes, { seed: () => response.id });
  return { body: options.to.response.encode(response, context), notes: notes.list, response };
}

/** A whole response in the client's protocol. */
export interface ConvertedResponse {
  body: unknown;
  notes: Note[];
  /** The canonical response that was encoded. */
  response: CanonicalResponse;
}

/** Decodes a response to the canonical form, with the client's names of its tools. */
export const decodeResponse = (body: unknown, options: ResponseOptions, notes: NoteList): CanonicalResponse =>
  readResponse(body, options, notes, createAdapter(options));

/** Decodes a response to the canonical form. */
export function readResponse(
  body: unknown,
  options: ResponseOptions<RepairCodec>,
  notes: NoteList,
  adapt: Adapt,
): CanonicalResponse {
  const { from, request, model } = options;
  const profile = findProfile(from, options, request?.model);
  openDocument(body, options.text ?? '');
  let decoded: CanonicalResponse;
  try {
    decoded = from.response.decode(body, createContext({ note: notes.add, profile }));
  } finally {
    closeDocument();
  }
  expectShallowCalls(decoded);
  const response = adapt(decoded, notes);
  return model === undefined ? response : { ...response, model };
}

/**
 * What a conversion between two protocols does with a decoded response. An argument, so that a bundle that only repairs
 * does not contain it.
 */
export type Adapt = (response: CanonicalResponse, notes: NoteList) => CanonicalResponse;

/** Changes nothing: the response stays in its own protocol, and has the client's names of tools. */
export const keepResponse: Adapt = (response) => response;

/** Creates the adapter that notes what the client's protocol does not have, and restores the client's tools. */
export function createAdapter(options: ResponseOptions): Adapt {
  const { from, to } = options;
  return (response, notes) => {
    if (to.id !== from.id) new ProtocolOnlyFieldReporter({ from, to }, notes.add).response(response);
    return restoreResponse(response, findCalls(options), notes.add);
  };
}

/** The tools that the upstream got under other names. */
export function findCalls(options: ResponseOptions): ReturnType<typeof findRenamedTools> {
  const { from, request, isRenamed = true } = options;
  if (!request || !isRenamed) return undefined;
  return findRenamedTools(request, from.toolRules(findProfile(from, options, request.model)));
}

interface AnswerParts {
  /** The id of the response: generated ids are derived from it. */
  seed: () => string;
  onRefusal?: (error: CanonicalError) => void;
  stream?: boolean;
  isRepair?: boolean;
}

/** Builds the context of a response encoder: the request, the upstream and the policy. */
export function createResponseContext(options: ResponseOptions<RepairCodec>, notes: NoteList, parts: AnswerParts): CodecContext {
  const { from, to, provider, request, model, policy = {}, now, newId, sealing, envelope } = options;
  const { strict: _, ...lenient } = policy;
  const requested = request && model !== undefined ? { ...request, model } : request;
  // The id that the client sees, if the caller sets one: some servers repeat theirs.
  const { id } = envelope ?? {};
  const seed = typeof id === 'string' ? () => id : parts.seed;
  return createContext({
    note: createNoteHandler(notes, policy, parts.onRefusal ?? (() => undefined)),
    // The client is not a provider, so its protocol's default profile applies.
    profile: to.profileFor(''),
    policy: lenient,
    now,
    newId: newId ?? createIds(seed),
    request: requested,
    target: buildTarget(from, provider, { model: model ?? request?.model ?? '', stream: parts.stream ?? false }),
    from,
    sealing,
    envelope,
    isRepair: parts.isRepair ?? false,
  });
}

// ---- errors

/** An HTTP response; unknown parts are left out. */
export type ErrorReply = Pick<WireReply, 'body'> & Partial<WireReply>;

/** An error response in the client's protocol. */
export interface ConvertedError extends WireReply {
  error: CanonicalError;
}

/**
 * Converts an error response of one protocol to another: body and status match what the client's SDK expects.
 *
 * ```ts
 * const reply = { status: 529, body: json };
 * const { status, headers, body } = convertError(reply, { from: anthropicMessagesCodec, to: openaiChatCodec });
 * ```
 */
export function convertError({ status = 0, headers = {}, body }: ErrorReply, options: ConvertOptions): ConvertedError {
  const notes = new NoteList();
  const target = buildTarget(options.from, options.provider, { model: '', stream: false });
  const decoding = createContext({ note: notes.add, profile: findProfile(options.from, options), target });
  const error = options.from.error.decode({ status, headers, body }, decoding);
  return { ...encodeError(error, options), error };
}

/**
 * Names the provider in errors that a client would attribute to its own key or permissions. Other errors are returned
 * as they are.
 */
export function nameProvider(error: CanonicalError, provider: string): CanonicalError {
  const { code, message, upstream, http_status: http } = error;
  if (!upstream || provider === '') return error;
  const status = upstream.status ?? http;
  const suffix = status === undefined ? '' : ` (${status})`;
  const details = { ...error.details, upstream_message: message };
  if (code === 'AUTHENTICATION') return { ...error, details, message: `provider "${provider}" rejected its API key${suffix}` };
  if (code !== 'PERMISSION' || message.startsWith(`provider "${provider}"`)) return error;
  return { ...error, message: `provider "${provider}" denied access${suffix}: ${message}` };
}

/** Builds the client's error response; also for an error that a codec threw (`CodecError.error`). */
export function encodeError(
  error: CanonicalError,
  options: Pick<ResponseOptions<RepairCodec>, 'to' | 'now' | 'newId'>,
): WireReply {
  const { to, now, newId } = options;
  return to.error.encode(error, createContext({ note: () => undefined, profile: to.profileFor(''), now, newId }));
}

// ---- fields that only the upstream's protocol has

type AddNote = (note: Note) => void;

/** What surrounds the blocks, in a whole response and in the events of a stream. */
type Envelope = Node & Partial<Pick<CanonicalResponse, 'system_fingerprint' | 'service_tier' | 'stop_sequence'>>;

/**
 * Notes each field of a response that only its own protocol has, once, since it does not reach a client of another one.
 * Not even a strict policy refuses such a field: the client did not request it.
 */
export class ProtocolOnlyFieldReporter {
  readonly #from: Codec;
  readonly #to: Codec;
  readonly #note: AddNote;
  #noted: Set<string> | undefined;

  constructor({ from, to }: { from: Codec; to: Codec }, note: AddNote) {
    this.#from = from;
    this.#to = to;
    this.#note = note;
  }

  /** Notes the fields of a whole response. */
  response(response: CanonicalResponse): void {
    this.#envelope(response);
    this.#counts(response.usage);
    for (const [i, block] of response.content.entries()) this.#block(block, i);
  }

  /** Notes the fields of a stream event. */
  event(event: CanonicalStreamEvent): void {
    switch (event.type) {
      case 'message_start':
        this.#envelope(event.message);
        return;
      case 'message_delta':
        this.#envelope(event);
        this.#envelope(event.delta);
        this.#counts(event.usage);
        if (event.message) this.#envelope(event.message);
        return;
      case 'content_block_start':
      case 'content_block_stop':
        if (event.content_block) this.#block(event.content_block, event.index);
        return;
      default:
        return;
    }
  }

  #envelope(node: Envelope): void {
    this.#fields(node, '', '');
    const { system_fingerprint: fingerprint, service_tier: tier, stop_sequence: sequence } = node;
    const { responseFields, carriesTier } = this.#to;
    if (fingerprint !== undefined && !responseFields?.has('system_fingerprint'))
      this.#lose('system_fingerprint', 'system_fingerprint is specific to OpenAI Chat');
    if (tier !== undefined && carriesTier?.(tier) === false)
      this.#lose('service_tier', `service tier "${tier}" is not supported by ${this.#to.id}`);
    if (typeof sequence === 'string' && !responseFields?.has('stop_sequence'))
      this.#lose('stop_sequence', `the stop sequence that ended the response is not supported by ${this.#to.id}`);
  }

  #counts(usage: CanonicalUsage | undefined): void {
    const { web_search_requests: searches, web_fetch_requests: fetches } = usage?.details ?? {};
    if ((searches || fetches) && !this.#to.responseFields?.has('server_tool_use'))
      this.#lose('usage.server_tool_use', `counts of provider tools are not supported by ${this.#to.id}`);
  }

  #lose(feature: string, message: string): void {
    this.#noteOnce({ path: `/${feature.replace('.', '/')}`, feature, message: `${message}; dropped` });
  }

  #block(block: ContentBlock, index: number): void {
    if (block.extensions && isPassed(block)) this.#fields(block, `/content/${index}`, 'content/');
  }

  #fields({ extensions }: Node, path: string, within: string): void {
    const { id } = this.#from;
    const fields = extensions?.[id];
    if (fields)
      eachProtocolOnlyField(fields, this.#from, `${path}/extensions/${id}`, within, (loss, field) => this.#noteOnce(loss, field));
  }

  #noteOnce(loss: Omit<Note, 'code'>, field = loss.path): void {
    this.#noted ??= new Set();
    if (!this.#noted.has(field)) this.#note({ code: 'DROPPED', ...loss });
    this.#noted.add(field);
  }
}

/** A block that is dropped as a whole has its own note. */
const isPassed = (block: ContentBlock): boolean =>
  block.type === 'tool_use' ? isClientCall(block.kind) : block.type !== 'tool_result' && block.type !== 'opaque';
