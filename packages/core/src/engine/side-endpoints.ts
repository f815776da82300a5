/**
 * Endpoints besides the conversation: lists of models, embeddings, rankings and token counts. A protocol has a codec
 * for each, or none.
 */

import { CodecError, type Note } from '../canonical/notes.ts';
import type {
  CanonicalCountTokensResponse,
  CanonicalEmbeddingRequest,
  CanonicalEmbeddingResponse,
  CanonicalModel,
  CanonicalModelList,
  CanonicalRequest,
  CanonicalRerankRequest,
  CanonicalRerankResponse,
  InterfaceType,
} from '../canonical/request.ts';
import type { Codec, WireCodec, WireRequest } from '../codec/protocol.ts';
import { buildTarget, type ConvertOptions, createContext, findProfile, NoteList } from './context.ts';
import { estimateTokens } from './estimate.ts';
import type { RequestOptions } from './request.ts';

/** A converted body. */
export interface Converted<T> {
  body: unknown;
  notes: Note[];
  /** In the canonical form. */
  value: T;
}

/** A converted request with the upstream's path and headers. */
export interface ConvertedSideRequest<T> extends Converted<T>, Pick<WireRequest, 'path' | 'headers'> {}

/** Converts a list of models. */
export const convertModels = (body: unknown, options: ConvertOptions): Converted<CanonicalModelList> =>
  convertSideResponse(body, options, 'MODELS', ({ models }) => models);

/** Converts the description of one model. */
export const convertModelInfo = (body: unknown, options: ConvertOptions): Converted<CanonicalModel> =>
  convertSideResponse(body, options, 'MODEL_INFO', ({ modelInfo }) => modelInfo);

/** Converts a request for embeddings; the conversion of the response takes its `value`. */
export const convertEmbeddingsRequest = (
  body: unknown,
  options: RequestOptions,
): ConvertedSideRequest<CanonicalEmbeddingRequest> =>
  convertSideRequest(body, options, 'EMBEDDINGS', ({ embeddings }) => embeddings?.request);

/** Converts a response with embeddings; `embedding` is the `value` of `convertEmbeddingsRequest`. */
export const convertEmbeddingsResponse = (
  body: unknown,
  options: ConvertOptions & { embedding?: CanonicalEmbeddingRequest },
): Converted<CanonicalEmbeddingResponse> =>
  convertSideResponse(body, options, 'EMBEDDINGS', ({ embeddings }) => embeddings?.response, { embedding: options.embedding });

/** Converts a request for a ranking; the conversion of the response takes its `value`. */
export const convertRerankRequest = (body: unknown, options: RequestOptions): ConvertedSideRequest<CanonicalRerankRequest> =>
  convertSideRequest(body, options, 'RERANK', ({ rerank }) => rerank?.request);

/** Converts a response with a ranking; `rerank` is the `value` of `convertRerankRequest`. */
export const convertRerankResponse = (
  body: unknown,
  options: ConvertOptions & { rerank?: CanonicalRerankRequest },
): Converted<CanonicalRerankResponse> =>
  convertSideResponse(body, options, 'RERANK', ({ rerank }) => rerank?.response, { rerank: options.rerank });

/** Converts a request for a token count. */
export const convertCountTokensRequest = (body: unknown, options: RequestOptions): ConvertedSideRequest<CanonicalRequest> =>
  convertSideRequest(body, options, 'COUNT_TOKENS', ({ countTokens }) => countTokens?.request);

/** Converts the response to a token count request. */
export const convertCountTokensResponse = (body: unknown, options: ConvertOptions): Converted<CanonicalCountTokensResponse> =>
  convertSideResponse(body, options, 'COUNT_TOKENS', ({ countTokens }) => countTokens?.response);

/** Encodes the gateway's own models for a client. */
export const encodeModels = (list: CanonicalModelList, { to }: Pick<ConvertOptions, 'to'>): unknown =>
  required(to, to.models, 'MODELS').encode(list, createContext({ note: () => undefined, profile: to.profileFor('') }));

