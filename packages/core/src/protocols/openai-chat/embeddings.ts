import type { JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalEmbeddingRequest, CanonicalEmbeddingResponse } from '../../canonical/interfaces.ts';
import type { Note } from '../../canonical/notes.ts';
import { at } from '../../canonical/source.ts';
import { locatedContext } from '../../passes/located.ts';
import { badAnswer } from '../shared/answer-body.ts';
import { type CodecContext, drop, invalid, missing, type WireCodec, type WireRequest } from '../shared/codec.ts';
import { expectCount, expectName, expectObject, expectText, optional } from '../shared/expect.ts';
import { packFloats, unpackFloats } from '../shared/floats.ts';
import { countOf, isIndex, objectOf, textOf, unknownFields } from '../shared/read.ts';
import { eachForeign } from '../shared/unsaid.ts';
import { answerOf } from './answer.ts';
import { modelOf } from './interface.ts';

/** `POST /embeddings`, the question and the answer. */
export const embeddingRequest: WireCodec<WireRequest, CanonicalEmbeddingRequest> = {
  decode: decodeRequest,
  encode: encodeRequest,
};
export const embeddingResponse: WireCodec<unknown, CanonicalEmbeddingResponse> = {
  decode: decodeResponse,
  encode: encodeResponse,
};

/** The API's own bound on a list of inputs. */
export const MAX_INPUTS = 2048;

const REQUEST_FIELDS: ReadonlySet<string> = new Set(['model', 'input', 'encoding_format', 'dimensions', 'user']);
const RESPONSE_FIELDS: ReadonlySet<string> = new Set(['object', 'data', 'model', 'usage']);
const ENTRY_FIELDS: ReadonlySet<string> = new Set(['object', 'index', 'embedding']);

function decodeRequest({ path, body: wire }: WireRequest, context: CodecContext): CanonicalEmbeddingRequest {
  const body = expectObject(wire, 'body');
  const format = body['encoding_format'];
  const isKnownFormat = format === 'float' || format === 'base64';
  const dimensions = optional(body['dimensions'], 'dimensions', expectCount);
  const user = optional(body['user'], 'user', expectText);
  const unknown = unknownFields(body, REQUEST_FIELDS);
  // Vendors have formats of their own (int8, binary): kept as they are.
  const kept = isKnownFormat || format === undefined || format === null ? unknown : { ...unknown, encoding_format: format };
  const request: CanonicalEmbeddingRequest = {
    model: modelOf(path) ?? expectName(body['model'], 'model'),
    ...decodeInput(body['input']),
    ...(isKnownFormat && { encoding_format: format }),
    ...(dimensions !== undefined && { dimensions }),
    ...(user !== undefined && { user_id: user }),
    ...(kept && { extensions: { 'openai-chat': kept } }),
  };
  return at('', request, context, { user_id: '/user', 'extensions/openai-chat': '' });
}

/** Text, texts, tokens, lists of tokens: always a list, which remembers that it was one input. */
function decodeInput(input: unknown): { input: (string | number[])[]; single?: boolean } {
  if (typeof input === 'string') return { input: [input], single: true };
  if (input === undefined || input === null) throw missing('input');
  if (!Array.isArray(input) || input.length === 0)
    throw invalid('input', 'must be text, tokens, or a list of these that is not empty');
  if (typeof input[0] === 'number') return { input: [tokensOf(input, 'input')], single: true };
  if (input.length > MAX_INPUTS) throw invalid('input', `has ${input.length} entries, and ${MAX_INPUTS} are allowed`);
  return { input: input.map((entry: unknown, i) => (typeof entry === 'string' ? entry : tokensOf(entry, `input[${i}]`))) };
}

function tokensOf(value: unknown, param: string): number[] {
  if (!Array.isArray(value) || value.length === 0) throw invalid(param, 'must be text or a list of tokens');
  const wrong = value.findIndex((token) => !isIndex(token));
  if (wrong >= 0) throw invalid(`${param}[${wrong}]`, 'must be a token, that is an integer');
  return value;
}

