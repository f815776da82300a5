import type { JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalEmbeddingRequest, CanonicalEmbeddingResponse } from '../../canonical/interfaces.ts';
import { type Codec, type CodecContext, drop, invalid, missing, type WireRequest } from '../shared/codec.ts';
import { expectCount, expectName, expectObject, expectText, optional } from '../shared/expect.ts';
import { countOf, isIndex, objectOf, textOf, unknownFields } from '../shared/read.ts';
import { answerOf, badAnswer } from './answer.ts';
import { modelOf } from './interface.ts';

/** `POST /embeddings`, the question and the answer. */
export const embeddingRequest: Codec<WireRequest, CanonicalEmbeddingRequest> = { decode: decodeRequest, encode: encodeRequest };
export const embeddingResponse: Codec<unknown, CanonicalEmbeddingResponse> = { decode: decodeResponse, encode: encodeResponse };

/** The API's own bound on a list of inputs. */
export const MAX_INPUTS = 2048;

const REQUEST_FIELDS: ReadonlySet<string> = new Set(['model', 'input', 'encoding_format', 'dimensions', 'user']);
const RESPONSE_FIELDS: ReadonlySet<string> = new Set(['object', 'data', 'model', 'usage']);
const ENTRY_FIELDS: ReadonlySet<string> = new Set(['object', 'index', 'embedding']);

function decodeRequest({ path, body: wire }: WireRequest): CanonicalEmbeddingRequest {
  const body = expectObject(wire, 'body');
  const format = body['encoding_format'];
  const isKnownFormat = format === 'float' || format === 'base64';
  const dimensions = optional(body['dimensions'], 'dimensions', expectCount);
  const user = optional(body['user'], 'user', expectText);
  const unknown = unknownFields(body, REQUEST_FIELDS);
  // Vendors have formats of their own (int8, binary): kept as they are.
  const kept = isKnownFormat || format === undefined || format === null ? unknown : { ...unknown, encoding_format: format };
  return {
    model: modelOf(path) ?? expectName(body['model'], 'model'),
    ...decodeInput(body['input']),
    ...(isKnownFormat && { encoding_format: format }),
    ...(dimensions !== undefined && { dimensions }),
    ...(user !== undefined && { user_id: user }),
    ...(kept && { extensions: { 'openai-chat': kept } }),
  };
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

function encodeRequest(request: CanonicalEmbeddingRequest, context: CodecContext): WireRequest {
  const { model, input, single, encoding_format, dimensions, user_id, task_type, title, extensions } = request;
  if (task_type !== undefined)
    drop(context, { path: '/task_type', feature: 'embeddings.task_type', message: 'chat has no task type' });
  if (title !== undefined)
    drop(context, { path: '/title', feature: 'embeddings.title', message: 'chat has no title of a document' });
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

function encodeResponse({ model, data, usage, extensions }: CanonicalEmbeddingResponse, context: CodecContext): JsonObject {
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

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const BYTES_PER_FLOAT = 4;
const PAD = 0x3d;
const NO_DIGIT = 255;

/** base64 of little-endian 32-bit floats. */
export function packFloats(floats: readonly number[]): string {
  const view = new DataView(new ArrayBuffer(floats.length * BYTES_PER_FLOAT));
  for (const [i, float] of floats.entries()) view.setFloat32(i * BYTES_PER_FLOAT, float, true);
  return encodeBase64(new Uint8Array(view.buffer));
}

/** The floats of such a text; undefined when it is none. */
export function unpackFloats(text: string): number[] | undefined {
  const bytes = decodeBase64(text);
  if (!bytes || bytes.length % BYTES_PER_FLOAT !== 0) return undefined;
  const view = new DataView(bytes.buffer);
  return Array.from({ length: bytes.length / BYTES_PER_FLOAT }, (_, i) => view.getFloat32(i * BYTES_PER_FLOAT, true));
}

/** No runtime but node has Buffer, and btoa wants a string of bytes. */
function encodeBase64(bytes: Uint8Array): string {
  const text = new Uint8Array(Math.ceil(bytes.length / 3) * 4).fill(PAD);
  for (let at = 0, to = 0; at < bytes.length; at += 3, to += 4) {
    const digits = Math.min(bytes.length - at, 3) + 1;
    const group = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    for (let digit = 0; digit < digits; digit++) text[to + digit] = ALPHABET.charCodeAt((group >> (18 - 6 * digit)) & 63);
  }
  return new TextDecoder().decode(text);
}

/** What each character stands for, in both alphabets of base64. */
const DIGITS: Uint8Array = digitTable();

function digitTable(): Uint8Array {
  const table = new Uint8Array(128).fill(NO_DIGIT);
  for (const alphabet of [ALPHABET, ALPHABET.replace('+/', '-_')])
    for (let digit = 0; digit < alphabet.length; digit++) table[alphabet.charCodeAt(digit)] = digit;
  return table;
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  let length = text.length;
  while (length > 0 && text.length - length < 2 && text.charCodeAt(length - 1) === PAD) length--;
  if (length % 4 === 1) return undefined;
  const bytes = new Uint8Array(Math.floor((length * 3) / 4));
  let bits = 0;
  let group = 0;
  let to = 0;
  for (let at = 0; at < length; at++) {
    const digit = DIGITS[text.charCodeAt(at)] ?? NO_DIGIT;
    if (digit === NO_DIGIT) return undefined;
    group = ((group << 6) | digit) & 0xffff;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes[to++] = group >> bits;
  }
  return bytes;
}
