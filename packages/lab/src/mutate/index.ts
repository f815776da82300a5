import type { ProtocolId } from '@sluice/core';
import { ANTHROPIC_BLOCK_MUTATIONS } from './anthropic/blocks.ts';
import { ANTHROPIC_CALL_MUTATIONS } from './anthropic/calls.ts';
import { ANTHROPIC_EVENT_MUTATIONS } from './anthropic/events.ts';
import { CHAT_ARGUMENT_MUTATIONS } from './chat/arguments.ts';
import { CHAT_CONTENT_MUTATIONS } from './chat/content.ts';
import { CHAT_END_MUTATIONS } from './chat/end.ts';
import { CHAT_IDENTITY_MUTATIONS } from './chat/identity.ts';
import { CHAT_SHAPE_MUTATIONS } from './chat/shapes.ts';
import { CHAT_USAGE_MUTATIONS } from './chat/usage.ts';
import { FAILURE_MUTATIONS } from './failures.ts';
import { GEMINI_CHUNK_MUTATIONS } from './gemini/chunks.ts';
import { GEMINI_PART_MUTATIONS } from './gemini/parts.ts';
import type { Mutation, WireStream } from './mutation.ts';
import type { Random } from './random.ts';
import { RESPONSES_CALL_MUTATIONS } from './responses/calls.ts';
import { RESPONSES_EVENT_MUTATIONS } from './responses/events.ts';
import { RESPONSES_ITEM_MUTATIONS } from './responses/items.ts';
import { SSE_MUTATIONS } from './sse.ts';

export { PLAIN_FRAMING, writeStream } from './framing.ts';
export type { Effect, Mutation, Part, WireStream } from './mutation.ts';
export { below, pick, type Random, seededRandom } from './random.ts';

/** Every dialect that a clean stream can be rewritten in. */
export const MUTATIONS: readonly Mutation[] = [
  ...SSE_MUTATIONS,
  ...CHAT_IDENTITY_MUTATIONS,
  ...CHAT_ARGUMENT_MUTATIONS,
  ...CHAT_SHAPE_MUTATIONS,
  ...CHAT_CONTENT_MUTATIONS,
  ...CHAT_END_MUTATIONS,
  ...CHAT_USAGE_MUTATIONS,
  ...ANTHROPIC_EVENT_MUTATIONS,
  ...ANTHROPIC_BLOCK_MUTATIONS,
  ...ANTHROPIC_CALL_MUTATIONS,
  ...RESPONSES_EVENT_MUTATIONS,
  ...RESPONSES_ITEM_MUTATIONS,
  ...RESPONSES_CALL_MUTATIONS,
  ...GEMINI_CHUNK_MUTATIONS,
  ...GEMINI_PART_MUTATIONS,
  ...FAILURE_MUTATIONS,
];

/** The dialects of a protocol. */
export const listMutations = (protocol: ProtocolId): readonly Mutation[] =>
  MUTATIONS.filter(({ protocols }) => protocols.includes(protocol));

const SHORT = {
  'no-index': 'chat/index-missing',
  'index-zero': 'chat/index-zero',
  'blank-ids': 'chat/ids-blank',
  'names-twice': 'chat/names-repeated',
  'object-arguments': 'chat/arguments-object',
  'cumulative-arguments': 'chat/arguments-cumulative',
  'no-done': 'chat/no-done',
  'error-mid-stream': 'failure/error-payload',
  cut: 'failure/cut',
} as const satisfies Record<string, string>;

/** Short names of the most common dialects; every other one has only its id. */
export const SHORT_NAMES: ReadonlyMap<string, string> = new Map(Object.entries(SHORT));

const BY_ID: ReadonlyMap<string, Mutation> = new Map(MUTATIONS.map((mutation) => [mutation.id, mutation]));

/** Finds a dialect by its id or its short name. */
export const findMutation = (name: string): Mutation | undefined => BY_ID.get(SHORT_NAMES.get(name) ?? name);

/** Rewrites a clean stream in those of the dialects that belong to its protocol. */
export const mutateStream = (clean: WireStream, dialects: readonly Mutation[], random: Random): WireStream =>
  dialects
    .filter(({ protocols }) => protocols.includes(clean.protocol))
    .reduce((stream, dialect) => dialect.apply(stream, random), clean);
