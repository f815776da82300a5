/** Requests that an operator sends from the console. They run as a client's do, under the key that the operator chooses. */

import type { ServerResponse } from 'node:http';
import type { HeaderBag, InterfaceType } from '@sluice/core';
import { type Codec, findRoute } from '@sluice/core/engine';
import { z } from 'zod';
import type { Capture } from '../capture/capture.ts';
import { chooseExampleModel } from '../clients/setup.ts';
import type { ClientAddress } from '../http/client-address.ts';
import type { Caller } from '../keys/caller.ts';
import { text } from './parameters.ts';
import { Problem } from './problem.ts';
import type { AdminContext, Call } from './route.ts';

/** A request that runs as if a client had sent it. */
export interface ConsoleRequest {
  readonly id: string;
  /** Also gives the request, whose body is read unless there is `body`. */
  readonly response: ServerResponse;
  readonly client: ClientAddress;
  /** The holder of the key that the operator chose. */
  readonly caller: Caller;
  /** As a client would send it, with its query. */
  readonly path: string;
  readonly headers: HeaderBag;
  readonly body: Buffer | undefined;
}

/** The header that names the exchange of a request of the console. Error responses without it are problems of the admin API. */
export const EXCHANGE_HEADER = 'x-sluice-exchange-id';

/** What the console needs to know before it sends a request. */
export const SENDER = z.strictObject({
  needs_key: z.boolean().describe('The gateway has client keys, so one of them must be chosen.'),
  keys: z.array(z.strictObject({ id: z.string(), name: z.string() })),
  model: z.string().describe('A model to begin with.'),
  models: z.array(z.string()),
});

/** The keys and models that requests of the console can have. */
export function describeSender({ state, keys, admitKey }: AdminContext): z.infer<typeof SENDER> {
  const { models, providers, keys: configured } = state();
  const callers = [...configured.map(({ caller }) => caller), ...keys.listCallers()];
  return {
    needs_key: !admitKey(undefined)?.admitted,
    keys: callers.slice(0, MAX_LISTED_KEYS).map(({ id, name }) => ({ id, name })),
    model: chooseExampleModel(models, [...providers.values()]),
    models: models.filter((name) => !name.includes('*')),
  };
}

/** A list to choose from; other keys can be named, too. */
const MAX_LISTED_KEYS = 1000;

const key = text('The id or name of the client key whose models, limits and budget apply; required when the gateway has keys.');

/** The parameters of a request. */
export const SEND_QUERY = {
  path: text('The path of the request, such as `/v1/messages`; it decides about the protocol.', 2000),
  key,
};

/** The parameters of a replay. */
export const REPLAY_QUERY = { model: text('Another model than that of the exchange.', 512), key };

/** The body of the HTTP request is passed on as it is, whatever its size up to that of clients. */
export async function sendRequest(call: Call<typeof SEND_QUERY>): Promise<undefined> {
  const { query, response } = call;
  // Forms of web pages cannot send this type.
  if (!/^application\/json\s*(;|$)/i.test(response.req.headers['content-type'] ?? ''))
    throw new Problem(415, 'send the body as content-type: application/json');
  if (query.path === undefined) throw new Problem(400, 'query parameter "path" is required, such as /v1/chat/completions');
  await pass(call, { path: query.path, headers: {}, body: undefined, exchange: undefined });
}

/** Sends the request of a captured exchange again. */
export async function replayExchange(call: Call<typeof REPLAY_QUERY>): Promise<undefined> {
  const { id, query, context } = call;
  const capture = await context.captures.get(id);
  if (!capture) {
    const isKnown = (await context.store.get(id)) !== null;
    if (!isKnown) throw new Problem(404, `no exchange has the id ${JSON.stringify(id.slice(0, 100))}`);
    throw new Problem(409, 'the request of this exchange was not kept, so it cannot be sent again; see docs/capture.md');
  }
  const { path, body } = retarget(capture, query.model);
  await pass(call, { path, headers: capture.request.headers, body, exchange: capture.id });
}

interface Passed {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | undefined;
  /** The id of the exchange that is repeated. */
  readonly exchange: string | undefined;
}

