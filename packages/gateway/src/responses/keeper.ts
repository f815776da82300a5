/** Serves the state of responses: chat requests that refer to it, and the endpoints that read and change it. */

import { CodecError, type Sealing } from '@sluice/core';
import { Conversation } from '../exchange/conversation.ts';
import { findObject } from '../exchange/known-endpoints.ts';
import type { ModelRequest, Result } from '../exchange/model-request.ts';
import { sendReply } from '../exchange/reply.ts';
import { parseRequest } from '../exchange/request-body.ts';
import type { ConnectionLanes, Lane, ResponseKeeper, Served, StateRequest } from '../exchange/state.ts';
import type { Candidate, ProviderEndpoint, Services } from '../exchange/types.ts';
import type { Caller } from '../keys/caller.ts';
import { startBackground, streamEvents } from './background.ts';
import type { Capsules } from './capsule.ts';
import { compact, openCompactions } from './compact.ts';
import { ConversationEndpoints } from './conversations.ts';
import { createBackgroundUnstored, createNotCancellable, createNotStreamable, createResponseNotFound } from './errors.ts';
import { IssuedState } from './issued.ts';
import { isJson, type Json, type NamedItem, paginate, parse } from './items.ts';
import { type StoredLane, StoredLanes } from './lanes.ts';
import { checkNamedObjects, checkObject, readObjectId } from './objects.ts';
import { findHolder, keepsResponses, measureReferences, RequestState, type StateParts } from './request-state.ts';
import { ENTRY_BYTES, type ResponseStore, type StoredResponse } from './store.ts';
import { warmUp } from './warm-up.ts';

/** Keeps responses in a store. */
export class StoreKeeper implements ResponseKeeper {
  readonly #store: ResponseStore;
  readonly #capsules: Capsules;
  readonly #issued = new IssuedState();
  readonly #conversations: ConversationEndpoints;

  readonly openLanes: (() => ConnectionLanes) | undefined;

  /** `hasSockets`: clients may use WebSocket. */
  constructor(store: ResponseStore, capsules: Capsules, hasSockets: boolean) {
    this.#store = store;
    this.openLanes = hasSockets ? () => new StoredLanes(store) : undefined;
    this.#capsules = capsules;
    this.#conversations = new ConversationEndpoints(store);
  }

