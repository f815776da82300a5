import { readBodyTarget } from '../../codec/deployment.ts';
import { readOutputLimit } from '../../codec/output-limit.ts';
import type { Codec } from '../../codec/protocol.ts';
import { buildHeaders, buildUrl, detectInterface, supports } from './endpoints.ts';
import { ChatGrammar } from './grammar.ts';
import { embeddingRequest, embeddingResponse, modelInfo, models, rerankRequest, rerankResponse } from './models.ts';
import { hasRecordedProfile, profileFor, toolRules } from './profiles.ts';
import { openaiChatRepair } from './repair.ts';
import { decodeRequest } from './request-decode.ts';
import { adjustForwarded, encodeRequest } from './request-encode.ts';
import { completeResponse, decodeResponse, encodeResponse, peekUsage, readPlain } from './response.ts';
import { isUnrequestedUsage } from './violations.ts';
import { IGNORABLE_FIELDS, MIRRORED_FIELDS } from './wire.ts';

export { DEFAULT_CHAT_PROFILE, OPENAI_CHAT_PROFILES, profileFor } from './profiles.ts';

/** OpenAI Chat in both directions: requests, responses, streams, errors, models, embeddings, rerank. */
export const openaiChatCodec: Codec = {
  ...openaiChatRepair,
  roles: ['client', 'upstream'],
  grammar: () => new ChatGrammar(),
  profileFor,
  hasFacts: hasRecordedProfile,
  adjustPassed: adjustForwarded,
  // OpenAI itself starts a new message; most compatible servers continue it.
  acceptsPrefill: ({ prefix, official }) => prefix === true || !official,
  toolRules,
  isUnrequested: isUnrequestedUsage,
  complete: completeResponse,
  place: { model: 'model', list: 'choices' },
  mirroredFields: MIRRORED_FIELDS,
  ignorableFields: IGNORABLE_FIELDS,
  routing: { rank: 3, path: '/v1/chat/completions', mount: 'openai' },
  detectInterface,
  supports,
  buildUrl,
  buildHeaders,
  readTarget: readBodyTarget,
  readOutputLimit,
  request: { decode: decodeRequest, encode: encodeRequest },
  response: { decode: (body, context) => decodeResponse(body, context, readPlain), encode: encodeResponse },
  peekUsage,
  heartbeat: ': ping\n\n',
  responseFields: new Set(['system_fingerprint'] as const),
  models,
  modelInfo,
  embeddings: { request: embeddingRequest, response: embeddingResponse },
  rerank: { request: rerankRequest, response: rerankResponse },
};
