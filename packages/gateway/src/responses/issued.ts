/** Remembers which account made the encrypted reasoning that clients of the same protocol hold as it came. */

import { createHash } from 'node:crypto';
import { isJson, type Json } from './items.ts';

/**
 * Encrypted reasoning is passed on unchanged to clients of its own protocol, and they send it again. Another account would
 * reject the whole request, so it must not get it. Only digests are kept.
 */
export class IssuedState {
  /** Makers by digest, the oldest first. */
  readonly #makers = new Map<string, string>();
  readonly #capacity: number;
  /** The maker of everything that is remembered; undefined when there are several. */
  #only: string | undefined = '';

  constructor(capacity = CAPACITY) {
    this.#capacity = capacity;
  }

  /** Notes the output of a response. */
  note(output: unknown, maker: string): void {
    if (!Array.isArray(output)) return;
    for (const item of output) {
      if (!isEncryptedReasoning(item)) continue;
      const digest = digestState(item);
      this.#makers.delete(digest);
      this.#makers.set(digest, maker);
      if (this.#only === '') this.#only = maker;
      else if (this.#only !== maker) this.#only = undefined;
      const [oldest] = this.#makers.keys();
      if (this.#makers.size > this.#capacity && oldest !== undefined) this.#makers.delete(oldest);
    }
  }

  /** Whether an item is known to be the encrypted reasoning of another account. */
  isForeign(item: unknown, account: string): boolean {
    // Most gateways have one account: they need no digests of what clients send.
    if (this.#only === '' || this.#only === account || !isEncryptedReasoning(item)) return false;
    const maker = this.#makers.get(digestState(item));
    return maker !== undefined && maker !== account;
  }
}

/** About 10 MB of digests. */
const CAPACITY = 50_000;

/** Whether an item is reasoning that only its maker can read. */
export const isEncryptedReasoning = (item: unknown): item is Json & { encrypted_content: string } =>
  isJson(item) && item['type'] === 'reasoning' && typeof item['encrypted_content'] === 'string';

const digestState = ({ encrypted_content: text }: { encrypted_content: string }): string =>
  createHash('sha256').update(text).digest('base64url').slice(0, 22);
