import type { ContentBlock } from '../canonical/message.ts';
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
import { writeJson } from '../json/json.ts';
import { type ConvertOptions, createContext, NoteList, profileOf, targetOf } from './context.ts';
import type { RequestOptions } from './request.ts';

/** English and code have about four characters a token in the vocabularies of all large providers; other scripts about one and a half. */
const ASCII_PER_TOKEN = 4;

const OTHER_PER_TOKEN = 1.5;

/** Roles and the marks between messages. */
const PER_MESSAGE = 4;

/** Providers scale images down to some 1.5 megapixels, which is about this much. */
const PER_IMAGE = 1500;

/** A page or so of a document, a minute or so of sound: by size, since nobody has looked inside. */
const BASE64_PER_TOKEN = 40;

/**
 * How many tokens a request has, about. For upstreams that cannot count: clients use the number to know when a conversation gets too long, and a
 * number that is some ten percent wrong is far better for them than an error (P129).
 */
export function estimateTokens(request: CanonicalRequest): CanonicalCountTokensResponse {
  const { system = [], messages, tools = [], output_format: format } = request;
  let tokens = 0;
  for (const { text } of system) tokens += tokensOf(text);
  for (const { content } of messages) tokens += PER_MESSAGE + blocksTokens(content);
  for (const { extensions: _, ...tool } of tools) tokens += jsonTokens(tool);
  if (format) tokens += jsonTokens(format);
  return { input_tokens: Math.ceil(tokens), estimated: true };
}

const blocksTokens = (blocks: readonly ContentBlock[]): number => blocks.reduce((sum, block) => sum + blockTokens(block), 0);

function blockTokens(block: ContentBlock): number {
  switch (block.type) {
    case 'text':
      return tokensOf(block.text);
    case 'thinking':
      return tokensOf(block.thinking);
    case 'tool_use':
      return tokensOf(block.name) + (block.input_raw === undefined ? jsonTokens(block.input) : tokensOf(block.input_raw));
    case 'tool_result':
      return typeof block.content === 'string' ? tokensOf(block.content) : blocksTokens(block.content);
    case 'image':
      return PER_IMAGE;
    case 'audio':
      return (block.source.data?.length ?? 0) / BASE64_PER_TOKEN;
    case 'file':
      return fileTokens(block.source);
    case 'opaque':
      return jsonTokens(block.raw);
    default:
      return block satisfies never;
  }
}

function fileTokens({ text, content, file_data: data }: Extract<ContentBlock, { type: 'file' }>['source']): number {
  if (text !== undefined) return tokensOf(text);
  return content ? blocksTokens(content) : (data?.length ?? 0) / BASE64_PER_TOKEN;
}

const jsonTokens = (value: unknown): number => tokensOf(writeJson(value) ?? '');

function tokensOf(text: string): number {
  let others = 0;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 127) others++;
  return (text.length - others) / ASCII_PER_TOKEN + others / OTHER_PER_TOKEN;
}

// Everything beside the conversation: lists of models, embeddings, rankings, counts of tokens. Each is a codec, in both protocols or in none.
export interface Converted<T> {
  body: unknown;
  notes: Note[];
  /** In the canonical form. */
  value: T;
}

export interface ConvertedQuestion<T> extends Converted<T>, Pick<WireRequest, 'path' | 'headers'> {}

/** What an answer was asked for. */
interface Question {
  embedding?: CanonicalEmbeddingRequest | undefined;
  rerank?: CanonicalRerankRequest | undefined;
}

/** Whether the other protocol has such a thing at all. */
export function unsupported({ id }: Codec, type: InterfaceType): CodecError {
  const message = `${id} has no ${type.toLowerCase().replace('_', ' ')} interface`;
  return new CodecError({ code: 'UNSUPPORTED_INTERFACE', message, http_status: 404 });
}

function required<T>(codec: Codec, part: T | undefined, type: InterfaceType): T {
  if (part === undefined) throw unsupported(codec, type);
  return part;
}

/** A question: path and headers of the client in, those of the upstream out. */
function convertQuestion<T extends { model: string }>(
  body: unknown,
  options: RequestOptions,
  type: InterfaceType,
  codecOf: (codec: Codec) => WireCodec<WireRequest, T> | undefined,
): ConvertedQuestion<T> {
  const { from, to, path = '', headers = {}, policy = {}, provider, model } = options;
  const decoder = required(from, codecOf(from), type);
  const encoder = required(to, codecOf(to), type);
  const notes = new NoteList();
  const decoding = createContext({ note: notes.add, profile: from.profileFor(''), policy, trace: true });
  const value = decoder.decode({ method: 'POST', path, headers, body }, decoding);
  const asked = model === undefined ? value : { ...value, model };
  const encoding = createContext({
    note: notes.add,
    profile: profileOf(to, options, asked.model),
    policy,
    target: targetOf(to, provider, { model: asked.model, stream: false }),
    source: from.id,
  });
  const wire = encoder.encode(asked, encoding);
  return { body: wire.body, path: wire.path, headers: wire.headers, notes: notes.list, value };
}

