/** OpenAI Responses over WebSocket: every message is an exchange of its own. docs/responses.md is the guide. */

import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type CanonicalError, CodecError, type HeaderBag } from '@sluice/core';
import { CODECS, encodeError, type Route } from '@sluice/core/engine';
import { isDeeperThan, MAX_JSON_DEPTH } from '@sluice/core/internal';
import { type ServerOptions, type WebSocket, WebSocketServer } from 'ws';
import { ClientConnection } from '../exchange/client-connection.ts';
import { type PendingShare, PIECE_BYTES } from '../exchange/pending-bytes.ts';
import type { ConnectionLanes } from '../exchange/state.ts';
import { type Services, STOPPED } from '../exchange/types.ts';
import type { ClientAddress } from '../http/client-address.ts';
import type { Timer } from '../http/clock.ts';
import { endWithReply, refusal } from '../http/refusal.ts';
import type { Caller } from '../keys/caller.ts';
import { createInvalid } from '../responses/errors.ts';
import { encodeErrorFrame, FrameRequest, FrameResponse, type FrameSink } from './frames.ts';
import { handle } from './handle.ts';

/** The WebSocket connections of a gateway. */
export class ResponseSockets {
  readonly #services: Services;
  readonly #server: WebSocketServer;
  readonly #open = new Set<ResponseSocket>();

