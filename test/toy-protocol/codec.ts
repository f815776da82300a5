import type { Codec } from '../../packages/core/src/codec/protocol.ts';
import { buildHeaders, buildUrl, detectInterface, PATH, readTarget, supports } from './endpoints.ts';
import { ToyGrammar } from './grammar.ts';
import { models } from './models.ts';
import { hasFacts, toolRules } from './profiles.ts';
import { toyRepair } from './repair.ts';
import { decodeRequest } from './request-decode.ts';
import { encodeRequest } from './request-encode.ts';

/** A protocol that nothing outside this folder knows. */
export const toyCodec: Codec = {
  ...toyRepair,
  roles: ['client', 'upstream'],
  grammar: () => new ToyGrammar(),
  hasFacts,
  acceptsPrefill: () => false,
  toolRules,
  place: { model: 'model', list: 'words' },
  detectInterface,
  supports,
  buildUrl,
  buildHeaders,
  readTarget,
  request: { decode: decodeRequest, encode: encodeRequest },
  routing: { rank: 9, path: PATH, ownsPath: (path) => path.startsWith('/toy/') },
  models,
};
