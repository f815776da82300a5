import type { JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalCountTokensResponse } from '../../canonical/interfaces.ts';
import type { CanonicalRequest } from '../../canonical/request.ts';
import { badAnswer } from '../shared/answer-body.ts';
import type { CodecContext, WireCodec, WireRequest } from '../shared/codec.ts';
import { expectObject } from '../shared/expect.ts';
import { answerOf } from './answer.ts';
import { modelOf, pathOf, resourceOf } from './interface.ts';
import { decodeRequestBody } from './request-decode.ts';
import { encodeRequestBody } from './request-encode.ts';
import { camelKeys } from './wire.ts';

/** `POST …:countTokens`, the question and the answer. */
export const countRequest: WireCodec<WireRequest, CanonicalRequest> = { decode: decodeCount, encode: encodeCount };
export const countResponse: WireCodec<unknown, CanonicalCountTokensResponse> = { decode: decodeTotal, encode: encodeTotal };

/** The contents alone, or a whole request. */
function decodeCount({ path, body: wire }: WireRequest, context: CodecContext): CanonicalRequest {
  const body = camelKeys(expectObject(wire, 'body'));
  const { generateContentRequest: whole } = body;
  const request = whole === undefined || whole === null ? body : expectObject(whole, 'generateContentRequest');
  return decodeRequestBody(request, context, { model: modelOf(path) });
}

/** Instructions and tools count only in a whole request, which names its model again. */
function encodeCount(request: CanonicalRequest, context: CodecContext): WireRequest {
  const model = context.target?.model ?? request.model;
  const body = encodeRequestBody(request, context);
  const isPlain = Object.keys(body).join() === 'contents';
  return {
    method: 'POST',
    path: pathOf(model, 'countTokens'),
    headers: { 'content-type': 'application/json' },
    body: isPlain ? body : { generateContentRequest: { model: resourceOf(model), ...body } },
  };
}

/** proto3 leaves out a 0. */
const countIn = (value: unknown): number | undefined => {
  const count = Number(value ?? 0);
  return Number.isSafeInteger(count) && count >= 0 ? count : undefined;
};

function decodeTotal(wire: unknown): CanonicalCountTokensResponse {
  const { totalTokens, cachedContentTokenCount: cached } = camelKeys(answerOf(wire));
  const total = countIn(totalTokens);
  if (total === undefined) throw badAnswer('totalTokens', 'must be a number');
  return { input_tokens: total, ...(cached !== undefined && { cached_tokens: countIn(cached) ?? 0 }) };
}

function encodeTotal({ input_tokens: total, cached_tokens: cached }: CanonicalCountTokensResponse): JsonObject {
  return { totalTokens: total, ...(cached !== undefined && { cachedContentTokenCount: cached }) };
}
