import { inspect } from 'node:util';
import { faultOf, fromHost } from '../providers/base-url.ts';
import type { ProviderRow } from '../providers/row.ts';

/** The variables of the process. */
export type Env = Readonly<Record<string, string | undefined>>;

/** A name, set to something: variables that are set to nothing are not there. */
export function readEnv(env: Env, name: string): string | undefined {
  const value = Object.hasOwn(env, name) ? env[name]?.trim() : undefined;
  return value === '' ? undefined : value;
}

/** `${NAME}` anywhere in a text; `env.NAME` (as Bifrost writes it) and `os.environ/NAME` (as LiteLLM does) as the whole of it. */
const IN_BRACES = /\$\{([^}]*)\}/g;

const WHOLE = /^(?:env\.|os\.environ\/)([A-Za-z_]\w*)$/;

const NAME = /^[A-Za-z_]\w*$/;

/** Whether a text is one reference and nothing else: then it gives nothing away. */
export const isReference = (text: string): boolean => WHOLE.test(text) || /^\$\{[A-Za-z_]\w*\}$/.test(text);

export type Expanded = { text: string; isReference: boolean } | { fault: string };

/** The text with every reference replaced by what it refers to. */
export function expand(text: string, env: Env): Expanded {
  const whole = WHOLE.exec(text)?.[1];
  if (whole !== undefined) return variable(whole, env);
  const faults: string[] = [];
  const expanded = text.replace(IN_BRACES, (_, name: string) => {
    const value = NAME.test(name) ? variable(name, env) : { fault: NO_NAME };
    if ('fault' in value) faults.push(value.fault);
    return 'text' in value ? value.text : '';
  });
  const [fault] = faults;
  return fault === undefined ? { text: expanded, isReference: isReference(text) } : { fault };
}

// The text is not repeated: it may be the secret itself, put into braces by mistake.
const NO_NAME = `what stands in \${…} is not the name of a variable`;

function variable(name: string, env: Env): Expanded {
  const text = readEnv(env, name);
  return text === undefined ? { fault: `the environment variable ${name} is not set` } : { text, isReference: true };
}

const MASK = '***';

/** A value that must not be seen. Whatever prints, logs or serialises it gets `***`; only `reveal()` gives it, to the one who sends it. */
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

/** Shorter values are placeholders (`none`, `ollama`), and would black out ordinary words. */
const SHORTEST = 8;

/** What looks like a secret, whoever it belongs to. Every expression is linear: the text may be a stranger's. */
const PATTERNS: readonly (readonly [RegExp, string])[] = [
  // OpenAI, Anthropic, OpenRouter, DeepSeek, Moonshot …
  [/\bsk-[\w-]{8,}/g, MASK],
  [/\bAIza[\w-]{20,}/g, MASK],
  // Groq, xAI, Hugging Face, GitHub, NVIDIA, Perplexity, Cerebras, Fireworks, Together
  [/\b(?:gsk_|xai-|hf_|gh[opsu]_|github_pat_|nvapi-|pplx-|csk-|fw_|tgp_v1_)[\w-]{16,}/g, MASK],
  // Words after it that are mere words ("Bearer authentication is required") stay.
  [/\b([Bb]earer|BEARER|[Bb]asic|BASIC)(\s{1,4})(?=[a-z]{0,40}[^a-z\s"',;])[\w.~+/=-]{8,}/g, `$1$2${MASK}`],
  [/([?&](?:key|api[_-]?key|access_token|token)=)[^&\s"'#<>]+/gi, `$1${MASK}`],
  [/\b((?:x-api-key|x-goog-api-key|api-key)\\?["']?\s{0,4}[:=]\s{0,4}\\?["']?)(?!\$\{)[^\s"'\\,;}]{6,}/gi, `$1${MASK}`],
  [/("api_?key\\?"\s{0,4}:\s{0,4}\\?")(?!\$\{)[^"\\]{6,}/gi, `$1${MASK}`],
  [/(:\/\/)[^\s/@"']{1,256}@/g, `$1${MASK}@`],
];

/** The live secrets of this process: what they may look like in a text, and how to black them out. */
export class SecretRegistry {
  readonly #forms = new Set<string>();
  #known: RegExp | undefined;

  /** Secrets stay known when a reload has replaced them: streams still use them, and an old key in a log is no better than a new one. */
  add(secret: Secret): void {
    const value = secret.reveal();
    if (value.length < SHORTEST) return;
    const before = this.#forms.size;
    for (const form of listForms(value)) this.#forms.add(form);
    if (this.#forms.size > before) this.#known = undefined;
  }

  /** The text without secrets. For everything that leaves: log lines, error texts, what an upstream said. */
  redact(text: string): string {
    return redactPatterns(this.redactKnown(text));
  }

  /** Without the secrets of this process only: what merely looks like one stays. */
  redactKnown(text: string): string {
    if (this.#forms.size === 0) return text;
    this.#known ??= buildPattern(this.#forms);
    return text.replace(this.#known, MASK);
  }
}

/** The same without knowing any secret. */
export function redactPatterns(text: string): string {
  let clean = text;
  for (const [pattern, replacement] of PATTERNS) clean = clean.replace(pattern, replacement);
  return clean;
}

/** As it is, in a URL, in JSON, in hex, and inside anything in base64. */
export function listForms(value: string): string[] {
  const bytes = Buffer.from(value);
  const hex = bytes.toString('hex');
  return [
    value,
    encodeURIComponent(bytes.toString()), // well-formed, unlike the value
    JSON.stringify(value).slice(1, -1),
    hex,
    hex.toUpperCase(),
    ...[0, 1, 2].flatMap((offset) => base64At(bytes, offset)),
  ].filter((form) => form.length >= SHORTEST);
}

/** Base64 depends on what stands before: the characters that belong wholly to the secret, when it begins `offset` bytes into a group. */
function base64At(bytes: Buffer, offset: number): string[] {
  const text = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64');
  const first = Math.ceil((offset * 8) / 6);
  const last = Math.floor(((offset + bytes.length) * 8) / 6);
  const own = text.slice(first, last);
  return [own, own.replaceAll('+', '-').replaceAll('/', '_')];
}

function buildPattern(texts: Iterable<string>): RegExp {
  // The longest first, or a form that begins another would leave its tail.
  const sorted = [...texts].sort((a, b) => b.length - a.length);
  return new RegExp(sorted.map((text) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')).join('|'), 'g');
}

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
