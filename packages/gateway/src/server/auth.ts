import { createHash, timingSafeEqual } from 'node:crypto';
import type { HeaderBag } from '@sluice/core';

/** Whether a client may send requests: always when no keys are set, otherwise only with one of them. */
export type Admission = { admitted: true } | { admitted: false; reason: string };

const digest = (key: string): Buffer => createHash('sha256').update(key).digest();

/** Checks client keys. Compares the digests of all keys in constant time. */
export class Gatekeeper {
  readonly #digests: readonly Buffer[];

  constructor(keys: readonly string[]) {
    this.#digests = keys.map(digest);
  }

  /** No keys are set, so every client is admitted. */
  get isOpen(): boolean {
    return this.#digests.length === 0;
  }

  admit(headers: HeaderBag, path: string): Admission {
    if (this.isOpen) return { admitted: true };
    const shown = readKey(headers, path);
    if (shown === undefined)
      return { admitted: false, reason: 'no key was sent: use Authorization: Bearer, x-api-key or x-goog-api-key' };
    const given = digest(shown);
    let isKnown = false;
    for (const known of this.#digests) isKnown = timingSafeEqual(known, given) || isKnown;
    return isKnown ? { admitted: true } : { admitted: false, reason: 'the key is not known here' };
  }
}

/** Clients send their key in different headers; `?key=` is read on Gemini paths only. */
function readKey(headers: HeaderBag, path: string): string | undefined {
  const bearer = /^Bearer\s+(\S+)\s*$/i.exec(headers['authorization'] ?? '')?.[1];
  return bearer ?? headers['x-api-key'] ?? headers['x-goog-api-key'] ?? headers['api-key'] ?? queryKey(path);
}

const GEMINI_PATH = /^\/(upload\/)?v1(beta|alpha)?\d*\/(models|tunedModels|cachedContents|files)\b/;

function queryKey(path: string): string | undefined {
  if (!GEMINI_PATH.test(path)) return undefined;
  const at = path.indexOf('?');
  return at < 0 ? undefined : (new URLSearchParams(path.slice(at + 1)).get('key') ?? undefined);
}
