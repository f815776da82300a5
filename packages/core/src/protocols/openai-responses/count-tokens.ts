import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalCountTokensResponse } from '../../canonical/interfaces.ts';
import type { CanonicalRequest } from '../../canonical/request.ts';
import { type CodecContext, CodecError, type WireCodec, type WireRequest } from '../shared/codec.ts';
import { countOf } from '../shared/read.ts';
import { decodeErrorBody } from './errors-decode.ts';
import { decodeRequest } from './request-decode.ts';
import { encodeRequestBody } from './request-encode.ts';

/** `POST /responses/input_tokens`: a request without what concerns only its answer. */
export const countRequest: WireCodec<WireRequest, CanonicalRequest> = { decode: decodeRequest, encode: encodeCountRequest };

export const countResponse: WireCodec<unknown, CanonicalCountTokensResponse> = { decode: decodeCount, encode: encodeCount };

/** What the endpoint knows (openai-node, input-tokens.ts). */
const FIELDS: ReadonlySet<string> = new Set([
  'model',
  'input',
  'instructions',
  'previous_response_id',
  'conversation',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'reasoning',
  'text',
  'truncation',
  'personality',
]);

function encodeCountRequest(request: CanonicalRequest, context: CodecContext): WireRequest {
  const whole = encodeRequestBody(request, context);
  const body = Object.fromEntries(Object.entries(whole).filter(([name]) => FIELDS.has(name)));
  return { method: 'POST', path: '/v1/responses/input_tokens', headers: { 'content-type': 'application/json' }, body };
}

function decodeCount(wire: unknown): CanonicalCountTokensResponse {
  const input_tokens = isObject(wire) ? countOf(wire['input_tokens']) : undefined;
  if (input_tokens === undefined) throw new CodecError(decodeErrorBody(wire));
  return { input_tokens };
}

function encodeCount({ input_tokens }: CanonicalCountTokensResponse): JsonObject {
  return { object: 'response.input_tokens', input_tokens };
}
