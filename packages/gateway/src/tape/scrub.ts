import { Secret, SecretRegistry } from '../config/secrets.ts';
import { refusal } from '../http/refusal.ts';
import { createRedact } from '../observe/redact.ts';

/** What a tape keeps of a request's head. A list of what may stay: nobody knows all the names that keys and people travel under. */
const REQUEST_HEADERS =
  /^(content-type|accept|user-agent|anthropic-(version|beta)|openai-beta|x-goog-api-client|x-stainless-(lang|package-version|retry-count|helper-method))$/;

/** The same for an answer: neither cookies nor the names of organizations. */
const RESPONSE_HEADERS =
  /^(content-(type|length|language|disposition)|retry-after(-ms)?|x-should-retry|(x-)?request-id|(x|anthropic)-ratelimit-[\w-]+|openai-(processing-ms|version|model))$/;

/** Headers and query parameters in which credentials travel, whatever vendors put before the name. */
const CREDENTIAL_HEADER = /(?:^|-)(?:authorization|api-?key|token|secret|cookie|password)$/;

const CREDENTIAL_PARAMETER = /^(?:key|api[_-]?key|access_token|token)$/i;

/** How many credentials, and how much of them, one recording keeps in mind: each costs time whenever a body is searched for it. */
export const MAX_CREDENTIALS = 200;

const MAX_CREDENTIAL_BYTES = 64 * 1024;

/** Fields of bodies that say who asks. */
const PERSON = /("(?:user|user_id|safety_identifier)"\s{0,8}:\s{0,8}")(?:[^"\\]|\\.)+"/g;

/** Whose project is asked is nobody's business. */
const PROJECT = /(\/projects\/)[^/?]+/g;

type Headers = Readonly<Record<string, string>>;

/**
 * Takes keys and people out of exchanges. It knows the credentials of all requests that it was shown by their values, and all others by
 * their looks.
 */
export class Scrubber {
  readonly #secrets = new SecretRegistry();
  readonly #redact = createRedact(this.#secrets);
  readonly #known = new Set<string>();
  #bytes = 0;

  /**
   * Keeps the credentials of a request in mind: upstreams repeat them in responses to this and to later requests. Throws when there are too
   * many; such a request must not be sent.
   */
  learn(headers: Headers, path: string): void {
    const fresh = [...new Set(credentialsIn(headers, path))].filter((value) => !this.#known.has(value));
    const bytes = fresh.reduce((sum, value) => sum + Buffer.byteLength(value), 0);
    if (this.#known.size + fresh.length > MAX_CREDENTIALS || this.#bytes + bytes > MAX_CREDENTIAL_BYTES) throw tooMany();
    this.#bytes += bytes;
    for (const value of fresh) {
      this.#known.add(value);
      this.#secrets.add(new Secret(value));
      // Bodies of responses are searched byte by byte.
      this.#secrets.add(new Secret(Buffer.from(value).toString('latin1')));
    }
  }

  text(text: string): string {
    return this.#redact(text);
  }

  path(path: string): string {
    return this.#redact(path).replace(PROJECT, '$1***');
  }

  requestHeaders(headers: Headers): Record<string, string> {
    return this.#kept(headers, REQUEST_HEADERS);
  }

  responseHeaders(headers: Headers): Record<string, string> {
    return this.#kept(headers, RESPONSE_HEADERS);
  }

  /** The body of a request. What is no text stays as it is. */
  requestBody(body: Buffer): Buffer {
    const text = body.toString('utf8');
    return Buffer.from(text).equals(body) ? Buffer.from(this.#redact(text).replace(PERSON, '$1***"')) : body;
  }

  /**
   * The body of an answer. Only known credentials are taken out of what a model says; errors are an upstream's own words, and may
   * show any. Bytes that are left stay as they are, whatever their encoding.
   */
  responseBody(body: Buffer, status: number): Buffer {
    if (status >= 400) return Buffer.from(this.#redact(body.toString('latin1')), 'latin1');
    return Buffer.from(this.#secrets.redactKnown(body.toString('latin1')), 'latin1');
  }

  #kept(headers: Headers, names: RegExp): Record<string, string> {
    return Object.fromEntries(
      Object.entries(headers)
        .filter(([name]) => names.test(name))
        .map(([name, value]) => [name, this.#redact(value)]),
    );
  }
}

function* credentialsIn(headers: Headers, path: string): Iterable<string> {
  for (const [name, value] of Object.entries(headers)) if (CREDENTIAL_HEADER.test(name)) yield* credentialsOf(name, value);
  for (const [name, value] of new URLSearchParams(path.split('?', 2)[1] ?? ''))
    if (CREDENTIAL_PARAMETER.test(name) && value !== '') yield value;
}

function* credentialsOf(name: string, value: string): Iterable<string> {
  if (name === 'cookie') {
    yield* value.split(';').flatMap((pair) => pair.slice(pair.indexOf('=') + 1).trim() || []);
    return;
  }
  // More than a scheme and a value are parameters of a signature, which differs from request to request and opens nothing else.
  const [, scheme = '', credential] = /^(?:(\S+)\s+)?(\S+)$/.exec(value.trim()) ?? [];
  if (credential === undefined) return;
  yield credential;
  if (scheme.toLowerCase() !== 'basic') return;
  const decoded = Buffer.from(credential, 'base64').toString();
  const password = decoded.slice(decoded.indexOf(':') + 1);
  if (password !== '') yield password;
}

const tooMany = () =>
  refusal(
    403,
    'PERMISSION',
    `this recording has seen ${MAX_CREDENTIALS} credentials or ${MAX_CREDENTIAL_BYTES / 1024} KiB of them, and cannot keep more out of the tape; restart "sluice record"`,
  );
