import type { RepairCodec } from '../../codec/protocol.ts';
import { ANTHROPIC_MESSAGES_HABITS, SSE_HABITS } from '../../rules/habits.ts';
import { anthropicMessages } from './index.ts';
import { decodeErrorReply, encodeError } from './outcome.ts';
import { DEFAULT_ANTHROPIC_PROFILE } from './profiles.ts';
import { decodeResponse, encodeResponse } from './response.ts';
import { encodeStream } from './stream-encode.ts';
import { AnthropicCheck, AnthropicWatch } from './violations.ts';

/** Anthropic Messages responses in both directions, for their repair: without requests, tables of providers and side endpoints. */
export const anthropicMessagesRepair: RepairCodec = {
  ...anthropicMessages,
  rules: { ...anthropicMessages.rules, ...SSE_HABITS, ...ANTHROPIC_MESSAGES_HABITS },
  pathEnd: /\/messages$/,
  // The tables of providers describe what requests may contain.
  profileFor: () => DEFAULT_ANTHROPIC_PROFILE,
  response: { decode: decodeResponse, encode: encodeResponse },
  error: { decode: decodeErrorReply, encode: encodeError },
  streamEncoder: encodeStream,
  check: (report) => new AnthropicCheck(report),
  watch: () => new AnthropicWatch(),
  terminal: { rule: 'anthropic/message-stop-missing', frame: { event: 'message_stop', data: '{"type":"message_stop"}' } },
};
