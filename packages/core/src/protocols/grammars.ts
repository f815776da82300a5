import type { ProtocolId } from '../canonical/protocol.ts';
import { MessagesGrammar } from './anthropic-messages/stream-grammar.ts';
import { GeminiGrammar } from './gemini/stream-grammar.ts';
import { ChatGrammar } from './openai-chat/stream-grammar.ts';
import { ResponsesGrammar } from './openai-responses/stream-grammar.ts';
import type { StreamGrammar } from './shared/stream-grammar.ts';

/** The grammar of what each protocol's encoder writes, for a client that asked for everything: one line a protocol. */
export const GRAMMARS: Readonly<Record<ProtocolId, () => StreamGrammar>> = {
  'openai-chat': () => new ChatGrammar(),
  'anthropic-messages': () => new MessagesGrammar(),
  'openai-responses': () => new ResponsesGrammar(),
  gemini: () => new GeminiGrammar(true),
};
