import { ChatAccumulator } from '../accumulate/chat.ts';
import type { ProtocolId } from '../canonical/protocol.ts';
import type { StreamGrammar } from '../codec/grammar.ts';
import type { Codec, Protocol } from '../codec/protocol.ts';
import { anthropicMessagesCodec } from './anthropic-messages/codec.ts';
import { anthropicMessages } from './anthropic-messages/index.ts';
import { geminiCodec } from './gemini/codec.ts';
import { gemini } from './gemini/index.ts';
import { openaiChatCodec } from './openai-chat/codec.ts';
import { openaiChat } from './openai-chat/index.ts';
import { openaiResponsesCodec } from './openai-responses/codec.ts';
import { openaiResponses } from './openai-responses/index.ts';

// The registry has two tables, because a bundler cannot drop a part of a table: with readers and codecs in one,
// `accumulate` alone would load every encoder. Both are closed over the ids of `canonical/protocol.ts`.

/** Every protocol, for reading streams. */
export const PROTOCOLS: Readonly<Record<ProtocolId, Protocol>> = {
  'openai-chat': openaiChat,
  'anthropic-messages': anthropicMessages,
  'openai-responses': openaiResponses,
  gemini,
};

/** Every protocol, in both directions. The first gets the requests whose path no other claims. */
export const CODECS: Readonly<Record<ProtocolId, Codec>> = {
  'openai-chat': openaiChatCodec,
  'anthropic-messages': anthropicMessagesCodec,
  'openai-responses': openaiResponsesCodec,
  gemini: geminiCodec,
};

/** The grammar of what each protocol's stream encoder writes for a client that requested everything. */
export const GRAMMARS: Readonly<Record<ProtocolId, () => StreamGrammar>> = /* @__PURE__ */ mapCodecs(({ grammar }) => grammar);

/**
 * OpenAI Chat whose results have the whole `chat.completion` beside the message: every choice, every unknown field. Not
 * the default, because it accumulates every chunk twice.
 *
 * ```ts
 * const { completion } = await accumulate(response.body, { protocol: openaiChatWithCompletion });
 * ```
 */
export const openaiChatWithCompletion: Protocol = /* @__PURE__ */ withCompletion(openaiChat);

function withCompletion(protocol: Protocol): Protocol {
  return { ...protocol, accumulator: () => new ChatAccumulator({ everyField: true }) };
}

/** Shorter names that users may type. */
export const PROTOCOL_ALIASES = {
  openai: 'openai-chat',
  anthropic: 'anthropic-messages',
  responses: 'openai-responses',
} as const;

/** The id of a protocol, or an alias. */
export type ProtocolName = ProtocolId | keyof typeof PROTOCOL_ALIASES;

/** A protocol by name, or as its codec. */
export type CodecName = ProtocolName | Codec;

/** The protocol with that id or alias, or undefined. */
export function findProtocol(name: string): Protocol | undefined {
  return find(PROTOCOLS, name);
}

/** The codec with that id or alias, or undefined. */
export function findCodec(name: string): Codec | undefined {
  return find(CODECS, name);
}

/** The protocol itself; throws a TypeError for an unknown name. */
export function resolveProtocol(name: ProtocolName | Protocol): Protocol {
  return typeof name === 'object' ? name : resolve(PROTOCOLS, name);
}

/** The codec itself; throws a TypeError for an unknown name. */
export function resolveCodec(name: CodecName): Codec {
  return typeof name === 'object' ? name : resolve(CODECS, name);
}

function resolve<T>(table: Readonly<Record<ProtocolId, T>>, name: string): T {
  const found = find(table, name);
  if (found === undefined)
    throw new TypeError(`unknown protocol ${JSON.stringify(name)}; known: ${Object.keys(table).join(', ')}`);
  return found;
}

function find<T>(table: Readonly<Record<ProtocolId, T>>, name: string): T | undefined {
  // hasOwn does not narrow the name
  const id = Object.hasOwn(PROTOCOL_ALIASES, name) ? PROTOCOL_ALIASES[name as keyof typeof PROTOCOL_ALIASES] : name;
  return Object.hasOwn(table, id) ? table[id as ProtocolId] : undefined;
}

function mapCodecs<T>(map: (codec: Codec) => T): Record<ProtocolId, T> {
  const entries = Object.values(CODECS).map((codec) => [codec.id, map(codec)]);
  return Object.fromEntries(entries) as Record<ProtocolId, T>; // fromEntries does not know the keys
}
