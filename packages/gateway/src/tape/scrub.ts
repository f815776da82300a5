import { Secret, SecretRegistry } from '../config/secrets.ts';
import { refusal } from '../http/refusal.ts';
import { createRedact } from '../observe/redact.ts';

/**
 * Removes credentials and personal data from recorded exchanges. Credentials of the requests passed to `learn` are
 * known by value, all others by pattern.
 */
export class Scrubber {
  readonly #secrets = new SecretRegistry();
  readonly #redact = createRedact(this.#secrets);
  readonly #known = new Set<string>();
  #bytes = 0;

  /**
   * Remembers the credentials of a request, because upstreams may repeat them in any later response. Throws when there
   * are too many; such a request must not be sent.
   */
  learn(headers: Headers, path: string): void {
    const fresh = [...new Set(listCredentials(headers, path))].filter((value) => !this.#known.has(value));
    const bytes = fresh.reduce((sum, value) => sum + Buffer.byteLength(value), 0);
    if (this.#known.size + fresh.length > MAX_CREDENTIALS || this.#bytes + bytes > MAX_CREDENTIAL_BYTES) throw createLimitError();
    this.#bytes += bytes;
    for (const value of fresh) {
      this.#known.add(value);
      this.#secrets.add(new Secret(value));
      // Response bodies are searched as Latin-1.
      this.#secrets.add(new Secret(Buffer.from(value).toString('latin1')));
    }
  }

  /** A text without secrets. */
  text(text: string): string {
    return this.#redact(text);
  }

  /** A path without secrets and names of projects. */
  path(path: string): string {
    return this.#redact(path).replace(PROJECT_PATH, '$1***');
  }

  /** The request headers to keep, without secrets. */
  requestHeaders(headers: Headers): Record<string, string> {
    return this.#pickHeaders(headers, REQUEST_HEADERS);
  }

  /** The response headers to keep, without secrets. */
  responseHeaders(headers: Headers): Record<string, string> {
    return this.#pickHeaders(headers, RESPONSE_HEADERS);
  }

  /** A request body without secrets and personal data. Bytes that are not UTF-8 stay unchanged. */
  requestBody(body: Buffer): Buffer {
    const text = body.toString('utf8');
    return Buffer.from(text).equals(body) ? Buffer.from(this.#redact(text).replace(PERSON_FIELD, '$1***"')) : body;
  }

  /**
   * A response body. Only known credentials are removed from model output; error bodies come from the upstream and are
   * searched for patterns as well. All other bytes stay unchanged, whatever their encoding.
   */
  responseBody(body: Buffer, status: number): Buffer {
    return Buffer.from(this.bytes(body.toString('latin1'), status >= 400), 'latin1');
  }

  /** Bytes as Latin-1 text: without known credentials, and without texts that look like some if `withPatterns`. */
  bytes(text: string, withPatterns: boolean): string {
    return withPatterns ? this.#redact(text) : this.#secrets.redactKnown(text);
  }

  #pickHeaders(headers: Headers, names: RegExp): Record<string, string> {
    return Object.fromEntries(
      Object.entries(headers)
        .filter(([name]) => names.test(name))
        .map(([name, value]) => [name, this.#redact(value)]),
    );
  }
}

type Headers = Readonly<Record<string, string>>;

/** Request headers that a tape keeps. An allowlist, because keys and personal data may be in any other. */
const REQUEST_HEADERS =
  /^(content-type|accept|user-agent|anthropic-(version|beta)|openai-beta|x-goog-api-client|x-stainless-(lang|package-version|retry-count|helper-method))$/;

/** Response headers that a tape keeps: no cookies and no names of organizations. */
const RESPONSE_HEADERS =
  /^(content-(type|length|language|disposition)|retry-after(-ms)?|x-should-retry|(x-)?request-id|(x|anthropic)-ratelimit-[\w-]+|openai-(processing-ms|version|model))$/;

/** Headers with credentials, whatever prefix a vendor uses. */
const CREDENTIAL_HEADER = /(?:^|-)(?:authorization|api-?key|token|secret|cookie|password)$/;

const CREDENTIAL_PARAMETER = /^(?:key|api[_-]?key|access_token|token)$/i;

/** Credentials that one recording remembers. Every body is searched for each of them. */
export const MAX_CREDENTIALS = 200;

const MAX_CREDENTIAL_BYTES = 64 * 1024;

/** Body fields that identify a person. */
const PERSON_FIELD = /("(?:user|user_id|safety_identifier)"\s{0,8}:\s{0,8}")(?:[^"\\]|\\.)+"/g;

/** Names of projects in paths. */
const PROJECT_PATH = /(\/projects\/)[^/?]+/g;

function* listCredentials(headers: Headers, path: string): Iterable<string> {
  for (const [name, value] of Object.entries(headers))
    if (CREDENTIAL_HEADER.test(name)) yield* listHeaderCredentials(name, value);
  for (const [name, value] of new URLSearchParams(path.split('?', 2)[1] ?? ''))
    if (CREDENTIAL_PARAMETER.test(name) && value !== '') yield value;
}

function* listHeaderCredentials(name: string, value: string): Iterable<string> {
  if (name === 'cookie') {
    yield* value.split(';').flatMap((pair) => pair.slice(pair.indexOf('=') + 1).trim() || []);
    return;
  }
  // More than a scheme and a value are parameters of a signature, which is valid for one request only.
  const [, scheme = '', credential] = /^(?:(\S+)\s+)?(\S+)$/.exec(value.trim()) ?? [];
  if (credential === undefined) return;
  yield credential;
  if (scheme.toLowerCase() !== 'basic') return;
  const decoded = Buffer.from(credential, 'base64').toString();
  const password = decoded.slice(decoded.indexOf(':') + 1);
  if (password !== '') yield password;
}

const createLimitError = () =>
  refusal(
    403,
    'PERMISSION',
    `the recording reached its limit of ${MAX_CREDENTIALS} credentials or ${MAX_CREDENTIAL_BYTES / 1024} KiB of them and cannot redact more; restart "sluice record"`,
  );
