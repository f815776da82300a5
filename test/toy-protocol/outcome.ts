import type { CanonicalUsage, StopReason } from '../../packages/core/src/canonical/message.ts';
import type { CanonicalError } from '../../packages/core/src/canonical/notes.ts';
import { addReplyFacts } from '../../packages/core/src/codec/errors.ts';
import type { WireReply } from '../../packages/core/src/codec/protocol.ts';
import { objectOrEmpty, textOrEmpty, toCount } from '../../packages/core/src/codec/read.ts';
import { isObject } from '../../packages/core/src/json/json.ts';
import { PROTOCOL, type ToyEnd, type ToyResponse } from './wire.ts';

const REASONS: Readonly<Record<ToyEnd, StopReason>> = { done: 'end_turn', limit: 'max_tokens', call: 'tool_use' };

export const decodeEnd = (end: unknown): StopReason => (end === 'limit' || end === 'call' ? REASONS[end] : 'end_turn');

export function encodeEnd(reason: StopReason | null): ToyEnd {
  if (reason === 'max_tokens') return 'limit';
  return reason === 'tool_use' ? 'call' : 'done';
}

export function decodeUsage(used: unknown): CanonicalUsage | undefined {
  if (!isObject(used)) return undefined;
  return { input_tokens: toCount(used['in']) ?? 0, output_tokens: toCount(used['out']) ?? 0 };
}

export const encodeUsage = (usage: CanonicalUsage | undefined): Pick<ToyResponse, 'used'> =>
  usage ? { used: { in: usage.input_tokens, out: usage.output_tokens } } : {};

export function decodeErrorBody(body: unknown): CanonicalError {
  const { code, message } = objectOrEmpty(objectOrEmpty(body)['error']);
  return {
    code: code === 'slow-down' ? 'RATE_LIMIT' : 'UPSTREAM_ERROR',
    message: textOrEmpty(message),
    upstream: { protocol: PROTOCOL, body: objectOrEmpty(body)['error'] },
  };
}

export const decodeErrorReply = (reply: WireReply): CanonicalError => addReplyFacts(decodeErrorBody(reply.body), reply, PROTOCOL);

export const encodeErrorBody = ({ code, message }: CanonicalError) => ({
  toy: 1,
  error: { code: code === 'RATE_LIMIT' ? 'slow-down' : 'broken', message },
});

export const encodeErrorReply = (error: CanonicalError): WireReply => ({
  status: error.code === 'RATE_LIMIT' ? 429 : 500,
  headers: { 'content-type': 'application/json' },
  body: encodeErrorBody(error),
});
