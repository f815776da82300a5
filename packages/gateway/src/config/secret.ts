import { inspect } from 'node:util';

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
