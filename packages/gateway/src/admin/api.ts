/** Serves `/admin`: finds the route, checks access, reads the request, and writes the response or the problem. */

import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HeaderBag } from '@sluice/core';
import { didYouMean } from '@sluice/lab/text';
import type { ClientAddress } from '../http/client-address.ts';
import type { Logger } from '../observe/log.ts';
import type { AccessRequest, Caller } from './access.ts';
import { buildDocument } from './openapi.ts';
import { readQuery } from './parameters.ts';
import { PROBLEM_TYPE, Problem, toProblem } from './problem.ts';
import { type AdminContext, PREFIX, type Reply, type Route } from './route.ts';
import { ROUTES } from './routes.ts';
import { serialize } from './serialize.ts';

/** Whether a request target belongs to the admin API. Other spellings of the path are not it, so they cannot reach it. */
export const isAdminPath = (url: string): boolean => /^\/admin(?:[/?]|$)/.test(url);

/** One request. */
export interface AdminRequest {
  readonly id: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly headers: HeaderBag;
  readonly client: ClientAddress;
}

interface ApiOptions extends Omit<AdminContext, 'document' | 'audit'> {
  readonly log: Logger;
}

/** The admin API of one gateway. */
export class AdminApi {
  readonly #options: ApiOptions;
  readonly #context: AdminContext;
  #document: object | undefined;
  #running = 0;

  constructor(options: ApiOptions) {
    this.#options = options;
    this.#context = {
      ...options,
      audit: (actor, action, about) => this.#audit(actor, action, about),
      document: () => {
        this.#document ??= buildDocument();
        return this.#document;
      },
    };
  }

  /** Responds to one request. Rejects for bugs only. */
  async handle(incoming: AdminRequest): Promise<void> {
    const { response, id, request } = incoming;
    response.setHeader('x-sluice-request-id', id);
    response.setHeader('x-content-type-options', 'nosniff');
    response.setTimeout(this.#options.stallMs, () => response.destroy());
    this.#running++;
    try {
      if (this.#running > MAX_RUNNING)
        throw new Problem(503, 'too many requests to the admin API are in progress', { headers: { 'retry-after': '1' } });
      await this.#respond(incoming);
    } catch (error) {
      const problem = toProblem(error);
      if (!problem) throw error;
      this.refuse(incoming, problem);
    } finally {
      this.#running--;
      // A body that was not read would be taken for the next request.
      if (!request.complete) request.resume();
    }
  }

  /** Sends a problem. */
  refuse({ id, request, response, client }: AdminRequest, problem: Problem): void {
    const { log, redact } = this.#options;
    const { status, headers, message: reason } = problem;
    const path = (request.url ?? '').split('?', 1)[0]?.slice(0, MAX_LOGGED_PATH);
    const level = status === 401 || status === 403 || status === 429 ? 'warn' : 'debug';
    log[level]({ request_id: id, client: client.address, method: request.method, path, status, reason }, 'admin request refused');
    if (response.headersSent) {
      response.destroy();
      return;
    }
    if (!request.complete) response.setHeader('connection', 'close');
    const body = redact(JSON.stringify(problem.toBody(id)));
    response.writeHead(status, { ...headers, 'content-type': PROBLEM_TYPE, 'cache-control': 'no-store' }).end(body);
  }

  async #respond(incoming: AdminRequest): Promise<void> {
    const { request, response, headers, client } = incoming;
    const { access, now } = this.#context;
    const { path, query } = splitTarget(request.url ?? '');
    const found = findRoute(path, request.method ?? '');
    const who: AccessRequest = {
      method: request.method ?? '',
      headers,
      client,
      local: request.socket.localAddress,
    };
    // Before anything is said about the path: who has no access learns nothing.
    const caller = access.admit(who, 'route' in found ? found.route.access : 'read');
    if (!('route' in found)) throw found.problem;
    const { route, id } = found;
    this.#log(incoming, route, caller);
    const values = readQuery(route.query, query, now());
    const body = route.body ? await readJson(request, response, route) : undefined;
    const isAllowed = (): boolean => this.#isAllowed(who, route);
    const call = {
      id,
      requestId: incoming.id,
      query: values,
      body,
      headers,
      caller,
      request: who,
      response,
      context: this.#context,
      isAllowed,
    };
    const reply = await route.handle(call);
    if (reply) await this.#send(incoming, route, reply);
  }

  #isAllowed(request: AccessRequest, route: Route): boolean {
    try {
      this.#context.access.admit(request, route.access);
      return true;
    } catch {
      return false;
    }
  }

  /** What changes or exports something is worth a line. */
  #log({ id }: AdminRequest, { method, path }: Route, { kind }: Caller): void {
    const level = method === 'GET' ? 'debug' : 'info';
    this.#options.log[level]({ request_id: id, method, path: PREFIX + path, access: kind }, 'admin request');
  }

  /** A log that cannot be written must not lock out the operator, who may come to repair that. Changes of keys do wait for it. */
  async #audit(...[actor, action, about]: Parameters<AdminContext['audit']>): Promise<void> {
    const { store, log } = this.#options;
    try {
      await store.addAudit({ ...store.createId(), actor, action, object: '', details: {}, ...about });
    } catch (error) {
      log.warn({ action, error: String(error) }, 'the audit log could not be written');
    }
  }

  async #send(incoming: AdminRequest, route: Route, { body, headers = {}, showsSecret = false }: Reply): Promise<void> {
    const { response, headers: given } = incoming;
    const text = showsSecret ? JSON.stringify(body) : await serialize(body, this.#options.redact);
    if (response.destroyed) return;
    const common = { ...headers, 'cache-control': 'no-store' };
    const etag = route.hasEtag ? `"${createHash('sha256').update(text).digest('base64url').slice(0, 27)}"` : undefined;
    if (etag !== undefined && matchesEtag(given['if-none-match'], etag)) {
      response.writeHead(304, { ...common, etag }).end();
      return;
    }
    const length = String(Buffer.byteLength(text));
    response
      .writeHead(200, { ...common, ...(etag && { etag }), 'content-type': 'application/json', 'content-length': length })
      .end(text);
  }
}

