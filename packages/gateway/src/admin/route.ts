/** What a route of the admin API is: its declaration, what it works with, and what it returns. */

import type { ServerResponse } from 'node:http';
import type { z } from 'zod';
import type { BudgetStatus } from '../admission/gate.ts';
import type { Captures } from '../capture/captures.ts';
import type { GatewayState } from '../config/resolve.ts';
import type { Admission, KeyBook } from '../keys/key-book.ts';
import type { ActorKind, AuditEntry } from '../keys/records.ts';
import type { Store } from '../store/index.ts';
import type { Breakers } from '../upstream/breaker.ts';
import type { AccessLevel, AccessRequest, AdminAccess, Caller } from './access.ts';
import type { ConfigFacts } from './config.ts';
import type { ChangeFeed } from './live.ts';
import type { Parameters, Values } from './parameters.ts';
import type { ConsoleRequest } from './send.ts';

/** What the routes work with. */
export interface AdminContext {
  readonly store: Store;
  readonly keys: KeyBook;
  readonly feed: ChangeFeed;
  readonly access: AdminAccess;
  readonly breakers: Breakers;
  readonly captures: Pick<Captures, 'get' | 'list' | 'listIds'>;
  /** Budgets of the configuration, and those of keys that were used. */
  listBudgets(): Promise<readonly BudgetStatus[]>;
  /** The configuration in force. */
  state(): GatewayState;
  /** The configuration file; null without one. */
  readonly file: string | null;
  /** Where the configuration in force comes from. */
  readonly config: ConfigFacts;
  /** Whether clients need a key: of the configuration, or of the store. */
  hasKeys(): boolean;
  /** Milliseconds since 1970. */
  now(): number;
  /** Removes secrets from text that leaves the gateway. */
  redact(text: string): string;
  /** The OpenAPI document. */
  document(): object;
  /** Adds a line to the audit log. Never rejects. */
  audit(actor: ActorKind, action: string, about?: Partial<Pick<AuditEntry, 'object' | 'details'>>): Promise<void>;
  /** Whether a client key may be used, by its id or name; undefined when it is unknown. Without one: whether none is needed. */
  admitKey(reference: string | undefined): Admission | undefined;
  /** Runs a request as a client's. */
  send(request: ConsoleRequest): void;
  /** How long a client may stop reading a response. */
  readonly stallMs: number;
}

/** One request to a route. */
export interface Call<P extends Parameters = Parameters, Body = unknown> {
  /** The part of the path in braces. */
  readonly id: string;
  readonly requestId: string;
  readonly query: Values<P>;
  readonly body: Body;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly caller: Caller;
  readonly request: AccessRequest;
  readonly response: ServerResponse;
  readonly context: AdminContext;
  /** Whether the caller still has access. */
  readonly isAllowed: () => boolean;
}

/** What a route returns: a body, or undefined when it has written the response itself. */
export interface Reply {
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
  /** The body has a new secret, which redaction would remove. */
  readonly showsSecret?: boolean;
}

type Handle<P extends Parameters, Body> = (call: Call<P, Body>) => Promise<Reply | undefined> | Reply | undefined;

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

interface RouteOptions<P extends Parameters, Body> {
  readonly method: Method;
  /** Below `/admin/v1/`. */
  readonly path: string;
  readonly about: string;
  readonly access: AccessLevel;
  readonly query?: P;
  /** What the part of the path in braces is. */
  readonly idAbout?: string;
  readonly body?: z.ZodType<Body>;
  /** The most bytes of a body; 16 KiB by default. */
  readonly maxBodyBytes?: number;
  /** Describes a body that the handler reads itself. */
  readonly passedBody?: z.ZodType;
  /** The body of a JSON response, or the content type of another one. */
  readonly response: z.ZodType | string;
  /** Whether the response has an ETag. */
  readonly hasEtag?: boolean;
  readonly handle: Handle<P, Body>;
}

/** A route. */
export interface Route extends Omit<RouteOptions<Parameters, unknown>, 'query' | 'handle'> {
  readonly query: Parameters;
  readonly handle: (call: Call) => ReturnType<Handle<Parameters, unknown>>;
}

/** A route whose type has its names and its response, from which the console derives the types of its requests. */
export interface TypedRoute<M extends Method, Path extends string, Response> extends Route {
  readonly method: M;
  readonly path: Path;
  readonly response: Response & Route['response'];
}

/** Declares a route. */
export const route = <
  const M extends Method,
  const Path extends string,
  P extends Parameters,
  Body,
  const Response extends z.ZodType | string,
>({
  query,
  handle,
  ...rest
}: RouteOptions<P, Body> & { method: M; path: Path; response: Response }): TypedRoute<M, Path, Response> => ({
  ...rest,
  query: query ?? {},
  // The caller reads the query by `query` and the body by `body` of this route.
  handle: (call) => handle(call as Call<P, Body>),
});

/** All routes begin with it. */
export const PREFIX = '/admin/v1/';

/** Whatever a client would get: JSON or events, and errors in the words of the client's protocol. */
export const PASSED_RESPONSE = '*/*';
