/** Keeps conversations with the target that has their prompt in its cache. */

import { createHash } from 'node:crypto';
import { BoundedCache } from '@sluice/core/internal';
import { findPrefix } from './prompt-blocks.ts';

/** Which target served which conversation last. */
export class Affinity {
  readonly #now: () => number;
  readonly #bound = new BoundedCache<Binding>(CONVERSATION_LIMITS);

  /** `now`: milliseconds of a monotonic clock. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** The target of a conversation; undefined when there is none, or when its cache has expired. */
  find(conversation: string): string | undefined {
    const binding = this.#bound.get(conversation);
    if (!binding) return undefined;
    if (this.#now() < binding.until) return binding.target;
    this.#bound.delete(conversation);
    return undefined;
  }

  /** A target has responded in a conversation and has its prompt in its cache for this long. */
  bind(conversation: string, target: string, ms: number): void {
    this.#bound.set(conversation, { target, until: this.#now() + ms });
  }
}

interface Binding {
  readonly target: string;
  readonly until: number;
}

/** Clients can invent any number of conversations. A key has 22 characters. */
const CONVERSATION_LIMITS = { entries: 20_000, bytes: 2 * 1024 * 1024 };

/**
 * Names a conversation by its session, or else by the beginning of its prompt, which stays the same from turn to turn.
 * Conversations of different callers are never the same. Undefined when the request has neither.
 */
export function nameConversation({ caller, model, session, body }: ConversationFacts): string | undefined {
  const text = session ?? findPrefix(body);
  if (text === undefined) return undefined;
  const name = JSON.stringify([caller, model, session === undefined ? 'prefix' : 'session']);
  return createHash('sha256').update(name).update(text).digest('base64url').slice(0, NAME_LENGTH);
}

const NAME_LENGTH = 22;

/** What tells one conversation from another. */
export interface ConversationFacts {
  /** The id of the client key. */
  readonly caller: string;
  /** The model that is used: targets have separate caches for each. */
  readonly model: string;
  readonly session: string | undefined;
  readonly body: unknown;
}
