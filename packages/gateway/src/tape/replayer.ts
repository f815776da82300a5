import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import {
  type CanonicalRequest,
  type Codec,
  CodecError,
  convertError,
  convertResponse,
  createSseDecoder,
  createStreamConverter,
  type HeaderBag,
} from '@sluice/core';
import {
  buildTokenEstimate,
  CODECS,
  convertResponseToStream,
  convertStreamToResponse,
  decodeRequest,
  encodeError,
  encodeModels,
  findRoute,
  type Route,
} from '@sluice/core/engine';
import { type Mutation, mutateStream, PLAIN_FRAMING, seededRandom, type WireStream, writeStream } from '@sluice/lab/mutate';
import {
  type Faults,
  isBreaking,
  NO_FAULTS,
  type Piece,
  parseFaults,
  pause,
  play,
  ResponseSink,
  splitModel,
  splitReads,
} from '@sluice/lab/replay';
import type { Exchange, RecordedResponse } from '@sluice/lab/tape';
import { LOOPBACK, listen, stopListening } from '../http/listen.ts';
import { checkHost, isForeignPage } from '../http/origin.ts';
import { refusal } from '../http/refusal.ts';
import { type Choice, Chooser, computeDigest } from './choose.ts';
import { collectBody, parseJson, readHeaders, readPath, readTarget } from './incoming.ts';
import { Scrubber } from './scrub.ts';

/** A provider that responds with recorded exchanges, in their protocol or converted to another. */
export class Replayer {
  readonly #options: Required<Omit<ReplayerOptions, 'exchanges'>> & Pick<ReplayerOptions, 'exchanges'>;
  readonly #chooser: Chooser;
  readonly #server: Server;
  /** How often each fault with `times` has happened. */
  readonly #happened = new Map<string, number>();

  private constructor(options: ReplayerOptions, chooser: Chooser) {
    const presets = { speed: 0, faults: NO_FAULTS, repair: false, isStrict: false, onServed: () => undefined };
    this.#options = { ...presets, ...options };
    this.#chooser = chooser;
    this.#server = createServer({ noDelay: true }, (request, response) => void this.#serve(request, response));
  }

  /** Reads the recorded requests and creates the server. */
  static async open(options: ReplayerOptions): Promise<Replayer> {
    return new Replayer(options, await Chooser.open(options.exchanges, options.isStrict ?? false));
  }

  /** Listens on the loopback address only: recordings are private. */
  listen(port: number): Promise<string> {
    return listen(this.#server, { host: LOOPBACK, port });
  }

  async close(): Promise<void> {
    const closed = stopListening(this.#server);
    this.#server.closeAllConnections();
    await closed;
  }

  /** Never rejects. */
  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const headers = readHeaders(request);
    const route = findRoute(request.url ?? '/', headers);
    const served: Served = {
      method: request.method ?? 'GET',
      path: new Scrubber().path(readPath(request)),
      model: '',
      status: 0,
      exchange: undefined,
      why: '',
      faults: '',
      skipped: [],
    };
    try {
      if (isForeignPage(headers)) throw refusal(403, 'PERMISSION', 'requests from web pages of other origins are not allowed');
      checkHost(headers['host'], '; use 127.0.0.1');
      await this.#respond({ request, response, headers, route, served }, await collectBody(request, MAX_REQUEST_BYTES));
    } catch (cause) {
      this.#sendError(cause, route, response, served);
    }
    this.#options.onServed(served);
  }

  async #respond(incoming: Incoming, body: Buffer): Promise<void> {
    const { response, route, headers, served } = incoming;
    const requested = readTarget(route, headers, parseJson(body));
    const { model, fault } = splitModel(requested.model ?? '');
    const faults = this.#faultsFor(headers[FAULT_HEADER] ?? fault, `${route.path} ${model}`);
    Object.assign(served, { model, faults: faults.text });
    if (faults.delay) await pause(new ResponseSink(response), faults.delay);
    if (faults.status !== undefined || faults.page !== undefined) this.#failWith(faults, incoming);
    else if (route.type === 'MODELS') this.#sendModels(incoming);
    else await this.#replay(incoming, body, { model, isStream: requested.stream, faults });
  }

