import type { Codec } from '../../codec/protocol.ts';
import { buildHeaders, buildUrl, detectInterface, isSse, normalise, ownsPath, readTarget, supports } from './endpoints.ts';
import { GeminiGrammar } from './grammar.ts';
import { countRequest, countResponse, embeddingRequest, embeddingResponse, modelInfo, models } from './models.ts';
import { hasRecordedProfile, profileFor, toolRules } from './profiles.ts';
import { geminiRepair } from './repair.ts';
import { decodeRequest } from './request-decode.ts';
import { adjustForwarded, encodeRequest } from './request-encode.ts';
import { readOutputLimit } from './settings.ts';
import { IGNORABLE_FIELDS, MIRRORED_FIELDS, toCamelCase } from './wire.ts';

export { readKey } from './endpoints.ts';
export { DEFAULT_GEMINI_PROFILE, GEMINI_MODELS, GEMINI_PROFILES, profileFor } from './profiles.ts';

/** Gemini in both directions: requests, responses, streams, errors, models, embeddings, token counts. */
export const geminiCodec: Codec = {
  ...geminiRepair,
  roles: ['client', 'upstream'],
  grammar: () => new GeminiGrammar(true),
  profileFor,
  hasFacts: hasRecordedProfile,
  adjustPassed: adjustForwarded,
  acceptsPrefill: () => true,
  toolRules,
  place: { within: 'response', model: 'modelVersion', list: 'candidates' },
  mirroredFields: MIRRORED_FIELDS,
  ignorableFields: IGNORABLE_FIELDS,
  traits: { continuesPrefill: true, enforcesSchemas: true },
  standardName: toCamelCase,
  routing: { rank: 1, header: 'x-goog-api-key', mount: 'genai', ownsPath, isExclusive: true, normalise },
  detectInterface,
  supports,
  buildUrl,
  buildHeaders,
  readTarget,
  readOutputLimit,
  request: { decode: decodeRequest, encode: encodeRequest },
  framing: (path) => (isSse(path) ? 'sse' : 'json-array'),
  // No heartbeat: Google's clients fail on comments, and there is no event for it.
  repeatsErrors: true,
  // The default of every vendor says nothing.
  carriesTier: (tier) => tier === 'default' || tier === 'standard',
  modelsQuery: '?pageSize=1000',
  models,
  modelInfo,
  embeddings: { request: embeddingRequest, response: embeddingResponse },
  countTokens: { request: countRequest, response: countResponse },
};
