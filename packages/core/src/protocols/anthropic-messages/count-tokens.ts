import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalCountTokensResponse } from '../../canonical/interfaces.ts';
import type { CanonicalRequest } from '../../canonical/request.ts';
import { CodecError, type WireCodec, type WireRequest } from '../shared/codec.ts';
import { countOf } from '../shared/read.ts';
import { decodeErrorBody } from './errors-decode.ts';
import { decodeRequest } from './request-decode.ts';
import { encodeHeaders, encodeQuestionBody } from './request-encode.ts';

/** `POST /v1/messages/count_tokens`: a request without what is said about the answer. */
export const countTokensRequest: WireCodec<WireRequest, CanonicalRequest> = {
  decode: decodeRequest,
  encode: (request, context) => ({
    method: 'POST',
    path: '/v1/messages/count_tokens',
    headers: encodeHeaders(request, context),
    body: withoutAnswer(encodeQuestionBody(request, context)),
  }),
};

/** Fields of our own that only a request for an answer may have. */
const OF_THE_ANSWER: ReadonlySet<string> = new Set(['container', 'inference_geo', 'fallbacks', 'diagnostics']);

const withoutAnswer = (body: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(body).filter(([name]) => !OF_THE_ANSWER.has(name)));

export const countTokensResponse: WireCodec<unknown, CanonicalCountTokensResponse> = {
  decode: (wire) => {
    const count = isObject(wire) ? countOf(wire['input_tokens']) : undefined;
    if (count === undefined) throw new CodecError(decodeErrorBody(wire));
    return { input_tokens: count };
  },
  encode: ({ input_tokens }) => ({ input_tokens }),
};
