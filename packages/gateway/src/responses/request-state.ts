/** The state of one Responses request: what it refers to, what a candidate gets, and what is kept of the response. */

import type { ClientRequest, Note, SseFrame } from '@sluice/core';
import { CODECS, checkRequestLimits } from '@sluice/core/engine';
import type { Limits } from '../config/options.ts';
import { findConvertedFields, readIds } from '../exchange/object-fields.ts';
import type { ExchangeState, PreparedState } from '../exchange/state.ts';
import type { Candidate, Reply } from '../exchange/types.ts';
import { digestAccount } from './capsule.ts';
import {
  createConversationNotFound,
  createItemNotFound,
  createPreviousNotFound,
  createTooLong,
  createTwoConversations,
} from './errors.ts';
import { checkResults, FOREIGN_STATE, History, type HistoryTarget, measureHistory } from './history.ts';
import type { IssuedState } from './issued.ts';
import { createId, isJson, type Json, nameItems, readInput, readReference } from './items.ts';
import type { StoredLane } from './lanes.ts';
import { type Ownership, rememberObjects } from './objects.ts';
import { StreamRecorder } from './recorder.ts';
import { ENTRY_BYTES, type ResponseStore, type Stored, type StoredConversation, type StoredResponse } from './store.ts';
import { createTurn, describeItems, splitResponse, type Turn } from './turns.ts';

/** What a request state needs of the gateway. */
export interface StateParts {
  store: ResponseStore;
  issued: IssuedState;
  limits: Limits;
  caller: string;
  /** Several client keys share the accounts of the providers. */
  isShared: boolean;
  /** The lane of a WebSocket connection that the request came over. */
  lane?: StoredLane | undefined;
}

/** The fields of a request that concern state. */
interface StateFields {
  previous: string | undefined;
  conversation: string | undefined;
  /** Ids of referenced items. */
  references: readonly string[];
  isStored: boolean;
}

/** Resolves references of a request, and keeps its response. */
export class RequestState implements ExchangeState {
  readonly #parts: StateParts;
  readonly #wire: ClientRequest;
  readonly #body: Json;
  readonly #input: readonly unknown[];
  readonly #fields: StateFields;
  readonly #previous: StoredResponse | undefined;
  readonly #conversation: StoredConversation | undefined;
  readonly #recorder: StreamRecorder;
  readonly #release: () => void;
  #isKept = false;
  #ownId: string | undefined;
  #isNoted = false;

  /** `options.onFrame` sees the events of the response. Throws a CodecError for a request that contradicts itself. */
  constructor(wire: ClientRequest, body: Json, parts: StateParts, options: RequestStateOptions = {}) {
    const { store, caller, limits } = parts;
    this.#parts = parts;
    this.#wire = wire;
    this.#body = body;
    this.#input = readInput(body['input']);
    const fields = readFields(body, this.#input);
    const { previous, conversation } = fields;
    if (previous !== undefined && conversation !== undefined) throw createTwoConversations();
    this.#previous = previous === undefined ? undefined : store.find('response', previous, caller, parts.lane?.lanes);
    // What continues a response that is not stored contains it, so it is not stored either.
    this.#fields = this.#previous?.connection ? { ...fields, isStored: false } : fields;
    this.#conversation = conversation === undefined ? undefined : store.find('conversation', conversation, caller);
    this.#recorder = new StreamRecorder(limits.eventBytes, options.onFrame);
    this.entry = options.entry;
    this.#release = store.hold(this.#listEntries());
  }

  /** Runs the exchange. What it refers to is not removed for want of room before it ends. */
  async during<T>(run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } finally {
      this.#release();
    }
  }

  #listEntries(): Stored[] {
    const { store, caller } = this.#parts;
    const items = this.#fields.references.flatMap((id) => store.findItem(id, caller)?.turn.owners ?? []);
    return [this.#previous, this.#conversation, ...items].filter((entry) => entry !== undefined);
  }

  /** The entry of a background response, which exists before the response. */
  readonly entry: StoredResponse | undefined;

  /** Whether the response may be kept. */
  get isStored(): boolean {
    return this.#fields.isStored;
  }

  /** The response, when it is complete. */
  get response(): Json | undefined {
    return this.#recorder.response;
  }

