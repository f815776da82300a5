import type { Codec } from '../shared/codec.ts';
import { readBodyTarget } from '../shared/deployment.ts';
import { embeddingRequest, embeddingResponse } from './embeddings.ts';
import { decodeErrorReply } from './errors-decode.ts';
import { encodeError } from './errors-encode.ts';
import { openaiChat } from './index.ts';
import { buildHeaders, buildUrl, detectInterface, supports } from './interface.ts';
import { modelInfo, models } from './models.ts';
import { adjustPassed } from './passed.ts';
import { FIELDS, IDLE } from './pointers.ts';
import { hasFacts, profileFor, toolRules } from './profiles.ts';
import { decodeRequest } from './request-decode.ts';
import { encodeRequest } from './request-encode.ts';
import { rerankRequest, rerankResponse } from './rerank.ts';
import { decodeResponse, glance } from './response-decode.ts';
import { encodeResponse } from './response-encode.ts';
import { encodeStream } from './stream-encode.ts';
import { ChatGrammar } from './stream-grammar.ts';

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
