/** Texts that look like secrets. Apart from the registry of secrets because the console runs this file, too. */

/** What is shown in place of a secret. */
export const MASK = '***';

/** Masks texts that look like secrets, without knowing any. */
export function redactPatterns(text: string): string {
  let clean = text;
  for (const [pattern, replacement] of PATTERNS) clean = clean.replace(pattern, replacement);
  return clean;
}

/** Client keys of Sluice. Without a boundary before it: a client may put its key behind any other text. */
const CLIENT_KEY = /sluice_[0-9A-Za-z]{16}_[0-9A-Za-z]{20,}/g;

/** Masks client keys, of which the gateway has no text. */
export const redactClientKeys = (text: string): string => (text.includes('sluice_') ? text.replace(CLIENT_KEY, MASK) : text);

/** Texts that look like secrets of any provider. Every expression is linear, because texts come from outside. */
const PATTERNS: readonly (readonly [RegExp, string])[] = [
  // OpenAI, Anthropic, OpenRouter, DeepSeek, Moonshot …
  [/\bsk-[\w-]{8,}/g, MASK],
  [/\bAIza[\w-]{20,}/g, MASK],
  // Groq, xAI, Hugging Face, GitHub, NVIDIA, Perplexity, Cerebras, Fireworks, Together
  [/\b(?:gsk_|xai-|hf_|gh[opsu]_|github_pat_|nvapi-|pplx-|csk-|fw_|tgp_v1_)[\w-]{16,}/g, MASK],
  [CLIENT_KEY, MASK],
  // Plain words after the scheme ("Bearer authentication is required") are kept.
  [/\b([Bb]earer|BEARER|[Bb]asic|BASIC)(\s{1,4})(?=[a-z]{0,40}[^a-z\s"',;])[\w.~+/=-]{8,}/g, `$1$2${MASK}`],
  [/([?&](?:key|api[_-]?key|access_token|token)=)[^&\s"'#<>]+/gi, `$1${MASK}`],
  [/\b((?:x-api-key|x-goog-api-key|api-key)\\?["']?\s{0,4}[:=]\s{0,4}\\?["']?)(?!\$\{)[^\s"'\\,;}]{6,}/gi, `$1${MASK}`],
  [/("api_?key\\?"\s{0,4}:\s{0,4}\\?")(?!\$\{)[^"\\]{6,}/gi, `$1${MASK}`],
  [/(:\/\/)[^\s/@"']{1,256}@/g, `$1${MASK}@`],
];
