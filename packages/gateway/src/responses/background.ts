/** Background responses: they run without a client, and clients read their events from any of them on. */

import { type CanonicalError, encodeSse, type SseFrame } from '@sluice/core';
import { ClientStream, encodeHeartbeat } from '../exchange/client-stream.ts';
import { Conversation } from '../exchange/conversation.ts';
import type { ModelRequest, Result } from '../exchange/model-request.ts';
import { Race } from '../exchange/race.ts';
import type { ExchangeRecord } from '../exchange/record.ts';
import { buildExchangeHeaders, STREAM_HEADERS } from '../exchange/reply.ts';
import { findEnding, type Services } from '../exchange/types.ts';
import { createDetachedConnection } from './detached.ts';
import { createId, isJson, type Json, parse } from './items.ts';
import { createResponseEntry, RequestState, type StateParts } from './request-state.ts';
import type { EventLog, ResponseStore, StoredResponse } from './store.ts';
import { createTurn, splitResponse } from './turns.ts';

/** Starts a response that continues when its client leaves. Returns its entry; it is kept at once. */
export async function startBackground(request: ModelRequest, parts: StateParts, services: Services): Promise<StoredResponse> {
  const { store, caller } = parts;
  const { wire } = request;
  const body: Json = isJson(wire.body) ? wire.body : {};
  const id = createId('resp');
  const queued = JSON.stringify(buildUnstarted(id, body, { status: 'queued', background: true, store: true }));
  const entry = createResponseEntry({ id, caller, holder: '', body: queued, turn: undefined });
  entry.isPinned = true;
  const run = new BackgroundRun(entry, store);
  entry.events = run;
  // Checks the request before it is accepted.
  const streamed = { method: wire.method, path: wire.path, headers: wire.headers, body: { ...body, stream: true } };
  const state = new RequestState(streamed, streamed.body, parts, { entry, onFrame: (frame) => run.add(frame) });
  await store.put(entry);
  void run.follow({ ...request, wire: streamed, target: { ...request.target, isStream: true }, state }, state, services);
  return entry;
}

/** The fields that the API reports before a response has begun. */
export const buildUnstarted = (id: string, body: Json, state: Pick<Json, 'status' | 'background' | 'store'>): Json => ({
  id,
  object: 'response',
  created_at: Math.floor(Date.now() / 1000),
  ...state,
  error: null,
  incomplete_details: null,
  instructions: body['instructions'] ?? null,
  max_output_tokens: body['max_output_tokens'] ?? null,
  metadata: body['metadata'] ?? {},
  model: body['model'],
  output: [],
  parallel_tool_calls: body['parallel_tool_calls'] ?? true,
  previous_response_id: body['previous_response_id'] ?? null,
  reasoning: body['reasoning'] ?? { effort: null, summary: null },
  temperature: body['temperature'] ?? 1,
  text: body['text'] ?? { format: { type: 'text' } },
  tool_choice: body['tool_choice'] ?? 'auto',
  tools: body['tools'] ?? [],
  top_p: body['top_p'] ?? 1,
  truncation: body['truncation'] ?? 'disabled',
  usage: null,
  user: body['user'] ?? null,
});

/** A response that is running, and its events. */
class BackgroundRun implements EventLog {
  readonly frames: string[] = [];
  readonly #entry: StoredResponse;
  readonly #store: ResponseStore;
  readonly #watchers = new Set<() => void>();
  #state: 'running' | 'cancelled' | 'full' | 'ended' = 'running';
  #stop: () => void = () => undefined;

  constructor(entry: StoredResponse, store: ResponseStore) {
    this.#entry = entry;
    this.#store = store;
  }

  get isEnded(): boolean {
    return this.#state === 'ended';
  }