  /** Throws for a reference to what does not exist. */
  checkReferences(): void {
    if (this.#hasReferences) this.#expand({ holder: undefined, isBound: true }, []);
  }

  prepare(candidate: Candidate): PreparedState {
    const isNative = candidate.provider.protocol === 'openai-responses';
    // Other upstreams get what is found here, and nothing else.
    const isBound = this.#parts.isShared && candidate.passthrough !== 'all';
    if (isNative) this.#checkOwner(isBound);
    const holder = isNative ? findHolder(candidate) : '';
    const mustExpand = isNative ? this.#isHeldElsewhere(holder) : this.#hasReferences;
    const isForeign = (item: unknown): boolean => isNative && this.#parts.issued.isForeign(item, holder);
    if (!mustExpand && !this.entry && !this.#input.some(isForeign))
      return { wire: this.#wire, ...(!isNative && { options: { envelope: this.convertedEnvelope } }) };
    const notes: Note[] = [];
    const body = mustExpand ? this.#expand({ holder: isNative ? holder : undefined, isBound }, notes) : { ...this.#body };
    if (this.entry) delete body['background'];
    if (Array.isArray(body['input'])) body['input'] = omitForeign(body['input'], isForeign, notes);
    const { method, path, headers } = this.#wire;
    return {
      wire: { method, path, headers, body },
      notes,
      options: {
        envelope: isNative ? this.envelope : this.convertedEnvelope,
        passthrough: false,
        ...(isNative && { passRequest: 'never' }),
      },
    };
  }

  get mayReuse(): boolean {
    return !this.entry && !this.#hasReferences;
  }

  sent(bytes: Uint8Array, source: Candidate | undefined): void {
    this.#recorder.push(bytes);
    const { queued } = this.#recorder;
    if (!queued || this.#isNoted) return;
    this.#isNoted = true;
    // The client may leave now, and read the response at its provider later.
    if (source) void this.#keepRemote(queued, source);
  }

  beforeEnd(held: readonly Uint8Array[], source: Candidate | undefined): Promise<void> | undefined {
    for (const bytes of held) this.#recorder.push(bytes);
    const { response } = this.#recorder;
    if (!response) return undefined;
    this.#noteIssued(response, source);
    return this.#keep(response, source);
  }

  beforeReply({ status, body }: Reply, source: Candidate | undefined): Promise<void> | undefined {
    if (status >= 400 || !isJson(body) || typeof body['id'] !== 'string') return undefined;
    this.#noteIssued(body, source);
    return this.#keep(body, source);
  }

  /** Also for a response that is not stored: its client has all of it. */
  #noteIssued(response: Json, source: Candidate | undefined): void {
    if (source?.provider.protocol !== 'openai-responses') return;
    const { issued, store, caller } = this.#parts;
    issued.note(response['output'], findHolder(source));
    const made = readIds('openai-responses', findConvertedFields('openai-responses', 'CHAT').makes ?? [], response);
    rememberObjects(store, made, caller, source.provider.id);
  }

  /** The request was refused: its connection keeps the response that it continued no longer, as at OpenAI. */
  refuse(): void {
    if (this.#previous?.connection) this.#parts.lane?.lanes.drop(this.#previous);
  }

  /** Nothing of the response is kept, whatever comes. */
  abandon(): void {
    this.#isKept = true;
  }

  get #hasReferences(): boolean {
    const { previous, conversation, references } = this.#fields;
    return previous !== undefined || conversation !== undefined || references.length > 0;
  }

  /** What belongs to another key does not exist for this one, not even at a provider that keeps it. */
  #checkOwner(isBound: boolean): void {
    const { store, caller } = this.#parts;
    // Only this connection finds a response of its lane.
    const fields = this.#previous ? { ...this.#fields, previous: undefined } : this.#fields;
    checkOwned(fields, { store, caller, isBound });
  }

  /** Whether something that the request refers to is kept here, but not by this provider. */
  #isHeldElsewhere(holder: string): boolean {
    const { store, caller } = this.#parts;
    if (this.#conversation) return true;
    if (this.#previous && this.#previous.holder !== holder) return true;
    return this.#fields.references.some((id) => {
      const place = store.findItem(id, caller);
      return place !== undefined && place.turn.holder !== holder;
    });
  }

  /** The request with everything that it refers to. */
  #expand(target: HistoryTarget, notes: Note[]): Json {
    const { limits } = this.#parts;
    const isNative = target.holder !== undefined;
    const history = new History(this.#parts, this.#fields.isStored, target, notes);
    const last = this.#findContext(isNative);
    this.#checkSize(last);
    const before = last ? history.read(last, this.#conversation?.deleted) : [];
    const added = history.resolve(this.#input);
    if (last && !this.#conversation) checkResults(before, added);
    const input = [...before, ...added];
    const { previous_response_id: previous, conversation: _, ...rest } = this.#body;
    const body = { ...rest, ...(isNative && !last && previous !== undefined && { previous_response_id: previous }), input };
    checkRequestLimits(body, limits, (limit) => `limits.${limit.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`)}`);
    return body;
  }

  /** Throws for what is too large to be sent, or to be kept together with what follows. */
  #checkSize(last: Turn | undefined): void {
    const { store, limits } = this.#parts;
    const { references, isStored } = this.#fields;
    const bytes = measureHistory({ last, deleted: this.#conversation?.deleted, references }, this.#parts);
    if (bytes > limits.requestBytes) throw createTooLong(limits.requestBytes, 'limits.request_bytes');
    // The other half is for this turn, and for other conversations of the key.
    const share = Math.floor(store.maxBytesPerKey / 2);
    if (isStored && last && last.totalBytes > share) throw createTooLong(share, 'half of responses.max_bytes_per_key');
  }

  /** The last turn before the request. */
  #findContext(isNative: boolean): Turn | undefined {
    const { previous, conversation } = this.#fields;
    if (this.#conversation) return this.#conversation.head;
    if (this.#previous?.turn) return this.#previous.turn;
    if (isNative) return undefined;
    if (previous !== undefined) throw createPreviousNotFound(previous);
    if (conversation !== undefined) throw createConversationNotFound(conversation);
    return undefined;
  }

  get envelope(): Json {
    const { previous, conversation, isStored } = this.#fields;
    return {
      ...(this.entry && { id: this.entry.id, background: true }),
      store: isStored,
      previous_response_id: previous ?? null,
      ...(conversation !== undefined && { conversation: { id: conversation } }),
    };
  }

  /** Servers of other protocols repeat their ids, some with every response: clients would continue another conversation. */
  get convertedEnvelope(): Json {
    this.#ownId ??= createId('resp');
    return { id: this.#ownId, ...this.envelope };
  }

  /** Keeps a response that was made without an upstream. */
  keepLocal(response: Json): Promise<void> | undefined {
    return this.#keep(response, undefined);
  }

  /** Keeps the response once, when it is complete. */
  #keep(response: Json, source: Candidate | undefined): Promise<void> | undefined {
    const { isStored } = this.#fields;
    const { lane } = this.#parts;
    if (this.#isKept || !(isStored || lane)) return undefined;
    this.#isKept = true;
    const isUnfinished = response['status'] === 'queued' || response['status'] === 'in_progress';
    if (isUnfinished) return source && this.#keepRemote(response, source);
    const { store, caller } = this.#parts;
    const holder = isStored && source && keepsResponses(source) && !this.entry ? findHolder(source) : '';
    const id = this.entry?.id ?? String(response['id']);
    const maker = source?.provider.protocol === 'openai-responses' ? findHolder(source) : '';
    const turn = this.#buildTurn({ ...response, ...this.envelope, id }, { holder, maker });
    if (lane && !isStored) {
      if (response['status'] !== 'failed')
        lane.lanes.keep(lane.name, createResponseEntry({ id, caller, holder, body: '', turn, connection: lane.lanes }));
      return undefined;
    }
    lane?.lanes.forget(lane.name);
    const saved = this.entry
      ? store.setTurn(this.entry, turn)
      : store.put(createResponseEntry({ id, caller, holder, body: '', turn }));
    const added = this.#conversation && response['status'] !== 'failed' ? store.setTurn(this.#conversation, turn) : undefined;
    return added ? Promise.all([saved, added]).then(() => undefined) : saved;
  }

  /** The provider runs it in the background, and only it knows how that ends: the owner is kept. */
  #keepRemote(response: Json, source: Candidate): Promise<void> | undefined {
    if (this.entry || !this.#fields.isStored) return undefined;
    const { store, caller } = this.#parts;
    const holder = findHolder(source);
    return store.put(createResponseEntry({ id: String(response['id']), caller, holder, body: '', turn: undefined }));
  }

  #buildTurn(response: Json, made: Pick<Turn, 'holder' | 'maker'>): Turn {
    const output = Array.isArray(response['output']) ? response['output'] : [];
    const { text, sizes, references } = describeItems(this.#input);
    const described = describeItems(output);
    return createTurn({
      key: createId('turn'),
      parent: this.#conversation ? this.#conversation.head : this.#previous?.turn,
      input: text,
      ...splitResponse(response),
      ids: [...nameItems(this.#input), ...nameItems(output)],
      sizes: [...sizes, ...described.sizes],
      references,
      ...made,
    });
  }
}

/** How a request is followed. */
export interface RequestStateOptions {
  entry?: StoredResponse;
  onFrame?: (frame: SseFrame) => void;
}

/** Bytes of everything that a request refers to. */
export function measureReferences(body: Json, { store, caller, lane }: Pick<StateParts, 'store' | 'caller' | 'lane'>): number {
  const { previous, conversation, references } = readFields(body, readInput(body['input']));
  const response = previous === undefined ? undefined : store.find('response', previous, caller, lane?.lanes);
  const kept = conversation === undefined ? undefined : store.find('conversation', conversation, caller);
  return measureHistory({ last: response?.turn ?? kept?.head, deleted: kept?.deleted, references }, { store, caller });
}

/** Throws for a body that continues, or refers to, what the key may not use. */
export const checkReferences = (body: Json, ownership: Ownership): void =>
  checkOwned(readFields(body, readInput(body['input'])), ownership);

function checkOwned({ previous, conversation, references, isStored }: StateFields, ownership: Ownership): void {
  const { store, caller, isBound } = ownership;
  const isMissing = (id: string): boolean => !store.use(id, caller) && (isBound || store.isForeign(id, caller));
  if (previous !== undefined && isMissing(previous)) throw createPreviousNotFound(previous);
  if (conversation !== undefined && isMissing(conversation)) throw createConversationNotFound(conversation);
  for (const id of references) if (isMissing(id)) throw createItemNotFound(id, isStored);
}

function readFields(body: Json, input: readonly unknown[]): StateFields {
  const { previous_response_id: previous, conversation, store } = body;
  const named = isJson(conversation) ? conversation['id'] : conversation;
  return {
    previous: typeof previous === 'string' && previous !== '' ? previous : undefined,
    conversation: typeof named === 'string' && named !== '' ? named : undefined,
    references: input.flatMap((item) => readReference(item) ?? []),
    isStored: store !== false,
  };
}

/** Builds the entry of a response. */
export const createResponseEntry = ({
  id,
  caller,
  holder,
  body,
  turn,
  connection,
}: Pick<StoredResponse, 'id' | 'caller' | 'holder' | 'body' | 'turn'> &
  Partial<Pick<StoredResponse, 'connection'>>): StoredResponse => ({
  kind: 'response',
  id,
  caller,
  holder,
  body,
  turn,
  events: undefined,
  connection,
  bytes: ENTRY_BYTES + body.length,
  usedAt: 0,
  isPinned: false,
});

/** The provider and account of a candidate, as it is noted with what they keep. */
export const findHolder = ({ provider }: Pick<Candidate, 'provider'>): string => `${provider.id} ${digestAccount(provider)}`;

/** Whether the provider keeps responses itself: OpenAI and Azure do. */
export const keepsResponses = ({ provider, profile }: Pick<Candidate, 'provider' | 'profile'>): boolean =>
  provider.protocol === 'openai-responses' && (profile.official || CODECS['openai-responses'].profileFor(provider.id).official);

/** Input without the encrypted reasoning of other accounts. Ids of the other items are theirs as well, and are not needed. */
function omitForeign(input: readonly unknown[], isForeign: (item: unknown) => boolean, notes: Note[]): readonly unknown[] {
  const kept = input.filter((item) => !isForeign(item));
  if (kept.length === input.length) return input;
  for (let i = kept.length; i < input.length; i++) notes.push(FOREIGN_STATE);
  return kept.map((item) => {
    if (!isJson(item) || item['type'] === 'reasoning' || readReference(item) !== undefined) return item;
    const { id: _, ...rest } = item;
    return rest;
  });
}
