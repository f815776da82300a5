import type { ProtocolId } from '../canonical/protocol.ts';
import { anthropicMessagesCodec } from './anthropic-messages/codec.ts';
import { geminiCodec } from './gemini/codec.ts';
import { PROTOCOL_ALIASES } from './index.ts';
import { openaiChatCodec } from './openai-chat/codec.ts';
import { openaiResponsesCodec } from './openai-responses/codec.ts';
import type { ProtocolCodec } from './shared/codec.ts';

/** The registry of both directions: one line a protocol. Apart from that of the readers (index.ts), so that who only reads does not load it. */
export const CODECS: Readonly<Record<ProtocolId, ProtocolCodec>> = {
  'openai-chat': openaiChatCodec,
  'anthropic-messages': anthropicMessagesCodec,
  'openai-responses': openaiResponsesCodec,
  gemini: geminiCodec,
};

/** The codec of that name or alias, or undefined. */
export function findCodec(name: string): ProtocolCodec | undefined {
  const id = Object.hasOwn(PROTOCOL_ALIASES, name) ? PROTOCOL_ALIASES[name as keyof typeof PROTOCOL_ALIASES] : name; // hasOwn narrows nothing
  return Object.hasOwn(CODECS, id) ? CODECS[id as ProtocolId] : undefined;
}
