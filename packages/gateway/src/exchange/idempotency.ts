/** `Idempotency-Key`: a request that a client repeats shares the response of the first one. docs/idempotency.md is the guide. */

import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { CodecError, type HeaderBag } from '@sluice/core';
import { encodeError, type Route } from '@sluice/core/engine';
import { readParts } from '../http/multipart.ts';
import { refusal } from '../http/refusal.ts';
import type { Caller } from '../keys/caller.ts';
import type { NoteRow } from '../store/index.ts';
import { ClientConnection } from './client-connection.ts';
import type { IdempotentResponses, KeyedResponse, SharedEnd } from './idempotent-responses.ts';
import type { Result } from './model-request.ts';
import type { BodyFacts, ExchangeRecord, HeaderFacts } from './record.ts';
import { LogReader, type ReaderEnd, type ResponseHead, SharedResponse } from './response-log.ts';
import { findEnding, INTERNAL, type Services } from './types.ts';

/** A request whose body has been read. Its response and connection are replaced when several clients may share them. */
export interface RepeatableRequest {
  readonly id: string;
  readonly request: IncomingMessage;
  response: ServerResponse;
  connection: ClientConnection;
  headers: HeaderBag;
  readonly route: Route;
  readonly caller?: Caller;
}

/** What a request does when it is the first with its key, and what the ledger knows of it by its headers. */
export interface RepeatableWork {
  readBody(): Promise<Buffer>;
  readonly record: ExchangeRecord;
  describe(): HeaderFacts;
  run(): Promise<Result>;
}

/** Runs a request, or sends the response of an earlier one with the same `Idempotency-Key`. */
export function respondOnce(incoming: RepeatableRequest, work: RepeatableWork, services: Services): Promise<Result> {
  const key = incoming.headers[HEADER];
  return key === undefined || incoming.request.method !== 'POST' ? work.run() : respondKeyed(key, incoming, work, services);
}

const HEADER = 'idempotency-key';

async function respondKeyed(key: string, incoming: RepeatableRequest, work: RepeatableWork, services: Services): Promise<Result> {
  const { idempotency } = services;
  const caller = incoming.caller?.id ?? '';
  if (idempotency && !KEY.test(key)) throw INVALID_KEY;
  incoming.headers = { ...incoming.headers, [HEADER]: scopeKey(key, caller) };
  if (!idempotency) return work.run();
  const name = digest(JSON.stringify([caller, incoming.route.path, key]));
  const fingerprint = readFingerprint(await work.readBody(), incoming.headers['content-type'] ?? '');
  const known = idempotency.find(name);
  if (known) {
    checkSharable(known, fingerprint);
    return new Follower(known, incoming, work, services).run();
  }
  const { record } = work;
  const facts = (): BodyFacts => record.body;
  const entry = idempotency.begin({ name, caller, fingerprint, requestId: incoming.id, facts });
  return lead(entry, idempotency, incoming, work, services);
}

/** Visible characters, and spaces between them. */
const KEY = /^[\x20-\x7e]{1,256}$/;

const INVALID_KEY = refusal(400, 'INVALID_INPUT', 'Idempotency-Key: must have 1 to 256 visible ASCII characters');

/**
 * The key for the upstream, where all callers share one account: without their name in it, a caller could receive the
 * response of another.
 */
const scopeKey = (key: string, caller: string): string =>
  caller === '' ? key : digest(JSON.stringify([caller, key])).slice(0, UPSTREAM_KEY_LENGTH);

const UPSTREAM_KEY_LENGTH = 32;

const digest = (text: string): string => createHash('sha256').update(text).digest('hex');

/**
 * The digest of a body. Clients choose another boundary for every retry of a form, so it does not count: a form is its parts, of which
 * there are few, whatever the boundary is.
 */
function readFingerprint(body: Buffer, contentType: string): string {
  const hash = createHash('sha256');
  const parts = findParts(body, contentType);
  if (!parts) return hash.update(body).digest('hex');
  for (const { headers, value } of parts)
    hash
      .update(`${headers.length}:${value.end - value.start}:`)
      .update(headers, 'latin1')
      .update(body.subarray(value.start, value.end));
  return hash.digest('hex');
}

/** The parts of a form; undefined for other content, and for a form that cannot be read, which is compared as it is. */
function findParts(body: Buffer, contentType: string): ReturnType<typeof readParts> {
  try {
    return readParts(body, contentType);
  } catch {
    return undefined;
  }
}

function checkSharable({ fingerprint, requestId, state, log }: KeyedResponse, given: string): void {
  if (fingerprint !== given)
    throw conflict(422, `Idempotency-Key: was used with another body by request ${requestId}; use a new key for a new request`);
  if (log.isComplete) return;
  throw conflict(
    409,
    state === 'running'
      ? `Idempotency-Key: request ${requestId} has this key and is still running, and its response is too large to be shared; wait for it, or use a new key`
      : `Idempotency-Key: request ${requestId} had this key and has finished, and its response is not stored; use a new key to send it again`,
  );
}

/** SDKs retry a 409 unless a header forbids it. */
const conflict = (http_status: 409 | 422, message: string): CodecError =>
  new CodecError({ code: 'INVALID_INPUT', message, http_status, details: { should_retry: 'false' } });