async function pass(call: Call<{ key: typeof key }>, { path, headers, body, exchange }: Passed): Promise<void> {
  const { query, response, request, requestId, caller, context } = call;
  const passed = pickHeaders(headers);
  const route = checkPath(path, passed);
  const admission = context.admitKey(query.key);
  if (!admission) throw new Problem(404, `no client key has the name or id ${JSON.stringify(query.key?.slice(0, 100))}`);
  if (!admission.admitted) throw new Problem(query.key === undefined ? 400 : 409, admission.reason);
  const { id: object, name } = admission.caller;
  const details = { name, endpoint: route.path, ...(exchange !== undefined && { exchange }) };
  await context.audit(caller.kind, exchange === undefined ? 'request.send' : 'request.replay', { object, details });
  // From here on, the limits of exchanges apply: a model may think for longer than an admin response may stall.
  response.setTimeout(0);
  response.setHeader('cache-control', 'no-store');
  context.send({ id: requestId, response, client: request.client, caller: admission.caller, path, headers: passed, body });
}

/** The interfaces of models that a request may use. */
const SENDABLE: ReadonlySet<InterfaceType> = new Set(['CHAT', 'COUNT_TOKENS', 'EMBEDDINGS', 'RERANK']);

function checkPath(path: string, headers: HeaderBag): { path: string } {
  const route = path.startsWith('/') ? findRoute(path, headers) : undefined;
  if (route && SENDABLE.has(route.type)) return { path: route.path.split('?', 1)[0] ?? '' };
  throw new Problem(
    400,
    'path: is not an endpoint of a model; use one such as /v1/chat/completions, /v1/messages or /v1/responses',
  );
}

/** What a client says about its protocol. Everything else, such as cookies of the browser, stays here. */
const PASSED_HEADERS = ['anthropic-version', 'anthropic-beta', 'openai-beta'] as const;

/** `no-cache`: who sends a request again wants another response. */
function pickHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  const given = PASSED_HEADERS.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]]));
  return {
    ...Object.fromEntries(given),
    'content-type': 'application/json',
    'user-agent': 'sluice-console',
    'cache-control': 'no-cache',
    'x-sluice-tags': CONSOLE_TAG,
  };
}

/** The tag of all exchanges that the console has sent. */
const CONSOLE_TAG = 'console';

/** The captured request, for another model if one is given. Without it, its bytes do not change. */
function retarget({ request, isTruncated }: Capture, model: string | undefined): { path: string; body: Buffer } {
  const bytes = Buffer.from(request.body);
  const body = parseObject(bytes.toString());
  // No part of an object is an object, so a request that was cut is not one.
  if (!body) {
    const reason = isTruncated ? 'was cut' : 'is not JSON';
    throw new Problem(409, `the captured request ${reason}, so it cannot be sent again; see capture.exchange_bytes`);
  }
  if (model === undefined) return { path: request.path, body: bytes };
  const changed = setModel({ ...request, body }, model);
  return { path: changed.path, body: changed.body === body ? bytes : Buffer.from(JSON.stringify(changed.body)) };
}

type JsonBody = Readonly<Record<string, unknown>>;

/** The same request for another model: in its path, where the protocol has it there, else in its body. */
export function setModel(
  { path, headers = {}, body }: { path: string; headers?: HeaderBag; body: JsonBody },
  model: string,
): { path: string; body: JsonBody } {
  const { client, type } = findRoute(path, headers);
  const stream = client.readTarget({ method: 'POST', path, headers, body })?.isStream ?? false;
  const build = (name: string): string => buildPath(client, type, name, stream);
  const isInPath = build(model) !== build(`${model}.`);
  return isInPath ? { path: build(model), body } : { path, body: { ...body, model } };
}

/** The path of a request to this gateway. */
export function buildPath(client: Codec, type: InterfaceType, model: string, stream: boolean): string {
  const provider = { id: '', protocol: client.id, base_url: ORIGIN };
  return client.buildUrl(type, { provider, model, stream }, model).slice(ORIGIN.length);
}

const ORIGIN = 'http://localhost';

function parseObject(json: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}
