/** Seals the opaque reasoning state of upstreams, which clients of other protocols carry from turn to turn. */

import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync } from 'node:crypto';
import type { Provider, Sealing } from '@sluice/core';

/** Seals values with one key. What is sealed for one upstream opens for no other. */
export class Capsules {
  readonly #key: Buffer;
  readonly #nonceKey: Buffer;
  readonly #openKeys: readonly Buffer[];

  /** `sealKey`: any secret of at least 32 bytes. Capsules of `formerKeys` are opened, too; those of other keys are not. */
  constructor(sealKey: Buffer, formerKeys: readonly Buffer[] = []) {
    this.#key = deriveKey(sealKey, 'sluice capsule');
    this.#nonceKey = deriveKey(sealKey, 'sluice capsule nonce');
    this.#openKeys = [this.#key, ...formerKeys.map((key) => deriveKey(key, 'sluice capsule'))];
  }

  /** The sealing of an upstream: bound to the provider, to its account and to the family of the model. */
  for(upstream: Upstream): Sealing {
    const { provider } = upstream;
    const binding = `${provider.id}\n${digestAccount(provider)}\n${findModelFamily(upstream.model)}\n`;
    return {
      provider: provider.id,
      seal: (value, label) => this.seal(value, binding + label),
      open: (sealed, label) => this.open(sealed, binding + label),
    };
  }

  /**
   * Encrypts a value for a binding. The nonce is derived from both, so that the same response is always sealed to the
   * same text: prompt caches and repeated conversions depend on it.
   */
  seal(value: string, binding: string): string {
    const nonce = createHmac('sha256', this.#nonceKey)
      .update(binding)
      .update('\0')
      .update(value)
      .digest()
      .subarray(0, NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#key, nonce).setAAD(Buffer.from(binding));
    const text = Buffer.concat([cipher.update(value, 'utf8'), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64url');
  }

  /** The sealed value; undefined when the text was changed, or sealed for another binding or with another key. */
  open(sealed: string, binding: string): string | undefined {
    const bytes = Buffer.from(sealed, 'base64url');
    // Unused bits of the last character and characters outside of the alphabet are ignored by the decoder.
    if (bytes.length < NONCE_BYTES + TAG_BYTES || bytes.toString('base64url') !== sealed) return undefined;
    for (const key of this.#openKeys) {
      const text = openWith(key, bytes, binding);
      if (text !== undefined) return text;
    }
    return undefined;
  }
}

function openWith(key: Buffer, bytes: Buffer, binding: string): string | undefined {
  const nonce = bytes.subarray(0, NONCE_BYTES);
  const tag = bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES);
  const cipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(binding)).setAuthTag(tag);
  try {
    return cipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES), undefined, 'utf8') + cipher.final('utf8');
  } catch {
    return undefined;
  }
}

/** What a capsule is bound to. */
export interface Upstream {
  provider: Provider;
  /** The provider's name of the model. */
  model: string;
}

const CIPHER = 'aes-256-gcm';

const NONCE_BYTES = 12;

const TAG_BYTES = 16;

const deriveKey = (secret: Buffer, purpose: string): Buffer => Buffer.from(hkdfSync('sha256', secret, '', purpose, 32));

/** A digest of the address and the key of a provider: another account cannot use its state. */
export function digestAccount({ base_url: address, api_key: key = '', adapter_config: config = {} }: Provider): string {
  const { organization = '', project = '' } = config;
  const account = JSON.stringify([address, key, organization, project]);
  return createHash('sha256').update(account).digest('base64url').slice(0, DIGEST_CHARACTERS);
}

const DIGEST_CHARACTERS = 22;

/** `claude` of `anthropic/claude-sonnet-4-5`: models of one family accept each other's state. */
export const findModelFamily = (model: string): string => /[a-z]+/.exec(model.toLowerCase().split('/').at(-1) ?? '')?.[0] ?? '';
