import type { Codec } from '../shared/codec.ts';
import { countRequest, countResponse } from './count-tokens.ts';
import { embeddingRequest, embeddingResponse } from './embeddings.ts';
import { decodeErrorReply } from './errors-decode.ts';
import { encodeError } from './errors-encode.ts';
import { gemini } from './index.ts';
import { buildHeaders, buildUrl, detectInterface, isSse, normalise, ownsPath, readTarget, supports } from './interface.ts';
import { modelInfo, models } from './models.ts';
import { FIELDS, IDLE } from './pointers.ts';
import { hasFacts, profileFor, toolRules } from './profiles.ts';
import { decodeRequest } from './request-decode.ts';
import { encodeRequest } from './request-encode.ts';
import { decodeResponse } from './response-decode.ts';
import { encodeResponse } from './response-encode.ts';
import { encodeStream } from './stream-encode.ts';
import { GeminiGrammar } from './stream-grammar.ts';
import { camelOf } from './wire.ts';

export { keyOf } from './interface.ts';
export { DEFAULT_GEMINI_PROFILE, GEMINI_MODELS, GEMINI_PROFILES, profileFor } from './profiles.ts';

/** Gemini in both directions: requests, responses, streams, errors, models, embeddings, token counts. */
export const geminiCodec: Codec = {
  ...gemini,
  roles: ['client', 'upstream'],
  grammar: () => new GeminiGrammar(true),
  profileFor,
  hasFacts,
  toolRules,
  fields: FIELDS,
  idle: IDLE,
  nameOf: camelOf,
  routing: { rank: 1, header: 'x-goog-api-key', mount: 'genai', ownsPath, isExclusive: true, normalise },
  detectInterface,
  supports,
  buildUrl,
  buildHeaders,
  readTarget,
  request: { decode: decodeRequest, encode: encodeRequest },
  response: { decode: decodeResponse, encode: encodeResponse },
  error: { decode: decodeErrorReply, encode: encodeError },
  framing: (path) => (isSse(path) ? 'sse' : 'json-array'),
  // Google ends its lines with CRLF, and its clients look for it. They fail on comments, and there is no event for a heartbeat.
  lineEnd: '\r\n',
  repeatsErrors: true,
  modelsQuery: '?pageSize=1000',
  streamEncoder: encodeStream,
  models,
  modelInfo,
  embeddings: { request: embeddingRequest, response: embeddingResponse },
  countTokens: { request: countRequest, response: countResponse },
};