/** Encodes one of the gateway's own models for a client. */
export const encodeModelInfo = (model: CanonicalModel, { to }: Pick<ConvertOptions, 'to'>): unknown =>
  required(to, to.modelInfo, 'MODEL_INFO').encode(model, createContext({ note: () => undefined, profile: to.profileFor('') }));

/** Converts a request: path and headers of the client in, those of the upstream out. */
function convertSideRequest<T extends { model: string }>(
  body: unknown,
  options: RequestOptions,
  type: InterfaceType,
  pickCodec: (codec: Codec) => WireCodec<WireRequest, T> | undefined,
): ConvertedSideRequest<T> {
  const { from, to, path = '', headers = {}, policy = {}, provider, model } = options;
  const decoder = required(from, pickCodec(from), type);
  const encoder = required(to, pickCodec(to), type);
  const notes = new NoteList();
  const decoding = createContext({ note: notes.add, profile: from.profileFor(''), policy, trace: true });
  const value = decoder.decode({ method: 'POST', path, headers, body }, decoding);
  const sent = model === undefined ? value : { ...value, model };
  const encoding = createContext({
    note: notes.add,
    profile: findProfile(to, options, sent.model),
    policy,
    target: buildTarget(to, provider, { model: sent.model, stream: false }),
    from,
  });
  const wire = encoder.encode(sent, encoding);
  return { body: wire.body, path: wire.path, headers: wire.headers, notes: notes.list, value };
}

/** The request that a response belongs to. */
interface SideRequest {
  embedding?: CanonicalEmbeddingRequest | undefined;
  rerank?: CanonicalRerankRequest | undefined;
}

function convertSideResponse<T>(
  body: unknown,
  options: ConvertOptions,
  type: InterfaceType,
  pickCodec: (codec: Codec) => WireCodec<unknown, T> | undefined,
  { embedding, rerank }: SideRequest = {},
): Converted<T> {
  const { from, to, policy = {}, provider, now, newId } = options;
  const decoder = required(from, pickCodec(from), type);
  const encoder = required(to, pickCodec(to), type);
  const notes = new NoteList();
  const target = buildTarget(from, provider, { model: '', stream: false });
  const parts = { note: notes.add, policy, now, newId, target, from };
  const request = { ...(embedding && { embedding }), ...(rerank && { rerank }) };
  const value = decoder.decode(body, { ...createContext({ ...parts, profile: findProfile(from, options) }), ...request });
  const written = encoder.encode(value, { ...createContext({ ...parts, profile: to.profileFor('') }), ...request });
  return { body: written, notes: notes.list, value };
}

function required<T>(codec: Codec, part: T | undefined, type: InterfaceType): T {
  if (part === undefined) throw unsupported(codec, type);
  return part;
}

/** The error for an endpoint that a protocol does not have. */
export function unsupported({ id }: Codec, type: InterfaceType): CodecError {
  const message = `${id} has no ${type.toLowerCase().replace('_', ' ')} interface`;
  return new CodecError({ code: 'UNSUPPORTED_INTERFACE', message, http_status: 404 });
}

// ---- token estimates

/**
 * Builds the response to a token count request when the upstream cannot count: an estimate in the client's protocol,
 * never a 404.
 *
 * ```ts
 * const wire = { method: 'POST', path: '/v1/messages/count_tokens', headers: {}, body: json };
 * const body = buildTokenEstimate(wire, anthropicMessagesCodec);
 * ```
 */
export function buildTokenEstimate(wire: WireRequest, client: Codec): unknown {
  const { request, response } = required(client, client.countTokens, 'COUNT_TOKENS');
  const context = createContext({ note: () => undefined, profile: client.profileFor('') });
  return response.encode(estimateTokens(request.decode(wire, context)), context);
}
