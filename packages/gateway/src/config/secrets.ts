/** Secrets and the environment: references, values that print as `***`, redaction, and keys of providers. */

import { inspect } from 'node:util';
import { findUrlFault, parseHost } from '../providers/base-url.ts';
import type { ProviderRow } from '../providers/row.ts';
import { MASK, redactPatterns } from './secret-patterns.ts';

/** A value that prints, logs and serialises as `***`; only `reveal()` returns it, for sending. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return MASK;
  }

  toJSON(): string {
    return MASK;
  }

  [inspect.custom](): string {
    return MASK;
  }
}

/** The secrets of this process in every form they may take in a text. */
export class SecretRegistry {
  readonly #forms = new Set<string>();
  #known: RegExp | undefined;

  /** Secrets stay registered after a reload, because running streams still use the old ones. */
  add(secret: Secret): void {
    const value = secret.reveal();
    if (value.length < MIN_LENGTH) return;
    const before = this.#forms.size;
    for (const form of listForms(value)) this.#forms.add(form);
    if (this.#forms.size > before) this.#known = undefined;
  }

  /** Masks secrets in a text that leaves the process: log lines, errors, texts of upstreams. */
  redact(text: string): string {
    return redactPatterns(this.redactKnown(text));
  }

  /** Masks the secrets of this process only, not texts that look like secrets. */
  redactKnown(text: string): string {
    if (this.#forms.size === 0) return text;
    this.#known ??= buildPattern(this.#forms);
    return text.replace(this.#known, MASK);
  }
}

/** Shorter values are placeholders (`none`, `ollama`) and would mask ordinary words. */
const MIN_LENGTH = 8;

/** The value itself, URL-encoded, in JSON, in hex, and as part of a base64 text. */
export function listForms(value: string): string[] {
  const bytes = Buffer.from(value);
  const hex = bytes.toString('hex');
  return [
    value,
    encodeURIComponent(bytes.toString()), // the value may have lone surrogates, which encodeURIComponent rejects
    JSON.stringify(value).slice(1, -1),
    hex,
    hex.toUpperCase(),
    ...[0, 1, 2].flatMap((offset) => encodeBase64At(bytes, offset)),
  ].filter((form) => form.length >= MIN_LENGTH);
}

/** The base64 characters that depend on the secret alone when it starts `offset` bytes into a group of three. */
function encodeBase64At(bytes: Buffer, offset: number): string[] {
  const text = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64');
  const first = Math.ceil((offset * 8) / 6);
  const last = Math.floor(((offset + bytes.length) * 8) / 6);
  const part = text.slice(first, last);
  return [part, part.replaceAll('+', '-').replaceAll('/', '_')];
}

function buildPattern(texts: Iterable<string>): RegExp {
  // Longest first: a form that is a prefix of another would leave its rest unmasked.
  const sorted = [...texts].sort((a, b) => b.length - a.length);
  return new RegExp(sorted.map((text) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')).join('|'), 'g');
}

/** Environment variables. */
export type Env = Readonly<Record<string, string | undefined>>;

/** The trimmed value of a variable; undefined when it is absent or empty. */
export function readEnv(env: Env, name: string): string | undefined {
  const value = Object.hasOwn(env, name) ? env[name]?.trim() : undefined;
  return value === '' ? undefined : value;
}

/** Replaces every reference in a text by the value of its variable. */
export function expandReferences(text: string, env: Env): Expanded {
  const whole = WHOLE_REFERENCE.exec(text)?.[1];
  if (whole !== undefined) return readVariable(whole, env);
  const faults: string[] = [];
  const expanded = text.replace(BRACE_REFERENCE, (_, name: string) => {
    const value = NAME.test(name) ? readVariable(name, env) : { fault: INVALID_NAME };
    if ('fault' in value) faults.push(value.fault);
    return 'text' in value ? value.text : '';
  });
  const [fault] = faults;
  return fault === undefined ? { text: expanded, isReference: isReference(text) && expanded !== text } : { fault };
}

/** The expanded text, or why a reference cannot be resolved. */
export type Expanded = { text: string; isReference: boolean } | { fault: string };

/** Whether the whole text is one reference, which reveals nothing. */
export const isReference = (text: string): boolean =>
  WHOLE_REFERENCE.test(text) || /^\$\{[A-Za-z_]\w*\}$/.test(text) || readFileReference(text) !== undefined;

/** `${NAME}` anywhere in a text. `env:NAME`, `env.NAME` (Bifrost) and `os.environ/NAME` (LiteLLM) only as the whole text. */
const BRACE_REFERENCE = /\$\{([^}]*)\}/g;

const WHOLE_REFERENCE = /^(?:env[:.]|os\.environ\/)([A-Za-z_]\w*)$/;

/** The path of `file:PATH` or `file:///PATH`, also with a drive (`file:C:\\key`, `file:///C:/key`); undefined for any other text. */
export const readFileReference = (text: string): string | undefined =>
  /^file:(?:\/\/(?=\/))?(?:\/(?=[A-Za-z]:[\\/]))?(\S(?:.*\S)?)$/.exec(text)?.[1];

const NAME = /^[A-Za-z_]\w*$/;

// Does not quote the text, which may be the secret itself in braces.
const INVALID_NAME = `\${…} must contain the name of an environment variable`;

function readVariable(name: string, env: Env): Expanded {
  const text = readEnv(env, name);
  return text === undefined
    ? { fault: `the environment variable ${name} is not set; set it, or change the reference` }
    : { text, isReference: true };
}

/** What the environment has for a provider; undefined when no variable is set. */
export type Lookup<T> = Found<T> | { readonly fault: string; readonly from: string } | undefined;

/** A value from the environment, and the variable that holds it. */
interface Found<T> {
  readonly value: T;
  readonly from: string;
}

/** Finds the key of a provider in the environment. */
export function findKey(env: Env, { key_env, token_env = [] }: ProviderRow): Lookup<FoundKey> {
  for (const from of [...key_env, ...token_env]) {
    const text = readEnv(env, from);
    if (text === undefined) continue;
    if (!KEY.test(text)) return { fault: 'must be printable ASCII without spaces', from };
    return { value: { key: new Secret(text), isToken: token_env.includes(from) }, from };
  }
  return undefined;
}

/** A key or token from the environment. */
export interface FoundKey {
  readonly key: Secret;
  /** Tokens are sent as `Authorization: Bearer` even if keys are not. */
  readonly isToken: boolean;
}

/** One word of printable ASCII; anything else cannot be sent in a header. */
const KEY = /^[\x21-\x7e]+$/;

/** Finds the address of a provider in the environment. */
export function findAddress(env: Env, { base_env = [], base_url, local, resource }: ProviderRow): Lookup<string> {
  for (const from of base_env) {
    const text = readEnv(env, from);
    if (text === undefined) continue;
    // Variables of local servers often hold a host without a scheme.
    const value = local && base_url !== undefined ? parseHost(text, Number(new URL(base_url).port)) : text;
    const fault = findUrlFault(value);
    return fault === undefined ? { value, from } : { fault, from };
  }
  const name = resource && readEnv(env, resource.env);
  if (!resource || name === undefined) return undefined;
  if (!/^[a-z\d-]+$/i.test(name)) return { fault: 'is not a valid resource name', from: resource.env };
  return { value: `https://${name}.${resource.domains[0]}`, from: resource.env };
}

/** Finds the API version of a provider in the environment. */
export function findVersion(env: Env, { version_env = [] }: ProviderRow): string | undefined {
  for (const name of version_env) {
    const version = readEnv(env, name);
    if (version !== undefined) return version;
  }
  return undefined;
}
