import type { RepairCodec } from '../../codec/protocol.ts';
import { GEMINI_HABITS, SSE_HABITS } from '../../rules/habits.ts';
import { gemini } from './index.ts';
import { decodeErrorReply, encodeError } from './outcome.ts';
import { DEFAULT_GEMINI_PROFILE } from './profiles.ts';
import { decodeResponse, encodeResponse } from './response.ts';
import { encodeStream } from './stream-encode.ts';
import { GeminiCheck, GeminiWatch } from './violations.ts';

/** Gemini responses in both directions, for their repair: without requests, tables of providers and side endpoints. */
export const geminiRepair: RepairCodec = {
  ...gemini,
  rules: { ...gemini.rules, ...SSE_HABITS, ...GEMINI_HABITS },
  pathEnd: /:(?:streamGenerateContent|generateContent)$/,
  streamPathEnd: /:streamGenerateContent$/,
  // The tables of providers describe what requests may contain.
  profileFor: () => DEFAULT_GEMINI_PROFILE,
  response: { decode: decodeResponse, encode: encodeResponse },
  error: { decode: decodeErrorReply, encode: encodeError },
  // Google's clients expect CRLF.
  lineEnd: '\r\n',
  streamEncoder: encodeStream,
  check: (report) => new GeminiCheck(report),
  watch: () => new GeminiWatch(),
};