function convertAnswer<T>(
  body: unknown,
  options: ConvertOptions,
  type: InterfaceType,
  codecOf: (codec: Codec) => WireCodec<unknown, T> | undefined,
  question: Question = {},
): Converted<T> {
  const { from, to, policy = {}, provider, now, newId } = options;
  const decoder = required(from, codecOf(from), type);
  const encoder = required(to, codecOf(to), type);
  const notes = new NoteList();
  const target = targetOf(from, provider, { model: '', stream: false });
  const parts = { note: notes.add, policy, now, newId, target, source: from.id };
  const asked = {
    ...(question.embedding && { embedding: question.embedding }),
    ...(question.rerank && { rerank: question.rerank }),
  };
  const value = decoder.decode(body, { ...createContext({ ...parts, profile: profileOf(from, options) }), ...asked });
  const written = encoder.encode(value, { ...createContext({ ...parts, profile: to.profileFor('') }), ...asked });
  return { body: written, notes: notes.list, value };
}

/** A list of models in the shape of another protocol. */
export const convertModels = (body: unknown, options: ConvertOptions): Converted<CanonicalModelList> =>
  convertAnswer(body, options, 'MODELS', ({ models }) => models);

/** One model in the shape of another protocol. */
export const convertModelInfo = (body: unknown, options: ConvertOptions): Converted<CanonicalModel> =>
  convertAnswer(body, options, 'MODEL_INFO', ({ modelInfo }) => modelInfo);

export const convertEmbeddingsRequest = (body: unknown, options: RequestOptions): ConvertedQuestion<CanonicalEmbeddingRequest> =>
  convertQuestion(body, options, 'EMBEDDINGS', ({ embeddings }) => embeddings?.request);

/** `embedding`: the question, as `convertEmbeddingsRequest` gave it back (`value`). */
export const convertEmbeddingsResponse = (
  body: unknown,
  options: ConvertOptions & { embedding?: CanonicalEmbeddingRequest },
): Converted<CanonicalEmbeddingResponse> =>
  convertAnswer(body, options, 'EMBEDDINGS', ({ embeddings }) => embeddings?.response, { embedding: options.embedding });

export const convertRerankRequest = (body: unknown, options: RequestOptions): ConvertedQuestion<CanonicalRerankRequest> =>
  convertQuestion(body, options, 'RERANK', ({ rerank }) => rerank?.request);

/** `rerank`: the question, as `convertRerankRequest` gave it back (`value`). */
export const convertRerankResponse = (
  body: unknown,
  options: ConvertOptions & { rerank?: CanonicalRerankRequest },
): Converted<CanonicalRerankResponse> =>
  convertAnswer(body, options, 'RERANK', ({ rerank }) => rerank?.response, { rerank: options.rerank });

export const convertCountTokensRequest = (body: unknown, options: RequestOptions): ConvertedQuestion<CanonicalRequest> =>
  convertQuestion(body, options, 'COUNT_TOKENS', ({ countTokens }) => countTokens?.request);

export const convertCountTokensResponse = (body: unknown, options: ConvertOptions): Converted<CanonicalCountTokensResponse> =>
  convertAnswer(body, options, 'COUNT_TOKENS', ({ countTokens }) => countTokens?.response);

/**
 * The answer to a client that wants its tokens counted when the upstream cannot count: an estimate in the client's protocol, never a 404 (P129).
 *
 * ```ts
 * const body = estimateAnswer({ method: 'POST', path: '/v1/messages/count_tokens', headers: {}, body: json }, anthropicMessagesCodec);
 * ```
 */
export function estimateAnswer(wire: WireRequest, client: Codec): unknown {
  const { request, response } = required(client, client.countTokens, 'COUNT_TOKENS');
  const context = createContext({ note: () => undefined, profile: client.profileFor('') });
  return response.encode(estimateTokens(request.decode(wire, context)), context);
}

/** The models that we ourselves have, as a client wants to read them. */
export const encodeModels = (list: CanonicalModelList, { to }: Pick<ConvertOptions, 'to'>): unknown =>
  required(to, to.models, 'MODELS').encode(list, createContext({ note: () => undefined, profile: to.profileFor('') }));

/** One of them. */
export const encodeModelInfo = (model: CanonicalModel, { to }: Pick<ConvertOptions, 'to'>): unknown =>
  required(to, to.modelInfo, 'MODEL_INFO').encode(model, createContext({ note: () => undefined, profile: to.profileFor('') }));
