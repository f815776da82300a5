import { readOutputLimit } from '../../codec/output-limit.ts';
import type { Codec, OutputLimit } from '../../codec/protocol.ts';
import { findAmount } from '../../codec/read.ts';
import type { JsonObject } from '../../json/json.ts';
import { completeEnvelope, echoRequest } from './content-encode.ts';
import { buildHeaders, buildUrl, detectInterface, ownsPath, readTarget, supports } from './endpoints.ts';
import { ResponsesGrammar } from './grammar.ts';
import { countRequest, countResponse, modelInfo, models } from './models.ts';
import { hasRecordedProfile, profileFor, toolRules } from './profiles.ts';
import { openaiResponsesRepair } from './repair.ts';
import { decodeRequest } from './request-decode.ts';
import { encodeRequest } from './request-encode.ts';
import { decodeResponse, encodeResponse } from './response.ts';
import { encodeStream } from './stream-encode.ts';
import { IGNORABLE_FIELDS, MIRRORED_FIELDS } from './wire.ts';

export { DEFAULT_RESPONSES_PROFILE, OPENAI_RESPONSES_PROFILES, profileFor } from './profiles.ts';

function readToolLimit({ max_tool_calls: most }: JsonObject): Pick<OutputLimit, 'toolCalls'> {
  const toolCalls = findAmount(most);
  return toolCalls === undefined ? {} : { toolCalls };
}

/** OpenAI Responses in both directions: requests, responses, streams, errors, models and token counts. */
export const openaiResponsesCodec: Codec = {
  ...openaiResponsesRepair,
  roles: ['client', 'upstream'],
  grammar: () => new ResponsesGrammar(),
  profileFor,
  hasFacts: hasRecordedProfile,
  acceptsPrefill: () => false,
  toolRules,
  place: { within: 'response', model: 'model', list: 'output' },
  mirroredFields: MIRRORED_FIELDS,
  ignorableFields: IGNORABLE_FIELDS,
  routing: { rank: 2, path: '/v1/responses', mount: 'openai', ownsPath },
  detectInterface,
  supports,
  buildUrl,
  buildHeaders,
  readTarget,
  readOutputLimit: (body) => ({ ...readOutputLimit(body), ...readToolLimit(body) }),
  request: { decode: decodeRequest, encode: encodeRequest },
  response: { decode: decodeResponse, encode: (response, context) => encodeResponse(response, context, echoRequest) },
  streamEncoder: (context) => encodeStream(context, echoRequest),
  complete: (response, context) => completeEnvelope(response, context, echoRequest),
  // The protocol has no such event, and the SDK throws on unknown events but skips comments.
  heartbeat: ': ping\n\n',
  models,
  modelInfo,
  countTokens: { request: countRequest, response: countResponse },
};
