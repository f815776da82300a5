/** Who may use the admin API: programs with the admin key, browsers with a session, and local programs when no key is set. */

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { HeaderBag } from '@sluice/core';
import { BoundedCache } from '@sluice/core/internal';
import type { Secret } from '../config/secrets.ts';
import type { ClientAddress } from '../http/client-address.ts';
import { isForeignPage, isLoopbackName } from '../http/origin.ts';
import { isLoopback } from '../providers/base-url.ts';
import { Problem } from './problem.ts';

/**
 * What a route needs. `sensitive`: contents of conversations, all data at once, or changes; never open to local programs without a
 * key.
 */
export type AccessLevel = 'login' | 'read' | 'sensitive';

/** How a caller was recognised. `session`: the console in a browser. `local`: a program on this machine, without a key. */
export interface Caller {
  readonly kind: 'key' | 'session' | 'local' | 'none';
  /** When the access ends, in milliseconds since 1970; null when it does not. */
  readonly expires: number | null;
  /** Whether contents of conversations may be returned. */
  readonly mayReadSensitive: boolean;
  /** What a page must send in `x-sluice-csrf` to change something; sessions only. */
  readonly csrf?: string;
}

/** The parts of the configuration that decide about access; read for every request, because a reload may change them. */
export interface AccessPolicy {
  readonly adminKey: Secret | undefined;
  readonly hasClientKeys: boolean;
}

/** The parts of a request that decide about access. */
export interface AccessRequest {
  readonly method: string;
  readonly headers: HeaderBag;
  readonly client: ClientAddress;
  /** The address of this end of the connection. */
  readonly local: string | undefined;
}

/** Whether a browser may log in, by what, and why not. */
export interface LoginOptions {
  readonly mayLogin: boolean;
  readonly accepts: readonly ('token' | 'key')[];
  readonly reason: string | null;
}

/** What a console session is created with. */
export type Credential = { readonly token: string } | { readonly key: string };

interface Session {
  readonly created: number;
  lastUsed: number;
  /** The admin key at login; a session ends when the key changes. */
  readonly keyDigest: string;
  /** Pages of other origins cannot read it, so they cannot send it. */
  readonly csrf: string;
}

interface AccessOptions {
  readonly policy: () => AccessPolicy;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** Decides about access, and keeps sessions of the console in memory. */
export class AdminAccess {
  readonly #policy: () => AccessPolicy;
  readonly #now: () => number;
  /** Digests of one-time tokens, and when they were issued. */
  readonly #tokens = new Map<string, number>();
  /** By the digest of the cookie, so that memory holds nothing that could be used. */
  readonly #sessions = new Map<string, Session>();
  readonly #failures = new BoundedCache<Failures>(FAILURE_LIMITS);

  constructor({ policy, now = Date.now }: AccessOptions) {
    this.#policy = policy;
    this.#now = now;
  }

