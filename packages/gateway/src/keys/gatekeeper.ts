/** Finds who sends a request, by the key in its headers. */

import { createHash } from 'node:crypto';
import type { HeaderBag } from '@sluice/core';
import { ANYBODY, type Caller } from './caller.ts';
import { type Admission, describeExpiry, isExpired, type KeyBook } from './key-book.ts';

/** A key of the configuration, and who sends it. */
export interface ConfiguredKey {
  readonly key: string;
  readonly caller: Caller;
}

/** The stored keys that a gatekeeper needs. */
type Keys = Pick<KeyBook, 'isUsed' | 'isLost' | 'check' | 'checkReference'>;

const NO_KEYS: Keys = { isUsed: false, isLost: false, check: () => undefined, checkReference: () => undefined };

/** Checks client keys: those of the configuration and those of the store. One lookup, however many there are. */
export class Gatekeeper {
  /** By digest: the time of a lookup shows nothing about the key. */
  readonly #configured: ReadonlyMap<string, Admission & { admitted: true }>;
  readonly #stored: Keys;
  readonly #maxLength: number;
  readonly #now: () => number;

  constructor(configured: readonly ConfiguredKey[], stored: Keys = NO_KEYS, now: () => number = Date.now) {
    this.#configured = new Map(configured.map(({ key, caller }) => [digest(key), { admitted: true, caller }]));
    this.#maxLength = configured.reduce((max, { key }) => Math.max(max, key.length), 0);
    this.#stored = stored;
    this.#now = now;
  }

  /** There are no keys, so every client is admitted. */
  get isOpen(): boolean {
    return this.#configured.size === 0 && !this.#stored.isUsed;
  }

  /** Whether the request has one of the keys. */
  admit(headers: HeaderBag, path: string): Admission {
    if (this.isOpen) return ANYBODY_ADMITTED;
    if (this.#stored.isLost && this.#configured.size === 0) return KEYS_LOST;
    const key = readKey(headers, path);
    if (key === undefined) return KEY_REQUIRED;
    return this.#stored.check(key) ?? this.#findConfigured(key) ?? INVALID_KEY;
  }

  /** Whether an operator may use a key, which is chosen by its id or name; undefined when it is unknown. */
  admitReference(reference: string | undefined): Admission | undefined {
    if (reference === undefined) return this.isOpen ? ANYBODY_ADMITTED : KEY_NOT_CHOSEN;
    const configured = [...this.#configured.values()].find(({ caller }) => caller.id === reference || caller.name === reference);
    return this.#checkExpiry(configured) ?? this.#stored.checkReference(reference);
  }

  #findConfigured(key: string): Admission | undefined {
    // Longer texts are not worth a digest.
    return this.#checkExpiry(key.length > this.#maxLength ? undefined : this.#configured.get(digest(key)));
  }

  #checkExpiry(found: (Admission & { admitted: true }) | undefined): Admission | undefined {
    if (!found || !isExpired(found.caller.policy.expiresAt, this.#now())) return found;
    return { admitted: false, reason: describeExpiry(found.caller) };
  }
}

const ANYBODY_ADMITTED: Admission = { admitted: true, caller: ANYBODY };

const KEY_REQUIRED: Admission = {
  admitted: false,
  reason: 'client key required: send it as Authorization: Bearer KEY, x-api-key or x-goog-api-key',
};

const KEYS_LOST: Admission = {
  admitted: false,
  reason:
    'the database of this gateway has lost its client keys, so no client is admitted; its operator restores the database or creates new keys (sluice keys create NAME)',
};

const KEY_NOT_CHOSEN: Admission = {
  admitted: false,
  reason: 'this gateway has client keys; choose the key whose limits and budget apply',
};

const INVALID_KEY: Admission = {
  admitted: false,
  reason: 'invalid client key; the operator of the gateway issues keys (sluice keys create NAME)',
};

const digest = (key: string): string => createHash('sha256').update(key).digest('base64');

/** Clients send their key in different headers; `?key=` is read on Gemini paths only. */
function readKey(headers: HeaderBag, path: string): string | undefined {
  const bearer = /^Bearer\s+(\S+)\s*$/i.exec(headers['authorization'] ?? '')?.[1];
  return bearer ?? headers['x-api-key'] ?? headers['x-goog-api-key'] ?? headers['api-key'] ?? readQueryKey(path);
}

const GEMINI_PATH = /^\/(upload\/)?v1(beta|alpha)?\d*\/(models|tunedModels|cachedContents|files)\b/;

function readQueryKey(path: string): string | undefined {
  if (!GEMINI_PATH.test(path)) return undefined;
  const at = path.indexOf('?');
  return at < 0 ? undefined : (new URLSearchParams(path.slice(at + 1)).get('key') ?? undefined);
}
