import type { Protocol } from '../../packages/core/src/codec/protocol.ts';
import { decodeStream } from './stream-decode.ts';
import { fieldsOf, PROTOCOL } from './wire.ts';

export const toy: Protocol = {
  id: PROTOCOL,
  rules: {},
  streamDecoder: decodeStream,
  recognises: (payload) => payload['toy'] === 1,
  extras: fieldsOf,
  callFields: fieldsOf,
};
