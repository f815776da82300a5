import type { RepairCodec } from '../../packages/core/src/codec/protocol.ts';
import { toy } from './index.ts';
import { decodeErrorReply, encodeErrorReply } from './outcome.ts';
import { profileFor } from './profiles.ts';
import { decodeResponse, encodeResponse } from './response.ts';
import { encodeStream } from './stream-encode.ts';
import { ToyCheck, ToyWatch } from './violations.ts';

export const toyRepair: RepairCodec = {
  ...toy,
  pathEnd: /\/toy\/chat$/,
  profileFor,
  response: { decode: decodeResponse, encode: encodeResponse },
  error: { decode: decodeErrorReply, encode: encodeErrorReply },
  streamEncoder: encodeStream,
  check: (report) => new ToyCheck(report),
  watch: () => new ToyWatch(),
};