  /** A token that opens one session of the console. It may be printed, but never logged. */
  issueToken(): string {
    const token = createToken();
    evictOldest(this.#tokens, MAX_TOKENS);
    this.#tokens.set(digest(token).toString('hex'), this.#now());
    return token;
  }

  /** Throws the problem when the request may not use a route of this level. */
  admit(request: AccessRequest, level: AccessLevel): Caller {
    const { headers } = request;
    if (isForeignPage(headers)) throw new Problem(403, 'requests from web pages of other origins are not allowed');
    if (level === 'login') return NO_ACCESS;
    const { adminKey, hasClientKeys } = this.#policy();
    const given = readKey(headers);
    if (adminKey && given !== undefined) {
      this.#checkKey(adminKey, given, request);
      return KEY_ACCESS;
    }
    const session = this.findSession(request);
    if (session) return session;
    if (adminKey) throw new Problem(401, `an admin key is required: ${HOW_TO_SEND}`, { headers: CHALLENGE });
    if (hasClientKeys) throw new Problem(403, `the admin API is closed, because no admin key is set: ${WHAT_TO_SET}`);
    checkLocal(request);
    if (level === 'sensitive') throw new Problem(403, `this needs an admin key: ${WHAT_TO_SET}`);
    return LOCAL_ACCESS;
  }

  /** How a browser may log in: for the page, before it has a session. */
  describeLogin(request: AccessRequest): LoginOptions {
    const reason = explainInsecure(request) ?? null;
    return { mayLogin: reason === null, accepts: this.#policy().adminKey ? ['key', 'token'] : ['token'], reason };
  }

  /** Opens a session of the console. Returns the value of `Set-Cookie` and when the session ends at the latest. */
  login(credential: Credential, request: AccessRequest): { cookie: string; csrf: string; expires: number } {
    const reason = explainInsecure(request);
    if (reason !== undefined) throw new Problem(403, reason);
    if ('key' in credential) this.#checkLoginKey(credential.key, request);
    else this.#redeem(credential.token, request);
    const cookie = createToken();
    const now = this.#now();
    evictOldest(this.#sessions, MAX_SESSIONS);
    const csrf = createToken();
    this.#sessions.set(digest(cookie).toString('hex'), { created: now, lastUsed: now, keyDigest: this.#keyDigest(), csrf });
    return { cookie: formatCookie(cookie, SESSION_MS / 1000, request), csrf, expires: now + SESSION_MS };
  }

  /** Ends the session of the request. Returns the value of `Set-Cookie` that removes it from the browser. */
  logout(request: AccessRequest): string {
    const cookie = readCookie(request);
    if (cookie !== undefined) this.#sessions.delete(digest(cookie).toString('hex'));
    return formatCookie('', 0, request);
  }

  #checkLoginKey(key: string, request: AccessRequest): void {
    const { adminKey } = this.#policy();
    if (!adminKey) throw new Problem(403, `no admin key is set: ${WHAT_TO_SET}`);
    this.#checkKey(adminKey, key, request);
  }

  #checkKey(adminKey: Secret, given: string, request: AccessRequest): void {
    const key = adminKey.reveal();
    if (key.length < UNGUESSABLE_LENGTH) this.#checkFailures(request);
    if (timingSafeEqual(digest(key), digest(given))) return;
    this.#checkFailures(request);
    this.#countFailure(request);
    throw new Problem(401, 'the key is not the admin key; keys of clients do not open the admin API', { headers: CHALLENGE });
  }

  #redeem(token: string, request: AccessRequest): void {
    const name = digest(token).toString('hex');
    const issued = this.#tokens.get(name);
    this.#tokens.delete(name);
    if (issued !== undefined && this.#now() - issued < TOKEN_MS) return;
    this.#checkFailures(request);
    this.#countFailure(request);
    throw new Problem(
      401,
      'the token is unknown, expired or was used before; restart the gateway for another, or use the admin key',
    );
  }

  /** The session of a request; undefined without one. Throws the problem when the request may not use it. */
  findSession(request: AccessRequest): Caller | undefined {
    const cookie = readCookie(request);
    if (cookie === undefined) return undefined;
    const name = digest(cookie).toString('hex');
    const session = this.#sessions.get(name);
    if (!session) return undefined;
    const now = this.#now();
    const isOver = now - session.created >= SESSION_MS || now - session.lastUsed >= IDLE_MS;
    if (isOver || session.keyDigest !== this.#keyDigest()) {
      this.#sessions.delete(name);
      return undefined;
    }
    checkPage(request, session.csrf);
    session.lastUsed = now;
    const expires = Math.min(session.created + SESSION_MS, now + IDLE_MS);
    return { kind: 'session', expires, mayReadSensitive: true, csrf: session.csrf };
  }

  #keyDigest(): string {
    const { adminKey } = this.#policy();
    return adminKey ? digest(adminKey.reveal()).toString('hex') : '';
  }

  /**
   * Refuses further attempts of an address that has failed too often. Also with the right key if it is short: otherwise guessing it is
   * free. A long key and a token cannot be guessed, and a lock would let anybody behind the same proxy keep their holders out.
   */
  #checkFailures({ client }: AccessRequest): void {
    const { count } = this.#readFailures(client.address);
    if (count < MAX_FAILURES) return;
    const seconds = Math.ceil((FORGIVE_MS * (count - MAX_FAILURES + 1)) / 1000);
    throw new Problem(429, `too many wrong keys; retry in ${seconds} s`, { headers: { 'retry-after': String(seconds) } });
  }

