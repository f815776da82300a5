import { faultOf, fromHost } from '../providers/base-url.ts';
import type { ProviderRow } from '../providers/row.ts';
import { type Env, readEnv } from './references.ts';
import { Secret } from './secret.ts';

/** What the environment says of a provider, and which variable says it. */
interface Found<T> {
  readonly value: T;
  readonly from: string;
}

export type Lookup<T> = Found<T> | { readonly fault: string; readonly from: string } | undefined;

/** One word of printable ASCII: anything else cannot be sent in a header. */
const KEY = /^[\x21-\x7e]+$/;

export interface FoundKey {
  readonly key: Secret;
  /** Tokens go out as `Bearer` where keys do not. */
  readonly isToken: boolean;
}

export function keyIn(env: Env, { key_env, token_env = [] }: ProviderRow): Lookup<FoundKey> {
  for (const from of [...key_env, ...token_env]) {
    const text = readEnv(env, from);
    if (text === undefined) continue;
    if (!KEY.test(text)) return { fault: 'is not one word of printable ASCII', from };
    return { value: { key: new Secret(text), isToken: token_env.includes(from) }, from };
  }
  return undefined;
}

export function addressIn(env: Env, { base_env = [], base_url, local, resource }: ProviderRow): Lookup<string> {
  for (const from of base_env) {
    const text = readEnv(env, from);
    if (text === undefined) continue;
    // Servers on this machine are often told as a mere host.
    const value = local && base_url !== undefined ? fromHost(text, Number(new URL(base_url).port)) : text;
    const fault = faultOf(value);
    return fault === undefined ? { value, from } : { fault, from };
  }
  const name = resource && readEnv(env, resource.env);
  if (!resource || name === undefined) return undefined;
  if (!/^[a-z\d-]+$/i.test(name)) return { fault: 'is not the name of a resource', from: resource.env };
  return { value: `https://${name}.${resource.domains[0]}`, from: resource.env };
}

export function versionIn(env: Env, { version_env = [] }: ProviderRow): string | undefined {
  for (const name of version_env) {
    const version = readEnv(env, name);
    if (version !== undefined) return version;
  }
  return undefined;
}
