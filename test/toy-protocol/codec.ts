import type { Codec } from '../../packages/core/src/codec/protocol.ts';
import { buildHeaders, buildUrl, detectInterface, PATH, readTarget, supports } from './endpoints.ts';
import { ToyGrammar } from './grammar.ts';
import { toy } from './index.ts';
import { models } from './models.ts';
import { decodeErrorReply, encodeErrorReply } from './outcome.ts';
import { hasFacts, profileFor, toolRules } from './profiles.ts';
import { decodeRequest } from './request-decode.ts';
import { encodeRequest } from './request-encode.ts';
import { decodeResponse, encodeResponse } from './response.ts';
import { encodeStream } from './stream-encode.ts';

/** A protocol that nothing outside this folder knows. */
export const toyCodec: Codec = {
  ...toy,
  roles: ['client', 'upstream'],
  grammar: () => new ToyGrammar(),
  profileFor,
  hasFacts,
  acceptsPrefill: () => false,
  toolRules,
  detectInterface,
  supports,
  buildUrl,
  buildHeaders,
  readTarget,
  request: { decode: decodeRequest, encode: encodeRequest },
  response: { decode: decodeResponse, encode: encodeResponse },
  error: { decode: decodeErrorReply, encode: encodeErrorReply },
  streamEncoder: encodeStream,
  routing: { rank: 9, path: PATH, ownsPath: (path) => path.startsWith('/toy/') },
  models,
};
