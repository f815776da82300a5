import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import {
  CodecError,
  convertError,
  encodeError,
  encodeModels,
  estimateAnswer,
  type HeaderBag,
  type Route,
  routeOf,
} from '@sluice/core';
import { LOOPBACK, listen, stopListening } from '../http/listen.ts';
import { checkHost, isForeignPage } from '../server/origin.ts';
import { refusal } from '../server/refusal.ts';
import { replyOf } from './answer.ts';
import { askedOf, collectBody, headersOf, parsed, pathOf } from './asked.ts';
import { type Choice, Chooser, digestOf } from './choose.ts';
import type { Exchange } from './exchange.ts';
import { type Faults, isBreaking, NO_FAULTS, parseFaults, splitModel } from './faults.ts';
import { play, ResponseSink, silence } from './play.ts';
import { Scrubber } from './scrub.ts';

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

/** Request headers that choose an exchange, or faults. */
export const EXCHANGE_HEADER = 'x-sluice-exchange';
export const FAULT_HEADER = 'x-sluice-fault';

/** Body of a request to the replayer: as much as the recorder keeps. */
const MAX_REQUEST_BYTES = 64 * 1024 * 1024;
/** Counted faults with `times`. */
const MAX_COUNTED = 10_000;
const FAULT_BODY = { error: { message: 'this error was asked for' } };
const PAGE = '<html><body><h1>Bad Gateway</h1></body></html>\n';

/** A provider that responds with recorded exchanges, in their protocol or any other. */
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
    const headers = headersOf(request);
    const route = routeOf(request.url ?? '/', headers);
    const served: Served = {
      method: request.method ?? 'GET',
      path: new Scrubber().path(pathOf(request)),
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
      await this.#answer({ request, response, headers, route, served }, await collectBody(request, MAX_REQUEST_BYTES));
    } catch (cause) {
      this.#refuse(cause, route, response, served);
    }
    this.#options.onServed(served);
  }

  async #answer(incoming: Incoming, body: Buffer): Promise<void> {
    const { response, route, headers, served } = incoming;
    const asked = askedOf(route, headers, parsed(body));
    const { model, fault } = splitModel(asked.model ?? '');
    const faults = this.#faultsFor(headers[FAULT_HEADER] ?? fault, `${route.path} ${model}`);
    Object.assign(served, { model, faults: faults.text });
    if (faults.delay) await silence(new ResponseSink(response), faults.delay);
    if (faults.status !== undefined || faults.page !== undefined) this.#failWith(faults, incoming);
    else if (route.type === 'MODELS') this.#tellModels(incoming);
    else await this.#replay(incoming, body, { model, isStream: asked.stream, faults });
  }

  /** The header overrides the name of the model, which overrides the operator's faults. */
  #faultsFor(asked: string | undefined, who: string): Faults {
    const faults = asked === undefined ? this.#options.faults : parseFaults(asked);
    if (faults.times === undefined) return faults;
    const key = `${faults.text} ${who}`;
    const happened = this.#happened.get(key) ?? 0;
    if (happened >= faults.times) return NO_FAULTS;
    if (this.#happened.size < MAX_COUNTED) this.#happened.set(key, happened + 1);
    return faults;
  }

  async #replay(incoming: Incoming, body: Buffer, asked: { model: string; isStream: boolean; faults: Faults }): Promise<void> {
    const { response, route, headers, served } = incoming;
    const { faults, model, isStream } = asked;
    const choice = this.#choose(incoming, body, asked);
    if (!choice) {
      if (route.type !== 'COUNT_TOKENS') throw nothingLike(served, this.#options.exchanges);
      send(
        response,
        served,
        200,
        estimateAnswer({ method: 'POST', path: route.path, headers, body: parsed(body) }, route.client),
      );
      return;
    }
    const { exchange, why } = choice;
    Object.assign(served, { exchange: exchange.name, why });
    if (!isBreaking(faults)) choice.serve();
    const { response: answer } = exchange;
    if (!answer) {
      response.socket?.resetAndDestroy();
      return;
    }
    const { speed, repair } = this.#options;
    const wish = { route, headers, body: parsed(body), model, isStream, mutations: faults.mutations, speed, repair };
    const reply = replyOf(exchange, answer, await answer.readBody(), wish);
    Object.assign(served, { status: reply.status, skipped: reply.skipped });
    for (const [name, value] of Object.entries(reply.headers)) response.setHeader(name, value);
    response.setHeader(EXCHANGE_HEADER, encodeURI(exchange.name));
    response.statusCode = reply.status;
    response.flushHeaders();
    await play(new ResponseSink(response), reply.pieces, exchange.ending === 'complete', faults);
  }

  #choose({ headers, route, served }: Incoming, body: Buffer, asked: { model: string; isStream: boolean }): Choice | undefined {
    const name = headers[EXCHANGE_HEADER];
    if (name !== undefined) return this.#chooser.named(name) ?? notThere(name);
    const { client, type } = route;
    return this.#chooser.choose({ protocol: client.id, type, ...served, ...asked, digest: digestOf(body, asked.model) });
  }

  #failWith({ status, page }: Faults, { response, route, served }: Incoming): void {
    served.why = 'fault';
    if (page !== undefined) {
      served.status = page;
      response.writeHead(page, { 'content-type': 'text/html' }).end(PAGE);
      return;
    }
    const reply = convertError({ status: status ?? 500, body: FAULT_BODY }, { from: route.client, to: route.client });
    send(response, served, status ?? 500, reply.body);
  }

  #tellModels({ response, route, served }: Incoming): void {
    const names = [...new Set(this.#options.exchanges.map(({ model }) => model))].filter((model) => model !== '');
    served.why = 'models of the tape';
    send(response, served, 200, encodeModels({ models: names.map((id) => ({ id })), has_more: false }, { to: route.client }));
  }

  #refuse(cause: unknown, route: Route, response: ServerResponse, served: Served): void {
    const error =
      cause instanceof CodecError ? cause.error : { code: 'INTERNAL' as const, message: String(cause), http_status: 500 };
    served.why ||= error.message;
    const { status, body } = encodeError(error, { to: route.client });
    if (response.headersSent) response.destroy();
    else send(response, served, status, body);
  }
}

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

const notThere = (name: string): never => {
  throw refusal(404, 'NOT_FOUND', `the tape has no exchange ${JSON.stringify(name.slice(0, 200))}`);
};

function nothingLike({ method, path, model }: Served, exchanges: readonly Exchange[]): CodecError {
  const models = [...new Set(exchanges.map((exchange) => exchange.model))].slice(0, 8).join(', ');
  const what = `${method} ${path.split('?', 1).join()}${model === '' ? '' : ` for ${model}`}`;
  return refusal(
    404,
    'NOT_FOUND',
    `nothing on the tape answers ${what.slice(0, 300)}; it has ${exchanges.length} exchanges (${models})`,
  );
}