/** Requests at the same time, without streams. The store answers one query after the other. */
const MAX_RUNNING = 32;

const MAX_LOGGED_PATH = 200;

const MAX_ID_LENGTH = 200;

function splitTarget(url: string): { path: string; query: string } {
  const at = url.indexOf('?');
  return at < 0 ? { path: url, query: '' } : { path: url.slice(0, at), query: url.slice(at + 1) };
}

type Found = { route: Route; id: string } | { problem: Problem };

/** The route of a path. Literal paths come before those with an id in the table of their method. */
function findRoute(path: string, method: string): Found {
  const matching = path.startsWith(PREFIX)
    ? ROUTES.flatMap((route) => {
        const id = matchPath(route.path, path.slice(PREFIX.length));
        return id === undefined ? [] : [{ route, id }];
      })
    : [];
  const found = matching.find(({ route }) => route.method === method);
  if (found) return isValidId(found.id) ? found : { problem: new Problem(404, 'the id in the path is not valid') };
  if (matching.length === 0) return { problem: new Problem(404, describeUnknownPath(path)) };
  const methods = [...new Set(matching.map(({ route }) => route.method))].join(', ');
  return { problem: new Problem(405, `the method is not allowed here; use ${methods}`, { headers: { allow: methods } }) };
}

/** The id in a path; an empty text for a path without one, undefined when the path is another. */
function matchPath(pattern: string, path: string): string | undefined {
  if (pattern === path) return '';
  const expected = pattern.split('/');
  const given = path.split('/', expected.length + 1);
  const at = expected.indexOf('{id}');
  const isMatch = given.length === expected.length && expected.every((part, index) => index === at || part === given[index]);
  const id = given[at] ?? '';
  return at >= 0 && isMatch && id !== '' ? decode(id) : undefined;
}

/** NUL is in no id, so it marks what cannot be decoded. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return '\0';
  }
}

const isValidId = (id: string): boolean => id.length <= MAX_ID_LENGTH && !/\p{Cc}/u.test(id);

function describeUnknownPath(path: string): string {
  const name = path.startsWith(PREFIX) ? path.slice(PREFIX.length, PREFIX.length + 60) : '';
  return `there is no such endpoint${didYouMean(
    name,
    ROUTES.map((route) => route.path),
  )}; ${PREFIX}openapi.json lists all`;
}

const matchesEtag = (header: string | undefined, etag: string): boolean =>
  header !== undefined && (header.trim() === '*' || header.split(',').some((part) => part.trim().replace(/^W\//, '') === etag));

const MAX_BODY_BYTES = 16 * 1024;

async function readJson(
  request: IncomingMessage,
  response: ServerResponse,
  { body: schema, access, maxBodyBytes = MAX_BODY_BYTES }: Pick<Route, 'body' | 'access' | 'maxBodyBytes'>,
): Promise<unknown> {
  // Forms of web pages cannot send this type.
  if (!/^application\/json\s*(;|$)/i.test(request.headers['content-type'] ?? ''))
    throw new Problem(415, 'send the body as content-type: application/json');
  if (request.headers.expect !== undefined) response.writeContinue();
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBodyBytes) throw new Problem(413, `the body has more than ${maxBodyBytes} bytes`);
    chunks.push(chunk);
  }
  const result = schema?.safeParse(parseJson(Buffer.concat(chunks).toString()));
  if (result?.success) return result.data;
  // A login has a key or a token, so nothing of it is repeated.
  const issues = access === 'login' ? [] : (result?.error.issues ?? []).slice(0, MAX_ISSUES);
  const errors = issues.map(({ path, message }) => ({ field: path.join('.').slice(0, 60), detail: message.slice(0, 200) }));
  const [first] = errors;
  const where = first ? `${first.field === '' ? '' : `${first.field}: `}${first.detail}; ` : '';
  throw new Problem(400, `the body is not valid; ${where}${PREFIX}openapi.json describes it`, { errors });
}

const MAX_ISSUES = 10;

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
