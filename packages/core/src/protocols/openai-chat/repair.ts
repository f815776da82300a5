import type { RepairCodec } from '../../codec/protocol.ts';
import { OPENAI_CHAT_HABITS, SSE_HABITS } from '../../rules/habits.ts';
import { openaiChat } from './index.ts';
import { decodeErrorReply, encodeError } from './outcome.ts';
import { DEFAULT_CHAT_PROFILE } from './profiles.ts';
import { decodeResponse, encodeResponse } from './response.ts';
import { encodeStream } from './stream-encode.ts';
import { ChatCheck, ChatWatch } from './violations.ts';

/** OpenAI Chat responses in both directions, for their repair: without requests, tables of providers and side endpoints. */
export const openaiChatRepair: RepairCodec = {
  ...openaiChat,
  rules: { ...openaiChat.rules, ...SSE_HABITS, ...OPENAI_CHAT_HABITS },
  pathEnd: /\/chat\/completions$/,
  // The tables of providers describe what requests may contain.
  profileFor: () => DEFAULT_CHAT_PROFILE,
  response: { decode: (body, context) => decodeResponse(body, context), encode: encodeResponse },
  error: { decode: decodeErrorReply, encode: encodeError },
  streamEncoder: encodeStream,
  check: (report) => new ChatCheck(report),
  watch: () => new ChatWatch(),
  terminal: { rule: 'sse/missing-done', frame: { data: '[DONE]' } },
};
