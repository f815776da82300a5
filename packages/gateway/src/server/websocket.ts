/** OpenAI Responses over WebSocket: every message is an exchange of its own. docs/responses.md is the guide. */

import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { CodecError, type HeaderBag } from '@sluice/core';
import { CODECS, encodeError, type Route } from '@sluice/core/engine';
import { isDeeperThan, MAX_JSON_DEPTH } from '@sluice/core/internal';
import { type ServerOptions, type WebSocket, WebSocketServer } from 'ws';
import { ClientConnection } from '../exchange/client-connection.ts';
import type { ConnectionLanes } from '../exchange/state.ts';
import { type Services, STOPPED } from '../exchange/types.ts';
import type { ClientAddress } from '../http/client-address.ts';
import type { Timer } from '../http/clock.ts';
import { endWithReply, refusal } from '../http/refusal.ts';
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
  readonly #names = new Set<string>();
  /** What each busy lane runs. */
  readonly #running = new Map<string, FrameResponse>();
  #queue: QueuedMessage[] = [];
  #queuedBytes = 0;
  /** Called when the client has read enough. */
  #waiting: (() => void)[] = [];
  readonly #timer: Timer;
  /** Why no further message is accepted. */
  #end: 'drained' | 'expired' | undefined;

  constructor(socket: WebSocket, opening: Opening, lanes: ConnectionLanes, services: Services, onClosed: () => void) {
    this.#socket = socket;
    this.#opening = { ...opening, headers: readFrameHeaders(opening.headers) };
    this.#rawHeaders = ['Host', opening.headers['host'] ?? ''];
    this.#lanes = lanes;
    this.#services = services;
    this.#onClosed = onClosed;
    this.#timer = services.clock.setTimer(() => this.#expire(), MAX_AGE_MS).unref();
    socket.on('message', (data: Buffer, isBinary: boolean) => this.#guard(() => this.#onMessage(data, isBinary)));
    socket.on('ping', (data: Buffer) => {
      if (!this.#isFull) socket.pong(data);
    });
    // The protocol was violated, or the connection was reset; `close` follows.
    socket.on('error', () => undefined);
    socket.on('close', () => this.#close());
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
    if (this.#waiting.length === 0 || this.#isFull) return;
    for (const ready of this.#waiting.splice(0)) ready();
  }

  abort(): void {
    this.#socket.terminate();
  }

  // ---- messages of the client

  #onMessage(data: Buffer, isBinary: boolean): void {
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
    this.send(JSON.stringify({ type: 'response.steer.failed', ...named, sequence_number: 0, steer, error }));
  }

  #create(message: ClientMessage, lane: string): void {
    const refused = this.#findRefusal(message, lane);
    if (refused) {
      this.#refuse(refused, lane);
      return;
    }
    if (lane !== '') this.#names.add(lane);
    const body = encodeBody(message);
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

  /** Starts what can be started: each lane runs one message after the other. */
  #start(): void {
    for (const message of [...this.#queue]) {
      if (this.#running.size >= MAX_RUNNING) return;
      if (this.#running.has(message.lane)) continue;
      this.#queue.splice(this.#queue.indexOf(message), 1);
      this.#queuedBytes -= message.body.length;
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
    this.send(encodeErrorFrame(encodeError(error, { to: this.#opening.route.client }), lane));
  }

  // ---- the end of the connection

  drain(): void {
    this.#end = 'drained';
    const refused = this.#queue.splice(0);
    this.#queuedBytes = 0;
    for (const { lane } of refused) this.#refuse(new CodecError(STOPPED), lane);
    this.#closeIfIdle();
  }

  /** Running responses finish. */
  #expire(): void {
    this.#end ??= 'expired';
    this.#closeIfIdle();
  }

  #closeIfIdle(): void {
    if (!this.#end || this.#running.size > 0 || this.#queue.length > 0) return;
    if (this.#end === 'expired') this.#refuse(EXPIRED);
    this.#socket.close(GOING_AWAY);
  }

  #close(): void {
    this.#timer.close();
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

/** Messages that may wait for their lanes. */
const MAX_QUEUED = 32;

/** How long a client may take to confirm that a connection is closed. */
const CLOSE_MS = 2000;

/** Codes of closed connections (RFC 6455 7.4.1). */
const GOING_AWAY = 1001;
const UNSUPPORTED_DATA = 1003;

const STREAM_ID = /^[\w.-]{1,256}$/;

const INVALID_STREAM_ID =
  "The 'stream_id' field must be a non-empty string with at most 256 characters and may only contain letters, numbers, underscores, hyphens, and periods.";

const EXPIRED = createInvalid(
  'Responses websocket connection limit reached (60 minutes). Create a new websocket connection to continue.',
  null,
  'websocket_connection_limit_reached',
);

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
