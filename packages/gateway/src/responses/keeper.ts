/** Serves the state of responses: chat requests that refer to it, and the endpoints that read and change it. */

import { CodecError, type InterfaceType, type Sealing } from '@sluice/core';
import { Conversation } from '../exchange/conversation.ts';
import { findObject, findPathEndpoint, type NamedObject } from '../exchange/known-endpoints.ts';
import type { ModelRequest, Result } from '../exchange/model-request.ts';
import { checkRepeats, findConvertedFields, findMadeIds, findNamedIds, readContent } from '../exchange/object-fields.ts';
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
import { MadeObjects, mayMakeObjects } from './made-objects.ts';
import { checkNamedIds, checkObject, isBoundAt, isRestricted, type Ownership, rememberObjects } from './objects.ts';
import {
  checkReferences,
  findHolder,
  keepsResponses,
  measureReferences,
  RequestState,
  type StateParts,
} from './request-state.ts';
import type { ResponseStore, StoredResponse } from './store.ts';
import { joinResponse } from './turns.ts';
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

  check(
    { client, wire: { body, text }, target, rule, directory }: ModelRequest,
    type: InterfaceType,
    { id: caller }: Caller,
  ): void {
    const candidates = directory.resolve(rule?.use ?? target.model, client.id);
    const ownership = { store: this.#store, caller, isBound: isBoundAt(directory, candidates) };
    if (!isRestricted(ownership)) return;
    // With client keys, it has been checked.
    if (text !== undefined && directory.gatekeeper.isOpen) checkRepeats(text, body);
    // The state of a chat request looks up what it continues, for each candidate.
    if (type !== 'CHAT' && client.id === 'openai-responses' && isJson(body)) checkReferences(body, ownership);
    checkNamedIds(findNamedIds(client.id, findConvertedFields(client.id, type), body), ownership);
  }

  run(request: ModelRequest, caller: Caller, services: Services): Promise<Result> {
    const { client, wire } = request;
    if (client.id === 'openai-responses' && isJson(wire.body)) return this.#runStateful(request, wire.body, caller, services);
    if (client.id !== 'anthropic-messages' || request.directory.gatekeeper.isOpen || !mayMakeObjects(wire.body))
      return new Conversation(request, services).run();
    const parts = { store: this.#store, caller: caller.id, eventBytes: services.limits.eventBytes };
    return new Conversation({ ...request, state: new MadeObjects(wire, parts) }, services).run();
  }

  async #runStateful(request: ModelRequest, body: Json, caller: Caller, services: Services): Promise<Result> {
    const parts = { ...this.#createParts(caller, request, services), lane: readLane(request.lane) };
    const opened = openCompactions(request.wire, body, this.#capsules, caller.id);
    const known: ModelRequest = { ...request, wire: opened };
    if (parts.lane && body['generate'] === false) return warmUp(known, parts, services);
    const isBackground = body['background'] === true;
    const [first] = isBackground ? request.directory.resolve(request.target.model, request.client.id) : [];
    // A response that is not finished can only be passed on unchanged.
    if (!isBackground || (first && keepsResponses(first) && !first.repair)) {
      const state = new RequestState(opened, readBody(opened.body), parts);
      const result = await state.during(() => new Conversation({ ...known, state }, services).run());
      if (isRefused(result)) state.refuse();
      return result;
    }
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
      const stored = { ...call, readBody: async () => this.#checkStored(await call.readBody(), request) };
      const body = await this.#conversations.serve(stored, () => this.#mayPass(request));
      return body === 'pass'
        ? { is: 'passed', checkContent: this.#createContentCheck(method, pathname, request) }
        : { is: 'served', result: send(request, body, services) };
    }
    return this.#passObject(method, pathname, request);
  }

  /** Passes on a request that may be about an object of a provider. */
  #passObject(method: string, path: string, request: StateRequest): Served {
    const { route, caller } = request;
    const object = findObject(route.client.id, method, path);
    const checkContent = this.#createContentCheck(method, path, request);
    if (!object) return { is: 'passed', checkContent };
    const provider = checkObject(this.#store, object, caller.id, request);
    return {
      is: 'passed',
      ...(provider !== undefined && { provider }),
      checkContent,
      onReply: (body, owner) => this.#remember(body, { method, path, object, request, owner }),
    };
  }

  #createContentCheck(method: string, path: string, { route, directory, caller }: StateRequest): ContentCheck {
    const { id } = route.client;
    return (content, endpoint) => {
      const ownership = { store: this.#store, caller: caller.id, isBound: isBoundAt(directory, [endpoint]) };
      if (!isRestricted(ownership)) return;
      const fields = findPathEndpoint(id, method, path)?.fields;
      for (const value of readContent(content)) {
        if (path.endsWith('/responses/compact') && isJson(value)) checkReferences(value, ownership);
        checkNamedIds(findNamedIds(id, fields, value), ownership);
      }
    };
  }

  /** Items of a conversation are sent to a provider later. */
  #checkStored(body: Json, { directory, caller }: StateRequest): Json {
    const isBound = isBoundAt(directory, directory.providersFor('openai-responses'));
    const ownership: Ownership = { store: this.#store, caller: caller.id, isBound };
    if (isRestricted(ownership))
      checkNamedIds(findNamedIds('openai-responses', findConvertedFields('openai-responses', 'CHAT'), body), ownership);
    return body;
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
    if (!isJson(body) || !first || first.provider.protocol === 'openai-responses')
      return { is: 'passed', checkContent: this.#createContentCheck('POST', '/v1/responses/compact', request) };
    const parts = this.#createParts(request.caller, request, services);
    checkNamedIds(findNamedIds('openai-responses', findConvertedFields('openai-responses', 'CHAT'), body), {
      ...parts,
      isBound: isBoundAt(request.directory, [first]),
    });
    const compacted = await compact(request, { text, body }, parts, this.#capsules, services);
    return 'status' in compacted
      ? { is: 'served', result: compacted }
      : { is: 'served', result: { ...send(request, compacted.body, services), ...compacted.result } };
  }

  /** Notes whose the objects in a response are, and forgets one that was deleted. */
  #remember(body: Buffer, { method, path, object, request: { route, caller }, owner }: ObjectCall): void {
    const { id, isInside } = object;
    const known = id === undefined ? undefined : this.#store.find('object', id, caller.id);
    // What an object of another key, or an unknown one, refers to does not belong to this key.
    if (id !== undefined && !known) return;
    if (known && method === 'DELETE') {
      if (!isInside) this.#store.remove(known);
      return;
    }
    const fields = findPathEndpoint(route.client.id, method, path)?.fields;
    const made = findMadeIds(route.client.id, fields, id === undefined, body.toString('utf8'));
    rememberObjects(this.#store, made, caller.id, owner);
  }

  #createParts({ id }: Caller, { directory }: Pick<StateRequest, 'directory'>, { limits }: Services): StateParts {
    return { store: this.#store, issued: this.#issued, limits, caller: id, isShared: !directory.gatekeeper.isOpen };
  }
}

type ContentCheck = NonNullable<Extract<Served, { is: 'passed' }>['checkContent']>;

/** A request about an object of a provider. */
interface ObjectCall {
  method: string;
  path: string;
  object: NamedObject;
  request: StateRequest;
  /** The provider that responded. */
  owner: string;
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

/** Whether the request itself was wrong, as opposed to one that may succeed when it is sent again. */
const isRefused = ({ status }: Result): boolean => status === 400 || status === 404 || status === 422;

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

const readResponse = ({ turn, body }: StoredResponse): unknown => (turn ? joinResponse(turn) : parse(body));

function listInput({ turn }: StoredResponse): NamedItem[] {
  if (!turn) return [];
  const items = parse(turn.input);
  return Array.isArray(items) ? items.map((item, i) => ({ id: turn.ids[i] ?? '', item })) : [];
}
