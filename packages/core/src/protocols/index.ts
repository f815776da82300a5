import type { ProtocolId } from '../canonical/protocol.ts';
import { anthropicMessages } from './anthropic-messages/index.ts';
import { gemini } from './gemini/index.ts';
import { openaiChat } from './openai-chat/index.ts';
import { openaiResponses } from './openai-responses/index.ts';
import type { Protocol } from './shared/protocol.ts';

/** The registry: one line a protocol. */
export const PROTOCOLS: Readonly<Record<ProtocolId, Protocol>> = {
  'openai-chat': openaiChat,
  'anthropic-messages': anthropicMessages,
  'openai-responses': openaiResponses,
  gemini,
};

/** Shorter names that users may type. */
export const PROTOCOL_ALIASES = {
  openai: 'openai-chat',
  anthropic: 'anthropic-messages',
  responses: 'openai-responses',
} as const;

export type ProtocolName = ProtocolId | keyof typeof PROTOCOL_ALIASES;

/** The protocol of that name, or undefined. */
export function findProtocol(name: string): Protocol | undefined {
  const id = Object.hasOwn(PROTOCOL_ALIASES, name) ? PROTOCOL_ALIASES[name as keyof typeof PROTOCOL_ALIASES] : name; // hasOwn narrows nothing
  return Object.hasOwn(PROTOCOLS, id) ? PROTOCOLS[id as ProtocolId] : undefined;
}