  #countFailure({ client: { address } }: AccessRequest): void {
    this.#failures.set(address, { count: this.#readFailures(address).count + 1, at: this.#now() });
  }

  /** One failure is forgiven every `FORGIVE_MS` since the last one. */
  #readFailures(address: string): Failures {
    const { count, at } = this.#failures.get(address) ?? { count: 0, at: 0 };
    return { count: Math.max(0, count - Math.floor((this.#now() - at) / FORGIVE_MS)), at };
  }
}

interface Failures {
  readonly count: number;
  readonly at: number;
}

const NO_ACCESS: Caller = { kind: 'none', expires: null, mayReadSensitive: false };

const KEY_ACCESS: Caller = { kind: 'key', expires: null, mayReadSensitive: true };

const LOCAL_ACCESS: Caller = { kind: 'local', expires: null, mayReadSensitive: false };

const WHAT_TO_SET = 'set admin.key in the configuration of the gateway, or SLUICE_ADMIN_KEY in its environment';

const HOW_TO_SEND = 'send it as Authorization: Bearer or x-api-key';

const CHALLENGE = { 'www-authenticate': 'Bearer realm="sluice admin"' };

/** Tokens that may be unused at the same time. */
const MAX_TOKENS = 8;

/** A token may wait in a terminal until somebody opens the console. */
const TOKEN_MS = 12 * 3_600_000;

const MAX_SESSIONS = 64;

const SESSION_MS = 12 * 3_600_000;

const IDLE_MS = 30 * 60_000;

/** Wrong keys and tokens of one address: five at once, then five a minute. */
const MAX_FAILURES = 5;

const FORGIVE_MS = 12_000;

/** Shorter keys may be words that are found by trying. */
const UNGUESSABLE_LENGTH = 32;

const FAILURE_LIMITS = { entries: 1000, bytes: 100_000 };

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

const createToken = (): string => randomBytes(32).toString('base64url');

function evictOldest(map: Map<string, unknown>, max: number): void {
  for (const name of map.keys()) {
    if (map.size < max) return;
    map.delete(name);
  }
}

function readKey(headers: HeaderBag): string | undefined {
  return /^Bearer\s{1,8}(\S+)\s*$/i.exec(headers['authorization'] ?? '')?.[1] ?? headers['x-api-key'];
}

/** A cookie is sent by the browser itself, so a request that changes something must prove which page sent it. */
function checkPage({ method, headers }: AccessRequest, csrf: string): void {
  if (method === 'GET') return;
  if (headers['origin'] === undefined && headers['sec-fetch-site'] !== 'same-origin')
    throw new Problem(403, 'a request with a session must come from a page of the gateway; programs use the admin key');
  const given = headers['x-sluice-csrf'] ?? '';
  if (!timingSafeEqual(digest(csrf), digest(given)))
    throw new Problem(403, 'a request with a session needs the header x-sluice-csrf, with csrf_token of the session');
}

const COOKIE = 'sluice_console';

/** A browser accepts a cookie of this name only by TLS, for the whole host and from the host itself. */
const SECURE_COOKIE = `__Host-${COOKIE}`;

const buildCookiePattern = (name: string): RegExp => new RegExp(`(?:^|;\\s?)${name}=([\\w-]{1,100})(?:;|$)`);

const COOKIE_PATTERN = buildCookiePattern(COOKIE);

const SECURE_COOKIE_PATTERN = buildCookiePattern(SECURE_COOKIE);

/** Whether a cookie marked `Secure` comes back, and cannot be read on the way. */
const isSecure = ({ client }: AccessRequest): boolean => client.scheme === 'https';

const readCookie = (request: AccessRequest): string | undefined =>
  (isSecure(request) ? SECURE_COOKIE_PATTERN : COOKIE_PATTERN).exec(request.headers['cookie'] ?? '')?.[1];

const formatCookie = (value: string, seconds: number, request: AccessRequest): string =>
  isSecure(request)
    ? `${SECURE_COOKIE}=${value}; Secure; HttpOnly; SameSite=Strict; Path=/; Max-Age=${seconds}`
    : `${COOKIE}=${value}; HttpOnly; SameSite=Strict; Path=/admin; Max-Age=${seconds}`;

/** Whether both ends of the connection and the name of the host are this machine, without a proxy. */
function isOnThisMachine({ headers: { host }, client, local = '' }: AccessRequest): boolean {
  const isLocal = !client.isProxied && [client.address, local].every((address) => isLoopback(address.replace(/^::ffff:/, '')));
  return isLocal && host !== undefined && isLoopbackName(host);
}

const findHeader = ({ headers }: AccessRequest, names: readonly string[]): string | undefined =>
  names.find((name) => headers[name] !== undefined);

/** Why a browser may not log in over this connection; undefined when it may. */
function explainInsecure(request: AccessRequest): string | undefined {
  if (isSecure(request) || (isOnThisMachine(request) && findHeader(request, PROXY_HEADERS) === undefined)) return undefined;
  return 'without TLS, the key and the cookie could be read on the way, so login works only in a browser on the machine of the gateway, at http://127.0.0.1; use HTTPS, or forward the port: ssh -L 4141:127.0.0.1:4141 HOST';
}

/** Without any key, only programs on this machine are admitted: no browser, whose pages come from anywhere, and no proxy. */
function checkLocal(request: AccessRequest): void {
  if (!isOnThisMachine(request))
    throw new Problem(403, `without an admin key, only programs on this machine may use the admin API: ${WHAT_TO_SET}`);
  const name = findHeader(request, BROWSER_HEADERS) ?? findHeader(request, PROXY_HEADERS);
  if (name === undefined) return;
  const sender = BROWSER_HEADERS.includes(name)
    ? 'a browser needs a session of the console'
    : 'requests through a proxy need a key';
  throw new Problem(403, `${sender} (the request has the header ${name}): ${WHAT_TO_SET}`);
}

/** Without `sec-fetch-mode`, which Node's `fetch` sends, too. */
const BROWSER_HEADERS: readonly string[] = ['origin', 'sec-fetch-site', 'sec-fetch-dest', 'referer'];

const PROXY_HEADERS: readonly string[] = [
  'forwarded',
  'via',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
];
