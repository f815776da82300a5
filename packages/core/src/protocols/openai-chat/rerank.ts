import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalRerankRequest, CanonicalRerankResponse } from '../../canonical/interfaces.ts';
import { badAnswer } from '../shared/answer-body.ts';
import { type CodecContext, drop, invalid, type WireCodec, type WireRequest } from '../shared/codec.ts';
import { expectBoolean, expectCount, expectList, expectName, expectObject, expectText, optional } from '../shared/expect.ts';
import { countOf, isIndex, objectOf, textOf, unknownFields } from '../shared/read.ts';
import { answerOf } from './answer.ts';
import { modelOf } from './interface.ts';

// OpenAI has no such endpoint. The shapes are those of Jina (`usage.total_tokens`) and of Cohere (`meta.billed_units.search_units`), which the
// compatible servers follow: one question, two ways to count.

/** `POST /rerank`, the question and the answer. */
export const rerankRequest: WireCodec<WireRequest, CanonicalRerankRequest> = { decode: decodeRequest, encode: encodeRequest };
export const rerankResponse: WireCodec<unknown, CanonicalRerankResponse> = { decode: decodeResponse, encode: encodeResponse };

type Result = CanonicalRerankResponse['results'][number];
type Document = CanonicalRerankRequest['documents'][number];

const COUNTS = ['top_n', 'max_chunks_per_doc', 'max_tokens_per_doc'] as const;
const REQUEST_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'query',
  'documents',
  'return_documents',
  'rank_fields',
  ...COUNTS,
]);
const RESPONSE_FIELDS: ReadonlySet<string> = new Set(['id', 'model', 'results', 'data', 'usage', 'meta']);
const RESULT_FIELDS: ReadonlySet<string> = new Set(['index', 'relevance_score', 'score', 'document', 'text', 'object']);

function decodeRequest({ path, body: wire }: WireRequest): CanonicalRerankRequest {
  const body = expectObject(wire, 'body');
  const documents = expectList(body['documents'], 'documents');
  if (documents.length === 0) throw invalid('documents', 'is empty');
  const returned = optional(body['return_documents'], 'return_documents', expectBoolean);
  const fields = optional(body['rank_fields'], 'rank_fields', expectList);
  const unknown = unknownFields(body, REQUEST_FIELDS);
  return {
    model: modelOf(path) ?? expectName(body['model'], 'model'),
    query: expectText(body['query'], 'query'),
    documents: documents.map(decodeDocument),
    ...decodeCounts(body),
    ...(returned !== undefined && { return_documents: returned }),
    ...(fields && { rank_fields: fields.map((field, i) => expectText(field, `rank_fields[${i}]`)) }),
    ...(unknown && { extensions: { 'openai-chat': unknown } }),
  };
}

function decodeDocument(document: unknown, i: number): Document {
  if (typeof document === 'string' || isObject(document)) return document;
  throw invalid(`documents[${i}]`, 'must be text or an object');
}

function decodeCounts(body: JsonObject): Pick<CanonicalRerankRequest, (typeof COUNTS)[number]> {
  const counts: Pick<CanonicalRerankRequest, (typeof COUNTS)[number]> = {};
  for (const name of COUNTS) {
    const count = optional(body[name], name, expectCount);
    if (count !== undefined) counts[name] = count;
  }
  return counts;
}

function encodeRequest({ extensions, model, ...request }: CanonicalRerankRequest, { target }: CodecContext): WireRequest {
  const body = { ...extensions?.['openai-chat'], model: target?.model ?? model, ...request };
  return { method: 'POST', path: '/v1/rerank', headers: { 'content-type': 'application/json' }, body };
}

function decodeResponse(wire: unknown, context: CodecContext): CanonicalRerankResponse {
  // text-embeddings-inference answers with the bare list, Voyage calls it `data`.
  const body = Array.isArray(wire) ? { results: wire } : answerOf(wire);
  const results = body['results'] ?? body['data'];
  if (!Array.isArray(results)) throw badAnswer('results', 'must be a list of results');
  const usage = decodeUsage(objectOf(body['usage']), objectOf(body['meta']));
  // What is counted beside tokens and search units is kept, and shows in which of the two shapes the answer came.
  const counted = {
    ...(isObject(body['usage']) && { usage: body['usage'] }),
    ...(isObject(body['meta']) && { meta: body['meta'] }),
  };
  const kept = { ...unknownFields(body, RESPONSE_FIELDS), ...counted };
  return {
    ...(textOf(body['id']) && { id: textOf(body['id']) }),
    ...(textOf(body['model']) && { model: textOf(body['model']) }),
    results: sorted(decodeResults(results, context), context),
    ...(usage && { usage }),
    ...(Object.keys(kept).length > 0 && { extensions: { 'openai-chat': kept } }),
  };
}