function encodeRequest(request: CanonicalEmbeddingRequest, caller: CodecContext): WireRequest {
  const context = locatedContext(caller, request);
  const { model, input, single, encoding_format, dimensions, user_id, task_type, title, extensions } = request;
  if (task_type !== undefined)
    drop(context, { path: '/task_type', feature: 'embeddings.task_type', message: 'chat has no task type' });
  if (title !== undefined)
    drop(context, { path: '/title', feature: 'embeddings.title', message: 'chat has no title of a document' });
  eachForeign(request, 'openai-chat', '', (loss) => drop(context, loss));
  const body = {
    ...extensions?.['openai-chat'],
    model: context.target?.model ?? model,
    input: single && input.length === 1 ? input[0] : input,
    ...(encoding_format && { encoding_format }),
    ...(dimensions !== undefined && { dimensions }),
    ...(user_id !== undefined && { user: user_id }),
  };
  return { method: 'POST', path: '/v1/embeddings', headers: { 'content-type': 'application/json' }, body };
}

function decodeResponse(wire: unknown, context: CodecContext): CanonicalEmbeddingResponse {
  const body = answerOf(wire);
  if (!Array.isArray(body['data'])) throw badAnswer('data', 'must be a list of embeddings');
  const usage = objectOf(body['usage']);
  const tokens = countOf(usage['prompt_tokens']) ?? countOf(usage['total_tokens']);
  // Costs and details that vendors count stay with the answer.
  const kept = { ...unknownFields(body, RESPONSE_FIELDS), ...(Object.keys(usage).length > 0 && { usage }) };
  return {
    model: textOf(body['model']) || (context.target?.model ?? ''),
    data: decodeEntries(body['data'], context),
    ...(tokens !== undefined && { usage: { input_tokens: tokens } }),
    ...(Object.keys(kept).length > 0 && { extensions: { 'openai-chat': kept } }),
  };
}

function decodeEntries(entries: readonly unknown[], context: CodecContext): CanonicalEmbeddingResponse['data'] {
  let lost: string | undefined;
  const data = entries.map((entry, i) => {
    const { index, embedding } = objectOf(entry);
    if (typeof embedding !== 'string' && !isVector(embedding))
      throw badAnswer(`data[${i}].embedding`, 'must be numbers or base64');
    lost ??= Object.keys(unknownFields(objectOf(entry), ENTRY_FIELDS) ?? {})[0];
    return { index: isIndex(index) ? index : i, embedding };
  });
  if (lost !== undefined)
    drop(context, { path: '/data', feature: 'embeddings.entry', message: `unknown field ${lost} of an embedding` });
  return data;
}

const isVector = (value: unknown): value is number[] => Array.isArray(value) && value.every((item) => typeof item === 'number');

function encodeResponse(response: CanonicalEmbeddingResponse, context: CodecContext): JsonObject {
  const { model, data, usage, extensions } = response;
  tellForeign(response, context);
  const kept = extensions?.['openai-chat'] ?? {};
  const { embedding: question } = context;
  const format = question && formatOf(question);
  const counted = objectOf(kept['usage']);
  const tokens = usage?.input_tokens ?? 0;
  return {
    ...kept,
    object: 'list',
    data: data.map(({ index, embedding }, i) => ({ object: 'embedding', index, embedding: inFormat(embedding, format, i) })),
    model: question?.model ?? model,
    usage: { ...counted, prompt_tokens: tokens, total_tokens: Math.max(tokens, countOf(counted['total_tokens']) ?? 0) },
  };
}

/** Nobody asked for them: they are told, and not refused. Entries of one kind are told once. */
function tellForeign(response: CanonicalEmbeddingResponse, { note }: CodecContext): void {
  const tell = (loss: Omit<Note, 'code'>): void => note({ code: 'DROPPED', ...loss });
  eachForeign(response, 'openai-chat', '', tell);
  const at = response.data.findIndex(({ extensions }) => extensions);
  const entry = response.data[at];
  if (entry) eachForeign(entry, 'openai-chat', `/data/${at}`, tell);
}

/** The format that the client waits for; undefined for one that only its server knows. */
function formatOf({ encoding_format: format, extensions }: CanonicalEmbeddingRequest): 'float' | 'base64' | undefined {
  const own = extensions?.['openai-chat']?.['encoding_format'];
  return format ?? (own === undefined ? 'float' : undefined);
}

/** The official client asks for base64 unless told otherwise, and servers answer with floats all the same. */
function inFormat(embedding: number[] | string, format: 'float' | 'base64' | undefined, i: number): number[] | string {
  if (format === 'base64' && typeof embedding !== 'string') return packFloats(embedding);
  if (format !== 'float' || typeof embedding !== 'string') return embedding;
  const floats = unpackFloats(embedding);
  if (!floats?.every(Number.isFinite)) throw badAnswer(`data[${i}].embedding`, 'is not base64 of 32-bit floats');
  return floats;
}