  measure(body: unknown, { id: caller }: Caller, lane: Lane | undefined): number {
    return isJson(body) ? measureReferences(body, { store: this.#store, caller, lane: readLane(lane) }) : 0;
  }

  run(request: ModelRequest, caller: Caller, services: Services): Promise<Result> {
    const { body, text } = request.wire;
    if (text !== undefined) checkNamedObjects(this.#store, text, caller.id);
    return request.client.id === 'openai-responses' && isJson(body)
      ? this.#runStateful(request, body, caller, services)
      : new Conversation(request, services).run();
  }

  async #runStateful(request: ModelRequest, body: Json, caller: Caller, services: Services): Promise<Result> {
    const parts = { ...this.#createParts(caller, services), lane: readLane(request.lane) };
    const opened = openCompactions(request.wire, body, this.#capsules, caller.id);
    const known: ModelRequest = { ...request, wire: opened };
    if (parts.lane && body['generate'] === false) return warmUp(known, parts, services);
    const isBackground = body['background'] === true;
    const [first] = isBackground ? request.directory.resolve(request.target.model, request.client.id) : [];
    // A response that is not finished can only be passed on unchanged.
    if (!isBackground || (first && keepsResponses(first) && !first.repair))
      return new Conversation({ ...known, state: new RequestState(opened, readBody(opened.body), parts) }, services).run();
    if (body['store'] === false) throw createBackgroundUnstored();
    const entry = await startBackground(known, parts, services);
    if (body['stream'] !== true || !entry.events) return send(request, parse(entry.body), services, { isDetached: true });
    await streamEvents(entry.events, -1, request, services);
    return { ...createProgress(request), status: 200, ending: 'answered', isDetached: true };
  }

  async serve(request: StateRequest, services: Services): Promise<Served> {
    const { route, request: incoming, caller } = request;
    const { pathname, searchParams } = new URL(route.path, 'http://localhost');
    const [collection, ...rest] = splitPath(pathname);
    const method = incoming.method === 'HEAD' ? 'GET' : (incoming.method ?? 'GET');
    const call: StateCall = { method, rest, query: searchParams, caller: caller.id, readBody: () => readJson(request, services) };
    if (collection === 'responses' && route.client.id === 'openai-responses') return this.#serveResponse(call, request, services);
    if (collection === 'conversations' && route.client.id === 'openai-responses') {
      const body = await this.#conversations.serve(call, () => this.#mayPass(request));
      return body === 'pass' ? { is: 'passed' } : { is: 'served', result: send(request, body, services) };
    }
    const object = findObject(route.client.id, method, pathname);
    const checkBody = (bytes: Buffer): void => checkNamedObjects(this.#store, bytes.toString('utf8'), caller.id);
    if (!object) return { is: 'passed', checkBody };
    const provider = checkObject(this.#store, object, caller.id, request);
    return {
      is: 'passed',
      ...(provider !== undefined && { provider }),
      checkBody,
      onReply: (body, owner) => this.#remember(body, method, object.id, caller.id, owner),
    };
  }

  async #serveResponse(call: StateCall, request: StateRequest, services: Services): Promise<Served> {
    const { method, rest, caller } = call;
    const [id = '', action, more] = rest;
    if (id === 'compact' && action === undefined && method === 'POST') return this.#compact(request, services);
    const entry = more === undefined ? this.#store.find('response', id, caller) : undefined;
    if (!entry) {
      if (this.#mayPass(request) && !this.#store.isForeign(id, caller)) return { is: 'passed' };
      throw createResponseNotFound(id);
    }
    // Only its provider knows how it continues.
    if (!entry.turn && !entry.events) return this.#passTo(entry, request);
    if (method === 'GET' && action === undefined) return this.#read(entry, call, request, services);
    if (method === 'GET' && action === 'input_items')
      return { is: 'served', result: send(request, paginate(listInput(entry), call.query), services) };
    if (method === 'POST' && action === 'cancel') {
      if (!entry.events) throw createNotCancellable();
      entry.events.cancel();
      return { is: 'served', result: send(request, readResponse(entry), services) };
    }
    if (method === 'DELETE' && action === undefined) {
      entry.events?.cancel();
      this.#store.remove(entry);
      const kept = this.#findHolder(entry, request);
      if (kept && kept.passthrough !== 'off') return { is: 'passed', provider: kept.provider.id };
      return { is: 'served', result: send(request, { id, object: 'response', deleted: true }, services) };
    }
    throw createResponseNotFound(id);
  }

  async #read(entry: StoredResponse, { query }: StateCall, request: StateRequest, services: Services): Promise<Served> {
    if (query.get('stream') !== 'true') return { is: 'served', result: send(request, readResponse(entry), services) };
    if (!entry.events) throw createNotStreamable();
    const after = Number.parseInt(query.get('starting_after') ?? '', 10);
    const { id, connection, route } = request;
    const reader = { id, connection, client: route.client };
    await streamEvents(entry.events, Number.isNaN(after) ? -1 : Math.max(-1, after), reader, services);
    return { is: 'served', result: { ...createProgress(request), status: 200, ending: 'answered' } };
  }

  /** The provider that keeps a response gets the request. */
  #passTo(entry: StoredResponse, request: StateRequest): Served {
    const kept = this.#findHolder(entry, request);
    if (!kept) throw createResponseNotFound(entry.id);
    return { is: 'passed', provider: kept.provider.id };
  }

  #findHolder({ holder }: StoredResponse, { directory }: StateRequest): ProviderEndpoint | undefined {
    return directory.providersFor('openai-responses').find((endpoint) => findHolder(endpoint) === holder);
  }

  /** Ids that are not known here may be known to a provider: on a gateway for one user, or where the operator allows it. */
  #mayPass({ directory }: StateRequest): boolean {
    const isOpen = directory.gatekeeper.isOpen;
    return directory
      .providersFor('openai-responses')
      .some(({ passthrough }) => passthrough === 'all' || (isOpen && passthrough === 'known'));
  }

  async #compact(request: StateRequest, services: Services): Promise<Served> {
    const { text, body } = parseRequest(await request.readBody(), services.limits);
    const model = isJson(body) && typeof body['model'] === 'string' ? body['model'] : '';
    const [first] = request.directory.resolve(model, request.route.client.id);
    // A server of this protocol compacts by itself.
    if (!isJson(body) || !first || first.provider.protocol === 'openai-responses') return { is: 'passed' };
    const compacted = await compact(
      request,
      { text, body },
      this.#createParts(request.caller, services),
      this.#capsules,
      services,
    );
    return 'status' in compacted
      ? { is: 'served', result: compacted }
      : { is: 'served', result: send(request, compacted.body, services) };
  }

  /** Notes who made an object, and forgets one that was deleted. */
  #remember(body: Buffer, method: string, id: string | undefined, caller: string, provider: string): void {
    if (id !== undefined) {
      const known = method === 'DELETE' ? this.#store.find('object', id, caller) : undefined;
      if (known) this.#store.remove(known);
      return;
    }
    const made = readObjectId(body);
    if (made === undefined) return;
    const entry = { kind: 'object', id: made, caller, provider, bytes: ENTRY_BYTES, usedAt: 0, isPinned: false } as const;
    void this.#store.put({ ...entry });
  }