  /** The header overrides the name of the model, which overrides the operator's faults. */
  #faultsFor(requested: string | undefined, target: string): Faults {
    const faults = requested === undefined ? this.#options.faults : parseFaults(requested);
    if (faults.times === undefined) return faults;
    const key = `${faults.text} ${target}`;
    const happened = this.#happened.get(key) ?? 0;
    if (happened >= faults.times) return NO_FAULTS;
    if (this.#happened.size < MAX_COUNTED) this.#happened.set(key, happened + 1);
    return faults;
  }

  async #replay(incoming: Incoming, body: Buffer, wanted: { model: string; isStream: boolean; faults: Faults }): Promise<void> {
    const { response, route, headers, served } = incoming;
    const { faults, model, isStream } = wanted;
    const choice = this.#choose(incoming, body, wanted);
    if (!choice) {
      if (route.type !== 'COUNT_TOKENS') throw createNoMatchError(served, this.#options.exchanges);
      send(
        response,
        served,
        200,
        buildTokenEstimate({ method: 'POST', path: route.path, headers, body: parseJson(body) }, route.client),
      );
      return;
    }
    const { exchange, why } = choice;
    Object.assign(served, { exchange: exchange.name, why });
    if (!isBreaking(faults)) choice.serve();
    const { response: recorded } = exchange;
    if (!recorded) {
      response.socket?.resetAndDestroy();
      return;
    }
    const { speed, repair } = this.#options;
    const request = { route, headers, body: parseJson(body), model, isStream, mutations: faults.mutations, speed, repair };
    const reply = buildReply(exchange, recorded, await recorded.readBody(), request);
    Object.assign(served, { status: reply.status, skipped: reply.skipped });
    for (const [name, value] of Object.entries(reply.headers)) response.setHeader(name, value);
    response.setHeader(EXCHANGE_HEADER, encodeURI(exchange.name));
    response.statusCode = reply.status;
    response.flushHeaders();
    await play(new ResponseSink(response), reply.pieces, exchange.ending === 'complete', faults);
  }

  #choose({ headers, route, served }: Incoming, body: Buffer, wanted: { model: string; isStream: boolean }): Choice | undefined {
    const name = headers[EXCHANGE_HEADER];
    if (name !== undefined) return this.#chooser.named(name) ?? throwUnknownExchange(name);
    const { client, type } = route;
    return this.#chooser.choose({ protocol: client.id, type, ...served, ...wanted, digest: computeDigest(body, wanted.model) });
  }

  #failWith({ status, page }: Faults, { response, route, served }: Incoming): void {
    served.why = 'fault';
    if (page !== undefined) {
      served.status = page;
      response.writeHead(page, { 'content-type': 'text/html' }).end(HTML_PAGE);
      return;
    }
    const reply = convertError({ status: status ?? 500, body: FAULT_BODY }, { from: route.client, to: route.client });
    send(response, served, status ?? 500, reply.body);
  }

  #sendModels({ response, route, served }: Incoming): void {
    const names = [...new Set(this.#options.exchanges.map(({ model }) => model))].filter((model) => model !== '');
    served.why = 'models of the tape';
    send(response, served, 200, encodeModels({ models: names.map((id) => ({ id })), has_more: false }, { to: route.client }));
  }

  #sendError(cause: unknown, route: Route, response: ServerResponse, served: Served): void {
    const error =
      cause instanceof CodecError ? cause.error : { code: 'INTERNAL' as const, message: String(cause), http_status: 500 };
    served.why ||= error.message;
    const { status, body } = encodeError(error, { to: route.client });
    if (response.headersSent) response.destroy();
    else send(response, served, status, body);
  }
}

