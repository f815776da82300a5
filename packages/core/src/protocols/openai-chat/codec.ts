import { readBodyTarget } from '../../codec/deployment.ts';
import type { Codec } from '../../codec/protocol.ts';
import { buildHeaders, buildUrl, detectInterface, supports } from './endpoints.ts';
import { ChatGrammar } from './grammar.ts';
import { openaiChat } from './index.ts';
import { embeddingRequest, embeddingResponse, modelInfo, models, rerankRequest, rerankResponse } from './models.ts';
import { decodeErrorReply, encodeError } from './outcome.ts';
import { hasFacts, profileFor, toolRules } from './profiles.ts';
import { decodeRequest } from './request-decode.ts';
import { adjustPassed, encodeRequest } from './request-encode.ts';
import { decodeResponse, encodeResponse, glance } from './response.ts';
import { encodeStream } from './stream-encode.ts';
import { FIELDS, IDLE } from './wire.ts';

export { DEFAULT_CHAT_PROFILE, OPENAI_CHAT_PROFILES, profileFor } from './profiles.ts';

/** OpenAI Chat in both directions: requests, responses, streams, errors, models, embeddings, rerank. */
export const openaiChatCodec: Codec = {
  ...openaiChat,
  roles: ['client', 'upstream'],
  grammar: () => new ChatGrammar(),
  profileFor,
  hasFacts,
  adjustPassed,
  toolRules,
  fields: FIELDS,
  idle: IDLE,
  routing: { rank: 3, path: '/v1/chat/completions', mount: 'openai' },
  detectInterface,
  supports,
  buildUrl,
  buildHeaders,
  readTarget: readBodyTarget,
  request: { decode: decodeRequest, encode: encodeRequest },
  response: { decode: decodeResponse, encode: encodeResponse },
  glance,
  error: { decode: decodeErrorReply, encode: encodeError },
  heartbeat: ': ping\n\n',
  terminal: { rule: 'sse/missing-done', frame: { data: '[DONE]' } },
  hasFingerprint: true,
  streamEncoder: encodeStream,
  models,
  modelInfo,
  embeddings: { request: embeddingRequest, response: embeddingResponse },
  rerank: { request: rerankRequest, response: rerankResponse },
};
