import type { RepairCodec } from '../../codec/protocol.ts';
import { SSE_HABITS } from '../../rules/habits.ts';
import { openaiResponses } from './index.ts';
import { decodeErrorReply, encodeError } from './outcome.ts';
import { DEFAULT_RESPONSES_PROFILE } from './profiles.ts';
import { decodeResponse, encodeResponse } from './response.ts';
import { encodeStream } from './stream-encode.ts';
import { ResponsesCheck, ResponsesWatch } from './violations.ts';

/** OpenAI Responses responses in both directions, for their repair: without requests, tables of providers and side endpoints. */
export const openaiResponsesRepair: RepairCodec = {
  ...openaiResponses,
  rules: { ...openaiResponses.rules, ...SSE_HABITS },
  pathEnd: /\/responses$/,
  // The tables of providers describe what requests may contain.
  profileFor: () => DEFAULT_RESPONSES_PROFILE,
  response: { decode: decodeResponse, encode: (response, context) => encodeResponse(response, context) },
  error: { decode: decodeErrorReply, encode: encodeError },
  streamEncoder: (context) => encodeStream(context),
  check: (report) => new ResponsesCheck(report),
  watch: () => new ResponsesWatch(),
};
