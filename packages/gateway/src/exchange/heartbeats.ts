import type { ProtocolId } from '@sluice/core';

const COMMENT = Buffer.from(': ping\n\n');

/**
 * What keeps a silent stream alive. Responses has no event for it and its SDK throws on unknown ones; a comment is read by nobody. Gemini's
 * clients break on comments, and have nothing else.
 */
export const HEARTBEATS = {
  'openai-chat': COMMENT,
  'anthropic-messages': Buffer.from('event: ping\ndata: {"type": "ping"}\n\n'),
  'openai-responses': COMMENT,
  gemini: undefined,
} as const satisfies Record<ProtocolId, Uint8Array | undefined>;