/** What is replayed, and how. */
export interface ReplayerOptions {
  exchanges: readonly Exchange[];
  /** 1: at the recorded speed, 10: ten times faster, 0: at once. */
  speed?: number;
  /** Faults of requests that name none themselves. */
  faults?: Faults;
  repair?: boolean;
  /** Reject requests that match no recorded exchange. */
  isStrict?: boolean;
  onServed?(served: Served): void;
}

/** A request and its result. */
export interface Served {
  method: string;
  path: string;
  model: string;
  status: number;
  exchange: string | undefined;
  why: string;
  /** The faults as requested; "" for none. */
  faults: string;
  /** Dialects that do not apply to the response. */
  skipped: readonly string[];
}

/** Request header that chooses an exchange; response header that names it. */
export const EXCHANGE_HEADER = 'x-sluice-exchange';

/** Request header that chooses faults. */
export const FAULT_HEADER = 'x-sluice-fault';

/** Body of a request to the replayer: as much as the recorder keeps. */
const MAX_REQUEST_BYTES = 64 * 1024 * 1024;

/** Entries of the count of faults with `times`. */
const MAX_COUNTED = 10_000;

const FAULT_BODY = { error: { message: 'error injected by sluice replay' } };

const HTML_PAGE = '<html><body><h1>Bad Gateway</h1></body></html>\n';

interface Incoming {
  request: IncomingMessage;
  response: ServerResponse;
  headers: HeaderBag;
  route: Route;
  served: Served;
}