  #createParts({ id }: Caller, { limits }: Services): StateParts {
    return { store: this.#store, issued: this.#issued, limits, caller: id };
  }
}

/** The lane of a request, as this keeper opened it. */
const readLane = (lane: Lane | undefined): StoredLane | undefined =>
  lane?.lanes instanceof StoredLanes ? { lanes: lane.lanes, name: lane.name } : undefined;

/** The segments after the version. Text that cannot be unescaped stays as it is: no id looks like it. */
const splitPath = (path: string): string[] =>
  path
    .replace(/^\/v\d+/, '')
    .split('/')
    .filter(Boolean)
    .map((segment) => {
      try {
        return decodeURIComponent(segment);
      } catch {
        return segment;
      }
    });

async function readJson(request: StateRequest, { limits }: Services): Promise<Json> {
  const bytes = await request.readBody();
  return bytes.length === 0 ? {} : readBody(parseRequest(bytes, limits).body);
}

function send(request: ServedRequest, body: unknown, { limits, redact }: Services, more: Partial<Result> = {}): Result {
  const progress = createProgress(request);
  sendReply(request.connection.response, { status: 200, headers: {}, body }, progress, { stallMs: limits.stallMs, redact });
  return { ...progress, status: 200, ending: 'answered', ...more };
}

/** A request for a stored object, without its collection. */
export interface StateCall {
  method: string;
  /** The path after the collection, by segments. */
  rest: readonly string[];
  query: URLSearchParams;
  caller: string;
  readBody(): Promise<Json>;
}

/** Creates the sealing of each upstream once. */
export function createSealing(capsules: Capsules): (candidate: Candidate) => Sealing {
  const known = new WeakMap<Candidate, Sealing>();
  return (candidate) => {
    const sealing = known.get(candidate) ?? capsules.for(candidate);
    known.set(candidate, sealing);
    return sealing;
  };
}

const createProgress = ({ id, admission }: ServedRequest): Pick<Result, 'id' | 'attempts' | 'notes' | 'limits'> => ({
  id,
  attempts: 0,
  notes: [],
  limits: admission?.headers,
});

/** A request that is answered without an upstream. */
type ServedRequest = Pick<ModelRequest, 'id' | 'connection'> & Partial<Pick<ModelRequest, 'admission'>>;

const readBody = (body: unknown): Json => {
  if (isJson(body)) return body;
  throw new CodecError({ code: 'INVALID_INPUT', message: 'the request body must be an object', http_status: 400 });
};

const readResponse = ({ turn, body }: StoredResponse): unknown => parse(turn?.body ?? body);

function listInput({ turn }: StoredResponse): NamedItem[] {
  if (!turn) return [];
  const items = parse(turn.input);
  return Array.isArray(items) ? items.map((item, i) => ({ id: turn.ids[i] ?? '', item })) : [];
}