function decodeUsage(usage: JsonObject, meta: JsonObject): CanonicalRerankResponse['usage'] {
  const tokens =
    countOf(usage['total_tokens']) ?? countOf(usage['prompt_tokens']) ?? countOf(objectOf(meta['tokens'])['input_tokens']);
  const units = countOf(objectOf(meta['billed_units'])['search_units']) ?? countOf(usage['search_units']);
  if (tokens === undefined && units === undefined) return undefined;
  return { ...(tokens !== undefined && { input_tokens: tokens }), ...(units !== undefined && { search_units: units }) };
}

function decodeResults(results: readonly unknown[], context: CodecContext): Result[] {
  const documents = context.rerank?.documents.length ?? Number.POSITIVE_INFINITY;
  let lost: string | undefined;
  const found = results.map((result, i) => {
    const { index, relevance_score, score, document, text } = objectOf(result);
    const value = relevance_score ?? score;
    if (!isIndex(index)) throw badAnswer(`results[${i}].index`, 'must be the place of a document');
    if (typeof value !== 'number') throw badAnswer(`results[${i}].relevance_score`, 'must be a number');
    if (index >= documents) throw badAnswer(`results[${i}].index`, `is ${index}, and there were ${documents} documents`);
    lost ??= Object.keys(unknownFields(objectOf(result), RESULT_FIELDS) ?? {})[0];
    const shown = decodeShown(document ?? text);
    return { index, relevance_score: value, ...(shown && { document: shown }) };
  });
  if (lost !== undefined)
    drop(context, { path: '/results', feature: 'rerank.result', message: `unknown field ${lost} of a result` });
  return found;
}

const decodeShown = (document: unknown): Result['document'] =>
  typeof document === 'string' ? { text: document } : isObject(document) ? document : undefined;

/** Best first, as every client expects. */
function sorted(results: Result[], { note }: CodecContext): Result[] {
  const isSorted = results.every(
    ({ relevance_score }, i) => relevance_score <= (results[i - 1]?.relevance_score ?? relevance_score),
  );
  if (isSorted) return results;
  note({
    code: 'REPAIRED',
    path: '/results',
    feature: 'rerank.order',
    message: 'the results were not in the order of their scores',
  });
  return results.toSorted((a, b) => b.relevance_score - a.relevance_score);
}

function encodeResponse(response: CanonicalRerankResponse, { rerank: question }: CodecContext): JsonObject {
  const { id, model, results, usage: { input_tokens: tokens, search_units: units } = {}, extensions } = response;
  const kept = extensions?.['openai-chat'] ?? {};
  const usage = objectOf(kept['usage']);
  const meta = objectOf(kept['meta']);
  // A count goes back to where it came from; one from another protocol goes to its usual place.
  const inMeta = kept['meta'] !== undefined && kept['usage'] === undefined;
  const billed = units !== undefined && usage['search_units'] === undefined;
  return {
    ...kept,
    ...(id !== undefined && { id }),
    ...(model !== undefined && { model: question?.model ?? model }),
    results: results.map((result) => encodeResult(result, question)),
    ...(tokens !== undefined && !inMeta && { usage: { ...usage, total_tokens: tokens } }),
    ...(billed && { meta: { ...meta, billed_units: { ...objectOf(meta['billed_units']), search_units: units } } }),
  };
}

/** Cohere's v2 no longer returns documents; the client that asks for them gets its own back. */
function encodeResult({ index, relevance_score, document }: Result, question: CanonicalRerankRequest | undefined): JsonObject {
  const asked = question?.return_documents ? question.documents[index] : undefined;
  const shown = document ?? (typeof asked === 'string' ? { text: asked } : asked);
  return { index, relevance_score, ...(shown && { document: shown }) };
}