/** Runs the first request with its key. Its client reads the shared response like those that join. */
async function lead(
  entry: KeyedResponse,
  store: IdempotentResponses,
  incoming: RepeatableRequest,
  { run }: RepeatableWork,
  services: Services,
): Promise<Result> {
  share(entry, incoming, services);
  try {
    const result = await run();
    // What is left is written to the log, even if every client leaves.
    if (!result.error) entry.log.onAbandoned = () => undefined;
    store.finish(entry, result);
    return result;
  } catch (cause) {
    const error = cause instanceof CodecError ? cause.error : INTERNAL;
    const { status } = encodeError(error, { to: incoming.route.client });
    store.finish(entry, { status, ending: findEnding(error), error });
    throw cause;
  }
}

/** Puts the log between the exchange and its client: the exchange goes on while any client reads it. */
function share({ log }: KeyedResponse, incoming: RepeatableRequest, services: Services): void {
  const { id, connection: own } = incoming;
  const { limits, streams, clock } = services;
  const shared = new SharedResponse(log, limits.writeBufferBytes);
  const connection = new ClientConnection(shared.asServerResponse, clock, (cause) => {
    services.log.error({ request_id: id, error: String(cause instanceof Error ? cause.stack : cause) }, 'failed');
    shared.destroy();
  });
  const forwardStop = (): void => {
    if (own.stopError) connection.stop(own.stopError);
  };
  shared.once('close', () => streams.stall(connection, false));
  log.onAbandoned = (isStalled) => shared.abandon(isStalled);
  own.listen(forwardStop);
  forwardStop();
  const reader = new LogReader(log, {
    connection: own,
    isFirst: true,
    stallMs: limits.stallMs,
    buildHeaders: ({ headers }) => ({ ...headers, [RESPONSE_HEADER]: 'new' }),
    onStall: (isStalled) => streams.stall(own, isStalled),
  });
  incoming.response = shared.asServerResponse;
  incoming.connection = connection;
  reader.start();
}

const RESPONSE_HEADER = 'x-sluice-idempotency';

/** A client that receives the response of an earlier request. Nothing is sent upstream for it, and nothing is charged. */
class Follower {
  readonly #entry: KeyedResponse;
  readonly #incoming: RepeatableRequest;
  readonly #work: RepeatableWork;
  readonly #services: Services;
  readonly #reused: 'joined' | 'replayed';

  constructor(entry: KeyedResponse, incoming: RepeatableRequest, work: RepeatableWork, services: Services) {
    this.#entry = entry;
    this.#incoming = incoming;
    this.#work = work;
    this.#services = services;
    this.#reused = entry.state === 'running' ? 'joined' : 'replayed';
  }

  async run(): Promise<Result> {
    const { connection } = this.#incoming;
    const { record, describe } = this.#work;
    const { limits, streams } = this.#services;
    if (record.isKept) record.open(describe(), this.#entry.facts());
    // Attached before anything is awaited, so that the log keeps its bytes for this client.
    const reader = new LogReader(this.#entry.log, {
      connection,
      isFirst: false,
      stallMs: limits.stallMs,
      buildHeaders: (head) => this.#buildHeaders(head),
      onStall: (isStalled) => streams.stall(connection, isStalled),
      beforeEnd: async () => this.#settle(await this.#entry.ended),
    });
    await record.beforeContent();
    reader.start();
    const end = await this.#findEnd(await reader.done);
    await this.#settle(end);
    const requested = this.#entry.facts().model_requested ?? undefined;
    return { id: this.#incoming.id, attempts: 0, notes: [], requested, reused: this.#reused, ...end };
  }

  async #findEnd(end: ReaderEnd): Promise<SharedEnd> {
    switch (end) {
      case 'gone':
        return { status: 499, ending: 'client_aborted' };
      case 'stalled':
        return { status: 499, ending: 'client_stalled' };
      case 'complete':
      case 'broken':
        return this.#entry.ended;
      default:
        return end satisfies never;
    }
  }

  /** Only the first call counts. */
  async #settle({ status, ending, error }: SharedEnd): Promise<void> {
    await this.#work.record.settle({ status, ending, error, notes: [this.#note] });
  }

  get #note(): NoteRow {
    const { requestId } = this.#entry;
    const verb = this.#reused === 'joined' ? 'shares' : 'repeats';
    const message = `${verb} the response of request ${requestId}; not sent upstream`;
    return { code: this.#reused.toUpperCase(), feature: HEADER, message };
  }

  /** The headers of the first client, without what is true of its request only. */
  #buildHeaders({ headers }: ResponseHead): Record<string, string> {
    const own: Record<string, string> = {};
    for (const name of Object.keys(headers)) if (!FIRST_ONLY.test(name)) own[name] = headers[name] ?? '';
    own['x-sluice-request-id'] = this.#incoming.id;
    own['x-sluice-original-request-id'] = this.#entry.requestId;
    own['x-sluice-attempts'] = '0';
    own[RESPONSE_HEADER] = this.#reused;
    return own;
  }
}

/** Cost and rate limits: a shared response costs nothing, and uses up no limit. */
const FIRST_ONLY = /^(?:x-sluice-cost-usd|x-sluice-tried|(?:x|anthropic)-ratelimit-.*)$/;