  constructor(services: Services) {
    this.#services = services;
    // The declarations lack the last option.
    const options: ServerOptions & { closeTimeout: number } = {
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: services.limits.requestBytes,
      // A client that sends pings and reads nothing would fill the memory with pongs.
      autoPong: false,
      closeTimeout: CLOSE_MS,
    };
    this.#server = new WebSocketServer(options);
    this.#server.on('wsClientError', (error: Error, socket: Duplex) => {
      const { error: refused } = refusal(400, 'INVALID_INPUT', `the WebSocket handshake is invalid: ${error.message}`);
      endWithReply(socket, encodeError(refused, { to: CODECS['openai-responses'] }), randomUUID());
    });
  }

  /** Takes over the connection of a request that was admitted. */
  accept(opening: Opening, request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const lanes = this.#services.responses?.openLanes?.();
    if (!lanes) {
      socket.destroy();
      return;
    }
    this.#server.handleUpgrade(request, socket, head, (webSocket) => {
      const open = new ResponseSocket(webSocket, opening, lanes, this.#services, () => this.#open.delete(open));
      this.#open.add(open);
      // Before the messages of a piece, so that each of them ends what was counted.
      socket.prependListener('data', (chunk: Buffer) => open.receive(chunk.length));
    });
  }

  /** Lets running responses finish, refuses others, and closes connections that are idle. */
  drain(): void {
    for (const socket of [...this.#open]) socket.drain();
  }

  /** Closes all connections at once. */
  terminate(): void {
    for (const socket of [...this.#open]) socket.abort();
  }
}

/** The request that opened a connection: its messages are requests with its path and headers. */
export interface Opening {
  readonly headers: HeaderBag;
  readonly client: ClientAddress;
  readonly route: Route;
  readonly caller: Caller;
}

/** A message that waits for its lane. */
interface QueuedMessage {
  readonly lane: string;
  readonly body: Buffer;
}

/** One connection. */
class ResponseSocket implements FrameSink {
  readonly #socket: WebSocket;
  readonly #opening: Opening;
  readonly #rawHeaders: readonly string[];
  readonly #lanes: ConnectionLanes;
  readonly #services: Services;
  readonly #onClosed: () => void;
  /** What is received, what waits for its lane, and what refusals wait to be read. */
  readonly #share: PendingShare;
  /** Bytes of a message that is not complete. */
  #unfinished = 0;
  /** What they cost, as `#share` counts. */
  #unfinishedCost = 0;
  #messageTimer: Timer | undefined;
  /** Runs while the client reads too little for further messages to be read. */
  #stallTimer: Timer | undefined;
  /** Runs while a connection whose key was revoked is closed. */
  #stopTimer: Timer | undefined;
  readonly #names = new Set<string>();
  /** What each busy lane runs. */
  readonly #running = new Map<string, FrameResponse>();
  #queue: QueuedMessage[] = [];
  #queuedBytes = 0;
  /** Called when the client has read enough. */
  #waiting: (() => void)[] = [];
  readonly #timer: Timer;
  /** Why no further message is accepted. */
  #end: 'drained' | 'expired' | 'stopped' | undefined;

  constructor(socket: WebSocket, opening: Opening, lanes: ConnectionLanes, services: Services, onClosed: () => void) {
    this.#socket = socket;
    this.#opening = { ...opening, headers: readFrameHeaders(opening.headers) };
    this.#rawHeaders = ['Host', opening.headers['host'] ?? ''];
    this.#lanes = lanes;
    this.#services = services;
    this.#onClosed = onClosed;
    this.#share = services.pending.open(opening.caller.id);
    this.#timer = services.clock.setTimer(() => this.#expire(), MAX_AGE_MS);
    socket.on('message', (data: Buffer, isBinary: boolean) => this.#guard(() => this.#onMessage(data, isBinary)));
    socket.on('ping', (data: Buffer) => {
      this.#skipControlFrame(data);
      if (!this.#isFull) socket.pong(data);
    });
    socket.on('pong', (data: Buffer) => this.#skipControlFrame(data));
    // The protocol was violated, or the connection was reset; `close` follows.
    socket.on('error', () => undefined);
    socket.on('close', () => this.#close());
    services.streams.bind(this);
  }

  /** The public id of the key that opened the connection, which ends with it. */
  get keyId(): string {
    return this.#opening.caller.id;
  }

  // ---- what responses write to

  get backlog(): number {
    return this.#socket.bufferedAmount;
  }

  get #isFull(): boolean {
    return this.backlog > this.#services.limits.writeBufferBytes;
  }

  send(text: string): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    this.#socket.send(text, () => this.#release());
  }

  ping(): void {
    if (this.#socket.readyState === this.#socket.OPEN && !this.#isFull) this.#socket.ping();
  }

  whenReady(ready: () => void): void {
    if (this.#isFull) this.#waiting.push(ready);
    else ready();
  }

  #release(): void {
    if (this.#isFull) return;
    if (this.#stallTimer) this.#readOn(this.#stallTimer);
    for (const ready of this.#waiting.splice(0)) ready();
    this.#start();
  }

  /** Refuses a message. A client that sends on without reading refusals is not read until it does. */
  #reply(text: string): void {
    const bytes = text.length + PIECE_BYTES;
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    if (this.#share.add(bytes)) {
      this.abort();
      return;
    }
    this.#socket.send(text, () => {
      this.#share.release(bytes);
      this.#release();
    });
    if (this.#isFull && !this.#stallTimer) this.#stopReading();
  }

  #stopReading(): void {
    const { clock, limits } = this.#services;
    this.#socket.pause();
    let before = this.backlog;
    this.#stallTimer = clock.setRepeating(() => {
      if (this.backlog >= before) this.abort();
      before = this.backlog;
    }, limits.stallMs);
  }

  #readOn(timer: Timer): void {
    timer.close();
    this.#stallTimer = undefined;
    this.#socket.resume();
  }

  abort(): void {
    this.#socket.terminate();
  }

  // ---- messages of the client

  /** Bytes were read from the connection. What has no end yet is counted, and must end in time. */
  receive(bytes: number): void {
    const isOpen = this.#socket.readyState === this.#socket.OPEN;
    const cost = bytes + PIECE_BYTES;
    const refused = this.#share.add(cost);
    if (refused) {
      if (isOpen) this.#closeWith(refused, TRY_AGAIN_LATER);
      else this.abort();
      return;
    }
    this.#unfinished += bytes;
    this.#unfinishedCost += cost;
    if (!isOpen) return;
    const { clock, limits } = this.#services;
    this.#messageTimer ??= clock.setTimer(() => this.#closeWith(TIMED_OUT, POLICY_VIOLATION), limits.requestReadMs);
  }

  /** Pings and pongs may come between the parts of a message, and are none. */
  #skipControlFrame({ length }: Buffer): void {
    this.#unfinished -= length + CONTROL_HEAD_BYTES;
    if (this.#unfinished <= 0) this.#finishMessage();
  }

  /** Nothing is unfinished, but perhaps the beginning of the next message in the piece that was read last. */
  #finishMessage(): void {
    this.#share.release(this.#unfinishedCost);
    this.#unfinished = 0;
    this.#unfinishedCost = 0;
    this.#messageTimer?.close();
    this.#messageTimer = undefined;
  }

  #onMessage(data: Buffer, isBinary: boolean): void {
    this.#finishMessage();
    if (this.#socket.readyState !== this.#socket.OPEN || this.#end === 'stopped') return;
    if (isBinary) {
      this.#refuse(createInvalid('messages must be JSON text, not binary', null, 'invalid_message'));
      this.#socket.close(UNSUPPORTED_DATA);
      return;
    }
    const message = parseMessage(data);
    if (message instanceof CodecError) this.#refuse(message);
    else this.#receive(message);
  }

  #receive(message: ClientMessage): void {
    const { type, stream_id: lane = null } = message;
    if (type === 'response.processed') return; // Codex confirms what it has read.
    if (lane !== null && !(typeof lane === 'string' && STREAM_ID.test(lane))) {
      this.#refuse(createInvalid(INVALID_STREAM_ID, 'stream_id', 'invalid_stream_id'));
      return;
    }
    const name = lane ?? '';
    if (type === 'response.steer') this.#refuseSteering(message, name);
    else if (type !== 'response.create')
      this.#refuse(createInvalid('type: must be response.create', 'type', 'invalid_value'), name);
    else this.#create(message, name);
  }

  /** Responses of an HTTP upstream cannot be steered: the client gets its input back. */
  #refuseSteering({ previous_response_id = '', input = '' }: ClientMessage, lane: string): void {
    const message = 'steering is not supported; send the input with response.create after the response';
    const error = { type: 'invalid_request_error', code: 'steering_not_supported', message };
    const named = lane === '' ? {} : { stream_id: lane };
    const steer = { previous_response_id, input };
    this.#reply(JSON.stringify({ type: 'response.steer.failed', ...named, sequence_number: 0, steer, error }));
  }

  #create(message: ClientMessage, lane: string): void {
    const unfit = this.#findRefusal(message, lane);
    const body = unfit ? NO_BODY : encodeBody(message);
    const refused = unfit ?? this.#share.add(body.length);
    if (refused) {
      this.#refuse(refused, lane);
      return;
    }
    if (lane !== '') this.#names.add(lane);
    this.#queuedBytes += body.length;
    this.#queue.push({ lane, body });
    this.#start();
  }

  #findRefusal({ background }: ClientMessage, lane: string): CodecError | undefined {
    if (this.#end === 'drained') return new CodecError(STOPPED);
    if (this.#end === 'expired') return EXPIRED;
    if (background === true)
      return createInvalid('background: is not supported over WebSocket; use HTTP', 'background', 'invalid_value');
    if (lane !== '' && !this.#names.has(lane) && this.#names.size >= MAX_NAMED_LANES) return TOO_MANY_LANES;
    const isFull = this.#queue.length >= MAX_QUEUED || this.#queuedBytes > this.#services.limits.requestBytes;
    return isFull ? QUEUE_FULL : undefined;
  }

  /** Starts what can be started: each lane runs one message after the other, and none while the client does not read. */
  #start(): void {
    for (const message of [...this.#queue]) {
      if (this.#running.size >= MAX_RUNNING || this.#isFull || this.#socket.readyState !== this.#socket.OPEN) return;
      if (this.#running.has(message.lane)) continue;
      this.#queue.splice(this.#queue.indexOf(message), 1);
      this.#queuedBytes -= message.body.length;
      this.#share.release(message.body.length);
      void this.#run(message);
    }
  }

  /** Runs one message as a request. Never rejects. */
  async #run({ lane, body }: QueuedMessage): Promise<void> {
    const { clock, limits, log } = this.#services;
    const id = randomUUID();
    const request = new FrameRequest(body, this.#rawHeaders).asIncomingMessage;
    const frames = new FrameResponse({
      sink: this,
      request,
      streamId: lane,
      clock,
      bufferBytes: limits.writeBufferBytes,
      eventBytes: limits.eventBytes,
    });
    this.#running.set(lane, frames);
    const onFault = (cause: unknown): void => {
      log.error({ request_id: id, error: String(cause instanceof Error ? cause.stack : cause) }, 'failed');
      frames.destroy();
    };
    const response = frames.asServerResponse;
    const connection = new ClientConnection(response, clock, onFault);
    const directory = this.#services.directory();
    const { headers, client, route } = this.#opening;
    const incoming = {
      id,
      request,
      response,
      connection,
      headers,
      client,
      route,
      directory,
      lane: { lanes: this.#lanes, name: lane },
    };
    await handle(incoming, this.#services).catch(onFault);
    this.#running.delete(lane);
    this.#start();
    this.#closeIfIdle();
  }

  #refuse({ error }: CodecError, lane = ''): void {
    this.#reply(encodeErrorFrame(encodeError(error, { to: this.#opening.route.client }), lane));
  }

  // ---- the end of the connection

  drain(): void {
    this.#end = 'drained';
    this.#refuseQueue(STOPPED);
    this.#closeIfIdle();
  }

  /** The key was revoked: what it sends is ignored from now on. `Streams` stops what runs for it. */
  stop(error: CanonicalError): void {
    if (this.#end === 'stopped') return;
    this.#end = 'stopped';
    this.#refuseQueue(error);
    if (this.#running.size === 0) this.#refuse(new CodecError(error));
    this.#stopTimer = this.#services.clock.setTimer(() => this.abort(), CLOSE_MS);
    this.#closeIfIdle();
  }

  #refuseQueue(error: CanonicalError): void {
    const refused = this.#queue.splice(0);
    this.#share.release(this.#queuedBytes);
    this.#queuedBytes = 0;
    for (const { lane } of refused) this.#refuse(new CodecError(error), lane);
  }

  /** Closes the connection, and tells the client why. What was received is held until the connection has ended. */
  #closeWith({ error }: CodecError, code: number): void {
    this.send(encodeErrorFrame(encodeError(error, { to: this.#opening.route.client }), ''));
    this.#socket.close(code);
  }

  /** Running responses finish. */
  #expire(): void {
    this.#end ??= 'expired';
    this.#closeIfIdle();
  }

  #closeIfIdle(): void {
    if (!this.#end || this.#running.size > 0 || this.#queue.length > 0) return;
    if (this.#end === 'expired') this.#refuse(EXPIRED);
    this.#socket.close(this.#end === 'stopped' ? POLICY_VIOLATION : GOING_AWAY);
  }

  #close(): void {
    for (const timer of [this.#timer, this.#messageTimer, this.#stallTimer, this.#stopTimer]) timer?.close();
    this.#services.streams.unbind(this);
    this.#share.release();
    this.#queue = [];
    this.#waiting = [];
    // The client has left: what runs for it is cancelled.
    for (const response of [...this.#running.values()]) response.destroy();
    this.#lanes.close();
    this.#onClosed();
  }

  /** A bug of the gateway ends this connection only. */
  #guard(run: () => void): void {
    try {
      run();
    } catch (cause) {
      this.#services.log.error({ error: String(cause instanceof Error ? cause.stack : cause) }, 'failed');
      this.abort();
    }
  }
}

/** As the API limits a connection. */
const MAX_AGE_MS = 60 * 60_000;
const MAX_RUNNING = 16;
const MAX_NAMED_LANES = 32;

const NO_BODY = Buffer.alloc(0);

/** Messages that may wait for their lanes. */
const MAX_QUEUED = 32;

/** How long a client may take to confirm that a connection is closed. */
const CLOSE_MS = 2000;

/** Codes of closed connections (RFC 6455 7.4.1). */
const GOING_AWAY = 1001;
const UNSUPPORTED_DATA = 1003;
const POLICY_VIOLATION = 1008;
const TRY_AGAIN_LATER = 1013;

/** The head of a control frame of a client: two bytes, and four of its mask. */
const CONTROL_HEAD_BYTES = 6;

const STREAM_ID = /^[\w.-]{1,256}$/;

const INVALID_STREAM_ID =
  "The 'stream_id' field must be a non-empty string with at most 256 characters and may only contain letters, numbers, underscores, hyphens, and periods.";

const EXPIRED = createInvalid(
  'Responses websocket connection limit reached (60 minutes). Create a new websocket connection to continue.',
  null,
  'websocket_connection_limit_reached',
);

const TIMED_OUT = createInvalid('timed out waiting for the end of the message (limits.request_timeout)', null, 'message_timeout');

const TOO_MANY_LANES = createInvalid(
  `This WebSocket connection has reached its maximum number of distinct stream IDs (${MAX_NAMED_LANES}). Reuse an existing stream_id or open a new WebSocket connection.`,
  'stream_id',
  'websocket_stream_limit_reached',
);

const QUEUE_FULL = new CodecError({
  code: 'RATE_LIMIT',
  message: 'too many requests wait on this WebSocket connection; wait for a response',
  http_status: 429,
});

/** A message of the client. */
type ClientMessage = Readonly<Record<string, unknown>>;

function parseMessage(data: Buffer): ClientMessage | CodecError {
  try {
    const message: unknown = JSON.parse(data.toString('utf8'));
    if (isDeeperThan(message, MAX_JSON_DEPTH))
      return createInvalid(`the message is nested more than ${MAX_JSON_DEPTH} levels deep`, null, 'invalid_message');
    if (typeof message === 'object' && message !== null && !Array.isArray(message)) return { ...message };
  } catch {
    // Reported below.
  }
  return createInvalid('the message is not a JSON object', null, 'invalid_message');
}

/** The body of the request that a message stands for. `generate: true` is the default, which only WebSocket knows. */
function encodeBody({ type: _type, stream_id: _lane, background: _background, generate, ...body }: ClientMessage): Buffer {
  return Buffer.from(JSON.stringify({ ...body, ...(generate === false && { generate }), stream: true }));
}

/** The headers of the requests that messages stand for: without those of the upgrade, and those that belong to one request. */
function readFrameHeaders(headers: HeaderBag): HeaderBag {
  const own = Object.entries(headers).filter(([name]) => !UPGRADE_HEADERS.test(name));
  const betas = (headers['openai-beta'] ?? '').split(',').filter((beta) => beta.trim() !== '' && !SOCKET_BETA.test(beta));
  return {
    ...Object.fromEntries(own),
    ...(betas.length > 0 && { 'openai-beta': betas.join(',') }),
    'content-type': 'application/json',
  };
}

const UPGRADE_HEADERS =
  /^(?:upgrade|connection|sec-websocket-.*|content-.*|transfer-encoding|expect|idempotency-key|openai-beta)$/;

/** The beta that Codex names at the upgrade: the upstream is asked over HTTP. */
const SOCKET_BETA = /^\s*responses_websockets\b/;