function send(response: ServerResponse, served: Served, status: number, body: unknown): void {
  served.status = status;
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

const throwUnknownExchange = (name: string): never => {
  throw refusal(404, 'NOT_FOUND', `the tape has no exchange ${JSON.stringify(name.slice(0, 200))}`);
};

function createNoMatchError({ method, path, model }: Served, exchanges: readonly Exchange[]): CodecError {
  const models = [...new Set(exchanges.map((exchange) => exchange.model))].slice(0, 8).join(', ');
  const what = `${method} ${path.split('?', 1).join()}${model === '' ? '' : ` for ${model}`}`;
  return refusal(
    404,
    'NOT_FOUND',
    `the tape has no exchange for ${what.slice(0, 300)}; it has ${exchanges.length} exchanges (${models})`,
  );
}

/**
 * A recorded response for this client: byte for byte in the protocol of the tape, else converted. Throws a CodecError.
 */
function buildReply(exchange: Exchange, recorded: RecordedResponse, body: Uint8Array, request: ReplayRequest): Reply {
  const { route, mutations, speed } = request;
  const from = exchange.protocol && CODECS[exchange.protocol];
  const applicable =
    request.isStream && recorded.status < 400 ? mutations.filter(({ protocols }) => protocols.includes(route.client.id)) : [];
  const skipped = mutations.filter((mutation) => !applicable.includes(mutation)).map(({ id }) => id);
  const isUnchanged =
    !from || route.type !== 'CHAT' || (isSameForm(exchange, request) && !request.repair && applicable.length === 0);
  if (isUnchanged) {
    const { status, headers } = recorded;
    return { status, headers: withLength(headers, body), pieces: splitReads(body, recorded.reads, speed), skipped };
  }
  if (recorded.status >= 400) return { ...convertErrorReply(recorded, body, from, route.client), skipped };
  const conversion = { from, to: route.client, model: request.model, request: decodeClientRequest(request) };
  if (!request.isStream) return { ...convertWhole(exchange, body, conversion), skipped };
  const framing = route.client.framing?.(route.path) ?? 'sse';
  const pieces = convertStream(exchange, recorded, body, { ...conversion, framing }, speed);
  const headers = framing === 'sse' ? STREAM_HEADERS : JSON_HEADERS;
  return {
    status: 200,
    headers,
    pieces: applicable.length > 0 ? applyMutations(pieces, route.client, applicable) : pieces,
    skipped,
  };
}

/** A request to the replayer. */
interface ReplayRequest {
  route: Route;
  headers: HeaderBag;
  /** The parsed body. */
  body: unknown;
  model: string;
  isStream: boolean;
  mutations: readonly Mutation[];
  /** 1: at the recorded speed; 0: at once. */
  speed: number;
  /** Decode and encode even in the protocol of the tape. */
  repair: boolean;
}

interface Reply {
  status: number;
  headers: Record<string, string>;
  pieces: Iterable<Piece>;
  /** Dialects that do not apply to the response. */
  skipped: readonly string[];
}

type BareReply = Omit<Reply, 'skipped'>;

const STREAM_HEADERS = { 'content-type': 'text/event-stream' };

const JSON_HEADERS = { 'content-type': 'application/json' };

/** Whether the client reads what the recorded client read: protocol, stream or not, and framing are equal. */
function isSameForm(
  { protocol, isStream, request }: Exchange,
  { route: { client, path }, isStream: isRequested }: ReplayRequest,
): boolean {
  return protocol === client.id && isStream === isRequested && client.framing?.(path) === client.framing?.(request.path);
}

const decodeClientRequest = ({ route, headers, body, model, isStream }: ReplayRequest): CanonicalRequest => ({
  ...decodeRequest(body, { from: route.client, path: route.path, headers, stream: isStream }),
  model,
});

/** Updates a recorded content-length, because the body on the tape may have been edited. */
const withLength = (headers: Record<string, string>, { length }: Uint8Array): Record<string, string> =>
  headers['content-length'] === undefined ? headers : { ...headers, 'content-length': String(length) };

const buildJsonReply = (status: number, headers: Record<string, string>, body: unknown): BareReply => {
  const bytes = Buffer.from(JSON.stringify(body));
  return {
    status,
    headers: { ...headers, ...JSON_HEADERS, 'content-length': String(bytes.length) },
    pieces: [{ waitMs: 0, bytes }],
  };
};

function convertErrorReply({ status, headers }: RecordedResponse, body: Uint8Array, from: Codec, to: Codec): BareReply {
  const text = Buffer.from(body).toString('utf8');
  const reply = convertError({ status, headers, body: parseJson(body) ?? text }, { from, to });
  return buildJsonReply(reply.status, reply.headers, reply.body);
}

interface Conversion {
  from: Codec;
  to: Codec;
  model: string;
  request: CanonicalRequest;
}

function convertWhole({ isStream }: Exchange, body: Uint8Array, conversion: Conversion): BareReply {
  const converted = isStream ? convertStreamToResponse([body], conversion) : convertResponse(parseJson(body), conversion);
  return buildJsonReply(200, {}, converted.body);
}

function* convertStream(
  exchange: Exchange,
  { reads }: RecordedResponse,
  body: Uint8Array,
  conversion: Conversion & { framing: 'sse' | 'json-array' },
  speed: number,
): Iterable<Piece> {
  if (!exchange.isStream) {
    yield { waitMs: 0, bytes: convertResponseToStream(parseJson(body), conversion).body };
    return;
  }
  const converter = createStreamConverter(conversion);
  for (const { waitMs, bytes } of splitReads(body, reads, speed)) yield { waitMs, bytes: joinBytes(converter.push(bytes)) };
  // For a connection that broke, no ending is made up.
  if (exchange.ending === 'complete') yield { waitMs: 0, bytes: joinBytes(converter.end()) };
}

const joinBytes = (pieces: Iterable<Uint8Array>): Uint8Array => Buffer.concat([...pieces]);

/** Dialects are derived from conforming streams, so violations of the tape are repaired first. */
function* applyMutations(pieces: Iterable<Piece>, client: Codec, mutations: readonly Mutation[]): Iterable<Piece> {
  const decoder = createSseDecoder();
  const frames = [...[...pieces].flatMap(({ bytes }) => [...decoder.push(bytes)]), ...decoder.end()];
  const random = seededRandom(1);
  const clean: WireStream = { protocol: client.id, frames, framing: PLAIN_FRAMING };
  for (const bytes of writeStream(mutateStream(clean, mutations, random), random)) yield { waitMs: 0, bytes };
}
