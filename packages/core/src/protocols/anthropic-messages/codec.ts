import { readBodyTarget } from '../../codec/deployment.ts';
import { readOutputLimit } from '../../codec/output-limit.ts';
import type { Codec } from '../../codec/protocol.ts';
import { carriesTier } from './blocks.ts';
import { buildHeaders, buildUrl, detectInterface, ownsPath, supports } from './endpoints.ts';
import { MessagesGrammar } from './grammar.ts';
import { countTokensRequest, countTokensResponse, modelInfo, models } from './models.ts';
import { hasRecordedProfile, profileFor, toolRules } from './profiles.ts';
import { anthropicMessagesRepair } from './repair.ts';
import { decodeRequest, leaveProtocol } from './request-decode.ts';
import { encodeRequest } from './request-encode.ts';
import { completeResponse, peekUsage } from './response.ts';
import { IGNORABLE_FIELDS } from './wire.ts';

export { ANTHROPIC_PROFILES, DEFAULT_ANTHROPIC_PROFILE, profileFor } from './profiles.ts';

/** Anthropic Messages in both directions: requests, responses, streams, errors, models and token counts. */
export const anthropicMessagesCodec: Codec = {
  ...anthropicMessagesRepair,
  roles: ['client', 'upstream'],
  grammar: () => new MessagesGrammar(),
  profileFor,
  hasFacts: hasRecordedProfile,
  leave: leaveProtocol,
  acceptsPrefill: ({ prefill }) => prefill,
  toolRules,
  complete: completeResponse,
  place: { within: 'message', model: 'model', list: 'content' },
  ignorableFields: IGNORABLE_FIELDS,
  traits: { continuesPrefill: true, enforcesSchemas: true },
  routing: { rank: 0, path: '/v1/messages', header: 'anthropic-version', mount: 'anthropic', ownsPath },
  detectInterface,
  supports,
  buildUrl,
  buildHeaders,
  readTarget: readBodyTarget,
  readOutputLimit,
  request: { decode: decodeRequest, encode: encodeRequest },
  peekUsage,
  beginsWithUsage: true,
  responseFields: new Set(['stop_sequence', 'server_tool_use'] as const),
  carriesTier,
  heartbeat: 'event: ping\ndata: {"type": "ping"}\n\n',
  modelsQuery: '?limit=1000',
  models,
  modelInfo,
  countTokens: { request: countTokensRequest, response: countTokensResponse },
};
