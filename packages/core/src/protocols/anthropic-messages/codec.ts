import type { Codec } from '../shared/codec.ts';
import { readBodyTarget } from '../shared/deployment.ts';
import { countTokensRequest, countTokensResponse } from './count-tokens.ts';
import { decodeErrorReply } from './errors-decode.ts';
import { encodeError } from './errors-encode.ts';
import { anthropicMessages } from './index.ts';
import { buildHeaders, buildUrl, detectInterface, ownsPath, supports } from './interface.ts';
import { modelInfo, models } from './models.ts';
import { IDLE } from './pointers.ts';
import { hasFacts, profileFor, toolRules } from './profiles.ts';
import { decodeRequest } from './request-decode.ts';
import { encodeRequest } from './request-encode.ts';
import { decodeResponse, glance } from './response-decode.ts';
import { encodeResponse } from './response-encode.ts';
import { encodeStream } from './stream-encode.ts';
import { MessagesGrammar } from './stream-grammar.ts';

export { ANTHROPIC_PROFILES, DEFAULT_ANTHROPIC_PROFILE, profileFor } from './profiles.ts';

/** Anthropic Messages in both directions: requests, responses, streams, errors, models, counts of tokens. */
export const anthropicMessagesCodec: Codec = {
  ...anthropicMessages,
  roles: ['client', 'upstream'],
  grammar: () => new MessagesGrammar(),
  profileFor,
  hasFacts,
  toolRules,
  idle: IDLE,
  routing: { rank: 0, path: '/v1/messages', header: 'anthropic-version', mount: 'anthropic', ownsPath },
  detectInterface,
  supports,
  buildUrl,
  buildHeaders,
  readTarget: readBodyTarget,
  request: { decode: decodeRequest, encode: encodeRequest },
  response: { decode: decodeResponse, encode: encodeResponse },
  glance,
  error: { decode: decodeErrorReply, encode: encodeError },
  heartbeat: 'event: ping\ndata: {"type": "ping"}\n\n',
  terminal: { rule: 'anthropic/message-stop-missing', frame: { event: 'message_stop', data: '{"type":"message_stop"}' } },
  modelsQuery: '?limit=1000',
  streamEncoder: encodeStream,
  models,
  modelInfo,
  countTokens: { request: countTokensRequest, response: countTokensResponse },
};
