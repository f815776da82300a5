import { Secret, SecretRegistry } from '../config/secret.ts';
import { createRedact } from '../observe/redact.ts';

/** What a tape keeps of a request's head. A list of what may stay: nobody knows all the names that keys and people travel under. */
const REQUEST_HEADERS =
  /^(content-type|accept|user-agent|anthropic-(version|beta)|openai-beta|x-goog-api-client|x-stainless-(lang|package-version|retry-count|helper-method))$/;
/** The same for an answer: neither cookies nor the names of organizations. */
const RESPONSE_HEADERS =
  /^(content-(type|length|language|disposition)|retry-after(-ms)?|x-should-retry|(x-)?request-id|(x|anthropic)-ratelimit-[\w-]+|openai-(processing-ms|version|model))$/;

/** Headers in which keys travel, and what stands before them. */
const KEY_HEADERS = ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key', 'proxy-authorization', 'cookie'];
const SCHEME = /^(bearer|basic)\s+/i;
/** Fields of bodies that say who asks. */
const PERSON = /("(?:user|user_id|safety_identifier)"\s{0,8}:\s{0,8}")(?:[^"\\]|\\.)+"/g;
/** Whose project is asked is nobody's business. */
const PROJECT = /(\/projects\/)[^/?]+/g;

type Headers = Readonly<Record<string, string>>;

/** Takes keys and people out of an exchange. It knows the keys of this request by their values, and all others by their looks. */
export class Scrubber {
  readonly #secrets = new SecretRegistry();
  readonly #redact = createRedact(this.#secrets);

  constructor(headers: Headers = {}, path = '') {
    const query = new URLSearchParams(path.split('?', 2)[1] ?? '');
    const keys = [...KEY_HEADERS.map((name) => headers[name]?.replace(SCHEME, '')), query.get('key')];
    for (const key of keys) if (key) this.#secrets.add(new Secret(key));
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
   * The body of an answer. Only the keys of this very request are taken out of what a model says; errors are an upstream's own words, and may
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
