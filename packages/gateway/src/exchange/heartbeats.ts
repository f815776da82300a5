import type { ProtocolId } from '@sluice/core';

/**
 * What keeps a silent stream alive. Responses has no event for it and its SDK throws on unknown ones; a comment is read by nobody. Gemini's
 * clients break on comments, and have nothing else.
 */
export const HEARTBEATS = {
  'openai-chat': ': ping\n\n',
  'anthropic-messages': 'event: ping\ndata: {"type": "ping"}\n\n',
  'openai-responses': ': ping\n\n',
  gemini: undefined,
} as const satisfies Record<ProtocolId, string | undefined>;