  /** Runs the request to its end. Never rejects. */
  async follow(request: ModelRequest, state: RequestState, services: Services): Promise<void> {
    const { streams, clock, log } = services;
    const connection = createDetachedConnection(clock);
    connection.keyId = request.caller?.id ?? '';
    // The client's connection is not needed; a drain without one would never end.
    this.#stop = () => {
      state.abandon();
      connection.stop(CANCELLED);
      connection.response.destroy();
    };
    streams.enter(connection);
    // Before it ran, the connection of its client stood for it.
    if (request.connection.stopError) connection.stop(request.connection.stopError);
    let error: Result['error'];
    try {
      const conversation = new Conversation({ ...request, connection, observer: undefined }, services);
      const result = await state.during(() => conversation.run());
      error = result.error;
      settle(request.record, result);
    } catch (cause) {
      log.error({ request_id: request.id, error: String(cause instanceof Error ? cause.stack : cause) }, 'failed');
      error = { code: 'INTERNAL', message: 'internal gateway error; see the log of the gateway' };
    }
    await connection.closed();
    streams.leave(connection);
    settle(request.record, { status: 500, ending: findEnding(error), error, notes: [] });
    request.record.endAdmission(services.gate);
    await this.#end(state, error);
  }

  add({ event, data }: SseFrame): void {
    if (this.#state !== 'running' || data === '' || data === '[DONE]') return;
    const text = encodeSse({ ...(event !== undefined && { event }), data });
    this.frames.push(text);
    if (this.frames.length === 1) this.#setStatus('in_progress');
    if (!this.#store.grow(this.#entry, text.length)) {
      this.#state = 'full';
      // Not now: the exchange is in the middle of a write.
      queueMicrotask(() => this.#stop());
    }
    this.#notify();
  }

  watch(onChange: () => void): () => void {
    this.#watchers.add(onChange);
    return () => this.#watchers.delete(onChange);
  }

  cancel(): boolean {
    if (this.#state !== 'running') return false;
    this.#state = 'cancelled';
    this.#setStatus('cancelled');
    this.#stop();
    return true;
  }

  /** A response that did not complete is kept with the reason. */
  async #end(state: RequestState, error: Result['error']): Promise<void> {
    if (this.#state === 'full') this.#addFailure(FULL);
    else if (this.#state === 'running' && !state.response) this.#addFailure(error?.message ?? 'the response ended early');
    this.#state = 'ended';
    this.#entry.isPinned = false;
    if (!this.#entry.turn) await this.#keepUnfinished();
    else await this.#store.save(this.#entry);
    this.#notify();
  }

  #addFailure(message: string): void {
    this.#setStatus('failed', { error: { code: 'server_error', message } });
    const type = 'response.failed';
    const data = `{"type":"${type}","sequence_number":${this.frames.length},"response":${this.#entry.body}}`;
    this.frames.push(encodeSse({ event: type, data }));
  }

  #setStatus(status: string, fields: Json = {}): void {
    const before: unknown = JSON.parse(this.#entry.body);
    this.#entry.body = JSON.stringify({ ...(isJson(before) && before), status, ...fields });
  }

  /** What is cancelled or failed can be read, and continued without output. */
  #keepUnfinished(): Promise<void> | undefined {
    const { body } = this.#entry;
    const response = parse(body);
    const kept = splitResponse(isJson(response) ? response : {});
    const turn = createTurn({ key: createId('turn'), parent: undefined, input: '[]', ...kept, ids: [], holder: '' });
    return this.#store.setTurn(this.#entry, turn);
  }

  #notify(): void {
    for (const watcher of [...this.#watchers]) watcher();
  }
}

/** Only the first call counts. */
function settle(
  record: ExchangeRecord,
  { status, ending, error, notes }: Pick<Result, 'status' | 'ending' | 'error' | 'notes'>,
): void {
  record.endAttempt({ ending, error, possiblyBilled: true });
  void record.settle({ status, ending, error, notes });
}

/** The client has cancelled the response, or it is too large to be kept. */
const CANCELLED: CanonicalError = {
  code: 'INVALID_INPUT',
  message: 'the background response was cancelled',
  details: { ending: 'stopped' },
};

const FULL = 'the events of the response exceed the limit of the response store (responses.max_bytes_per_key)';

/**
 * Sends the events after `startingAfter` to a client, as they come, and ends with the last one. Resolves when the client
 * has everything, or has left.
 */
export function streamEvents(
  log: EventLog,
  startingAfter: number,
  { id, client, connection }: Pick<ModelRequest, 'id' | 'client' | 'connection'>,
  { limits, streams }: Services,
): Promise<void> {
  const stream = new ClientStream(connection, {
    headers: () => buildExchangeHeaders({ id, attempts: 0, notes: [] }, STREAM_HEADERS.sse),
    heartbeat: encodeHeartbeat(client),
    heartbeatMs: limits.heartbeatMs,
    stallMs: limits.stallMs,
    onStall: (isStalled) => streams.stall(connection, isStalled),
  });
  return new Promise((resolve) => {
    let next = startingAfter + 1;
    let isWaiting = false;
    // No upstream writes to this client: it reads what is stored.
    const claim = new Race(connection).conclude();
    const finish = (): void => {
      unwatch();
      connection.unlisten(onInterruption);
      stream.close();
      if (!connection.isGone) stream.end(claim);
      resolve();
    };
    // A stop ends the run as well, whose last events say why.
    const onInterruption = (): void => {
      if (connection.isGone || log.isEnded) finish();
    };
    const send = connection.guard(() => {
      isWaiting = false;
      while (next < log.frames.length && !isWaiting) {
        stream.write(Buffer.from(log.frames[next++] ?? ''), claim);
        isWaiting = stream.isFull;
      }
      if (isWaiting) stream.onDrain(send);
      else if (log.isEnded) finish();
    });
    const unwatch = log.watch(() => {
      if (!isWaiting) send();
    });
    connection.listen(onInterruption);
    stream.open();
    send();
    // The client may have left before this was called.
    if (connection.isGone) onInterruption();
  });
}
