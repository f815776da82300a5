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
import type { Mutation } from './mutation.ts';
import { RESPONSES_CALL_MUTATIONS } from './responses/calls.ts';
import { RESPONSES_EVENT_MUTATIONS } from './responses/events.ts';
import { RESPONSES_ITEM_MUTATIONS } from './responses/items.ts';
import { SSE_MUTATIONS } from './sse.ts';

export { PLAIN_FRAMING, writeStream } from './framing.ts';
export type { Effect, Mutation, Part, WireStream } from './mutation.ts';
export { seededRandom } from './random.ts';

/** Every dialect that can be made out of a clean stream, by id. */
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

/** The dialects that a protocol is spoken in. */
export const mutationsOf = (protocol: ProtocolId): readonly Mutation[] =>
  MUTATIONS.filter(({ protocols }) => protocols.includes(protocol));
