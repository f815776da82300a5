import type { Codec } from '../shared/codec.ts';
import { countRequest, countResponse } from './count-tokens.ts';
import { decodeErrorReply } from './errors-decode.ts';
import { encodeError } from './errors-encode.ts';
import { openaiResponses } from './index.ts';
import { buildHeaders, buildUrl, detectInterface, ownsPath, readTarget, supports } from './interface.ts';
import { modelInfo, models } from './models.ts';
import { FIELDS, IDLE } from './pointers.ts';
import { hasFacts, profileFor, toolRules } from './profiles.ts';
import { decodeRequest } from './request-decode.ts';
import { encodeRequest } from './request-encode.ts';
import { decodeResponse } from './response-decode.ts';
import { encodeResponse } from './response-encode.ts';
import { encodeStream } from './stream-encode.ts';
import { ResponsesGrammar } from './stream-grammar.ts';

export { DEFAULT_RESPONSES_PROFILE, OPENAI_RESPONSES_PROFILES, profileFor } from './profiles.ts';

/** OpenAI Responses in both directions: requests, responses, streams, errors, models, and the count of a request's tokens. */
export const openaiResponsesCodec: Codec = {
  ...openaiResponses,
  roles: ['client', 'upstream'],
  grammar: () => new ResponsesGrammar(),
  profileFor,
  hasFacts,
  toolRules,
  fields: FIELDS,
  idle: IDLE,
  routing: { rank: 2, path: '/v1/responses', mount: 'openai', ownsPath },
  detectInterface,
  supports,
  buildUrl,
  buildHeaders,
  readTarget,
  request: { decode: decodeRequest, encode: encodeRequest },
  response: { decode: decodeResponse, encode: encodeResponse },
  error: { decode: decodeErrorReply, encode: encodeError },
  // There is no event for it, and the SDK throws on unknown events; comments are skipped.
  heartbeat: ': ping\n\n',
  streamEncoder: encodeStream,
  models,
  modelInfo,
  countTokens: { request: countRequest, response: countResponse },
};
