import type { CanonicalStreamEvent } from '../canonical/events.ts';
import { type CanonicalResponse, type ContentBlock, isClientCall } from '../canonical/message.ts';
import type { CanonicalError, Note } from '../canonical/notes.ts';
import type { Node } from '../canonical/protocol.ts';
import { eachUnsaid } from '../codec/extensions.ts';
import type { Codec, CodecContext, WireReply } from '../codec/protocol.ts';
import {
  type AnswerOptions,
  answerNotes,
  type ConvertOptions,
  createContext,
  createIds,
  expectShallowCalls,
  NoteList,
  profileOf,
  targetOf,
} from './context.ts';
import { callsOf, restoreResponse } from './restore.ts';

type Tell = (note: Note) => void;

/** What is around the blocks, in a whole answer and in the events of a stream. */
type Envelope = Node & { system_fingerprint?: string };

/**
 * Fields of an answer that only its own protocol knows do not reach a client of another one: each is told, once. Nothing is refused for them,
 * whatever the policy: nobody asked for them, and the answer is there.
 */
export class UnknownTeller {
  readonly #from: Codec;
  readonly #to: Codec;
  readonly #note: Tell;
  #told: Set<string> | undefined;

  constructor({ from, to }: { from: Codec; to: Codec }, note: Tell) {
    this.#from = from;
    this.#to = to;
    this.#note = note;
  }

  response(response: CanonicalResponse): void {
    this.#envelope(response);
    for (const [i, block] of response.content.entries()) this.#block(block, i);
  }

  event(event: CanonicalStreamEvent): void {
    switch (event.type) {
      case 'message_start':
        this.#envelope(event.message);
        return;
      case 'message_delta':
        this.#envelope(event);
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
    if (node.system_fingerprint !== undefined && !this.#to.hasFingerprint)
      this.#tell({ path: '/system_fingerprint', feature: 'system_fingerprint', message: 'only OpenAI Chat has a fingerprint' });
  }

  #block(block: ContentBlock, index: number): void {
    if (block.extensions && isPassed(block)) this.#fields(block, `/content/${index}`, 'content/');
  }

  #fields({ extensions }: Node, path: string, within: string): void {
    const { id } = this.#from;
    const fields = extensions?.[id];
    if (fields) eachUnsaid(fields, this.#from, `${path}/extensions/${id}`, within, (loss, field) => this.#tell(loss, field));
  }

  #tell(loss: Omit<Note, 'code'>, field = loss.path): void {
    this.#told ??= new Set();
    if (!this.#told.has(field)) this.#note({ code: 'DROPPED', ...loss });
    this.#told.add(field);
  }
}

/** A block that is lost as a whole is told as such. */
const isPassed = (block: ContentBlock): boolean =>
  block.type === 'tool_use' ? isClientCall(block.kind) : block.type !== 'tool_result' && block.type !== 'opaque';

export interface ConvertedResponse {
  body: unknown;
  notes: Note[];
  /** The answer in the canonical form, as the client's encoder got it. */
  response: CanonicalResponse;
}

/**
 * A whole answer of one protocol as an answer of another.
 *
 * ```ts
 * const { body, notes } = convertResponse(json, { from: anthropicMessagesCodec, to: openaiChatCodec, request });
 * ```
 *
 * Throws a CodecError when the body is an error, or when the policy is strict about something that would be lost.
 */
export function convertResponse(body: unknown, options: AnswerOptions): ConvertedResponse {
  const notes = new NoteList();
  const response = decodeResponse(body, options, notes);
  const context = answerContext(options, notes, { seed: () => response.id });
  return { body: options.to.response.encode(response, context), notes: notes.list, response };
}

/** The canonical form of an answer, with the tools under the names that the client gave them. */
export function decodeResponse(body: unknown, options: AnswerOptions, notes: NoteList): CanonicalResponse {
  const { from, to, request, model, isRenamed = true } = options;
  const profile = profileOf(from, options, request?.model);
  const answered = from.response.decode(body, createContext({ note: notes.add, profile }));
  expectShallowCalls(answered);
  if (to.id !== from.id) new UnknownTeller({ from, to }, notes.add).response(answered);
  const calls = request && isRenamed ? callsOf(request, from.toolRules(profile)) : undefined;
  const response = restoreResponse(answered, calls, notes.add);
  return model === undefined ? response : { ...response, model };
}

interface AnswerParts {
  /** The id of the answer: ids of what it left unnamed are derived from it. */
  seed: () => string;
  onRefusal?: (error: CanonicalError) => void;
  stream?: boolean;
}

/** What the encoder of an answer may ask: who asked what, and who answered. */
export function answerContext(options: AnswerOptions, notes: NoteList, parts: AnswerParts): CodecContext {
  const { from, to, provider, request, model, policy = {}, now, newId } = options;
  const { strict: _, ...lenient } = policy;
  const asked = request && model !== undefined ? { ...request, model } : request;
  return createContext({
    note: answerNotes(notes, policy, parts.onRefusal ?? (() => undefined)),
    // The client is no provider: what it takes is what everybody takes who speaks its protocol.
    profile: to.profileFor(''),
    policy: lenient,
    now,
    newId: newId ?? createIds(parts.seed),
    request: asked,
    target: targetOf(from, provider, { model: model ?? request?.model ?? '', stream: parts.stream ?? false }),
    source: from.id,
  });
}

/** An answer with an HTTP status; what is not known of it is left out. */
export type ErrorReply = Pick<WireReply, 'body'> & Partial<WireReply>;

export interface ConvertedError extends WireReply {
  error: CanonicalError;
}

/**
 * An error answer of one protocol as an error answer of another: body and status agree, as the client's SDK wants them.
 *
 * ```ts
 * const { status, headers, body } = convertError({ status: 529, headers: {}, body: json }, { from: anthropicMessagesCodec, to: openaiChatCodec });
 * ```
 */
export function convertError({ status = 0, headers = {}, body }: ErrorReply, options: ConvertOptions): ConvertedError {
  const notes = new NoteList();
  const target = targetOf(options.from, options.provider, { model: '', stream: false });
  const decoding = createContext({ note: notes.add, profile: profileOf(options.from, options), target });
  const error = options.from.error.decode({ status, headers, body }, decoding);
  return { ...encodeError(error, options), error };
}

/**
 * Names the provider in errors that a client would take for its own: the key and the permissions in question are those that the provider was
 * called with. Other errors come back as they are.
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

/** A failure in the client's own words: what a codec threw, too (`CodecError.error`). */
export function encodeError(error: CanonicalError, options: Pick<AnswerOptions, 'to' | 'now' | 'newId'>): WireReply {
  const { to, now, newId } = options;
  return to.error.encode(error, createContext({ note: () => undefined, profile: to.profileFor(''), now, newId }));
}
