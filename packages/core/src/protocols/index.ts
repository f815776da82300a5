import { ChatAccumulator } from '../accumulate/chat.ts';
import type { ProtocolId } from '../canonical/protocol.ts';
import type { StreamGrammar } from '../codec/grammar.ts';
import type { Codec, Protocol, RepairCodec } from '../codec/protocol.ts';
import { anthropicMessagesCodec } from './anthropic-messages/codec.ts';
import { anthropicMessages } from './anthropic-messages/index.ts';
import { anthropicMessagesRepair } from './anthropic-messages/repair.ts';
import { geminiCodec } from './gemini/codec.ts';
import { gemini } from './gemini/index.ts';
import { geminiRepair } from './gemini/repair.ts';
import { openaiChatCodec } from './openai-chat/codec.ts';
import { openaiChat } from './openai-chat/index.ts';
import { openaiChatRepair } from './openai-chat/repair.ts';
import { openaiResponsesCodec } from './openai-responses/codec.ts';
import { openaiResponses } from './openai-responses/index.ts';
import { openaiResponsesRepair } from './openai-responses/repair.ts';

// The registry has three tables, because a bundler cannot drop a part of a table: with readers and codecs in one,
// `accumulate` alone would load every encoder. All are closed over the ids of `canonical/protocol.ts`.

/**
 * Every protocol, for reading streams.
 *
 * ```ts
 * const { text } = await accumulate(response, { protocol: PROTOCOLS.gemini });
 * ```
 */
export const PROTOCOLS: Readonly<Record<ProtocolId, Protocol>> = {
  'openai-chat': openaiChat,
  'anthropic-messages': anthropicMessages,
  'openai-responses': openaiResponses,
  gemini,
};

/** The responses of every protocol, for their repair. */
export const REPAIRS: Readonly<Record<ProtocolId, RepairCodec>> = {
  'openai-chat': openaiChatRepair,
  'anthropic-messages': anthropicMessagesRepair,
  'openai-responses': openaiResponsesRepair,
  gemini: geminiRepair,
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

/**
 * The protocol with that id or alias, or undefined.
 *
 * ```ts
 * const protocol = findProtocol('anthropic');
 * protocol?.id; // 'anthropic-messages'
 * ```
 */
export function findProtocol(name: string): Protocol | undefined {
  return find(PROTOCOLS, name);
}

/** The codec with that id or alias, or undefined. */
export function findCodec(name: string): Codec | undefined {
  return find(CODECS, name);
}

/** The protocol itself; throws a TypeError for an unknown name. `where`: the argument, for the message. */
export function resolveProtocol(name: ProtocolName | Protocol | undefined, where: string): Protocol {
  return isGiven(name) ? name : resolve(PROTOCOLS, name, where);
}

/** The codec itself; throws a TypeError for an unknown name. `where`: the argument, for the message. */
export function resolveCodec(name: CodecName | undefined, where: string): Codec {
  return isGiven(name) ? name : resolve(CODECS, name, where);
}

const isGiven = <T extends object>(name: string | T | undefined): name is T => typeof name === 'object' && name !== null;

function resolve<T>(table: Readonly<Record<ProtocolId, T>>, name: string | undefined, where: string): T {
  const found = find(table, String(name));
  if (found !== undefined) return found;
  const names = [...Object.keys(table), ...Object.keys(PROTOCOL_ALIASES)];
  const hint = typeof name === 'string' ? suggest(name, names) : undefined;
  const known = `known: ${names.join(', ')}${hint === undefined ? '' : ` (did you mean "${hint}"?)`}`;
  throw new TypeError(
    `${where}: ${name === undefined ? 'a protocol is required' : `unknown protocol ${JSON.stringify(name)}`}; ${known}`,
  );
}

/** The name that shares the most pairs of letters with a misspelt one; undefined when none shares half of them. */
function suggest(name: string, names: readonly string[]): string | undefined {
  const score = (other: string): number => {
    const pairs = listPairs(name.slice(0, 100).toLowerCase());
    const shared = listPairs(other).filter((pair) => pairs.includes(pair)).length;
    return (2 * shared) / (pairs.length + other.length - 1);
  };
  const [best] = names.toSorted((a, b) => score(b) - score(a));
  return best !== undefined && score(best) >= 0.5 ? best : undefined;
}

const listPairs = (text: string): string[] =>
  Array.from({ length: Math.max(0, text.length - 1) }, (_, i) => text.slice(i, i + 2));

function find<T>(table: Readonly<Record<ProtocolId, T>>, name: string): T | undefined {
  // hasOwn does not narrow the name
  const id = Object.hasOwn(PROTOCOL_ALIASES, name) ? PROTOCOL_ALIASES[name as keyof typeof PROTOCOL_ALIASES] : name;
  return Object.hasOwn(table, id) ? table[id as ProtocolId] : undefined;
}

function mapCodecs<T>(map: (codec: Codec) => T): Record<ProtocolId, T> {
  const entries = Object.values(CODECS).map((codec) => [codec.id, map(codec)]);
  return Object.fromEntries(entries) as Record<ProtocolId, T>; // fromEntries does not know the keys
}
