import type { IncomingMessage, ServerResponse } from 'node:http';
import { type CanonicalError, createExchange, type WireReply } from '@sluice/core';
import { CODECS, encodeError, type Route } from '@sluice/core/engine';
import { isDeeperThan, MAX_JSON_DEPTH } from '@sluice/core/internal';
import type { Limits } from '../config/options.ts';
import { Collector, withoutBom } from '../upstream/body.ts';
import { Deadline } from '../upstream/deadline.ts';
import { type Call, chooseRepeat, type Line, putDispositionFirst, type Receiver } from '../upstream/dialer.ts';
import type { ClientConnection } from './client-connection.ts';
import type { Result } from './conversation.ts';
import type { Destination } from './destination.ts';
import type { ExchangeRecord } from './record.ts';
import { addUpstreamHeaders, buildExchangeHeaders, type Progress, sendReply } from './reply.ts';
import {
  createConnectionError,
  createTimeoutError,
  findEnding,
  findRedirectError,
  formatProvider,
  type ProviderEndpoint,
  type Services,
  STOPPED,
} from './types.ts';

/**
 * Endpoints that Sluice does not convert (audio, images, files …): the bytes are forwarded to a provider of the same
 * protocol and back. `findDestination` chooses the provider and checks the path.
 */
export function passBytes(forwarded: ForwardedRequest, destination: Destination, services: Services): Promise<Result> {
  const call = buildCall(forwarded, destination, services.limits);
  return new Promise((resolve) => new Passage(forwarded, destination, services, resolve).begin(call));
}

/** A request whose bytes are forwarded. */
export interface ForwardedRequest {
  id: string;
  route: Route;
  request: IncomingMessage;
  response: ServerResponse;
  headers: Record<string, string>;
  connection: ClientConnection;
  /** The record of the exchange in the ledger. */
  record: ExchangeRecord;
}

function buildCall({ request, headers }: ForwardedRequest, { url, endpoint, body }: Destination, limits: Limits): Call {
  const { method = 'GET' } = request;
  const { provider, origin, times } = endpoint;
  const { 'content-type': _type, accept: _accept, ...credentials } = CODECS[provider.protocol].buildHeaders(provider);
  return {
    url,
    origin,
    method,
    headers: { ...credentials, ...pickHeaders(headers, REQUEST_HEADERS), 'accept-encoding': 'identity' },
    ...(body.length > 0 && { body }),
    connectMs: times.connectMs,
    repeat: limits.retries > 0 && limits.retriesPerProvider > 0 ? chooseRepeat(method) : 'never',
  };
}

const pickHeaders = (headers: Record<string, string>, names: readonly string[]): Record<string, string> =>
  Object.fromEntries(names.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])));

/** Headers that are forwarded to the upstream. All others are dropped, above all the client's key. */
const REQUEST_HEADERS = ['content-type', 'accept', 'anthropic-version', 'anthropic-beta', 'openai-beta', 'idempotency-key'];

/** Forwards one exchange. */
class Passage implements Receiver {
  readonly #forwarded: ForwardedRequest;
  readonly #services: Services;
  readonly #endpoint: ProviderEndpoint;
  readonly #progress: Progress;
  readonly #resolve: (result: Result) => void;
  readonly #deadline: Deadline;
  #line: Line | undefined;
  #status = 0;
  #headers: Record<string, string> = {};
  /** The body of an error response, collected so that it can be redacted. */
  #refusal: Collector | undefined;
  #isSettled = false;

  constructor(forwarded: ForwardedRequest, destination: Destination, services: Services, resolve: (result: Result) => void) {
    const { endpoint, model } = destination;
    const { provider, times } = endpoint;
    this.#forwarded = forwarded;
    this.#services = services;
    this.#endpoint = endpoint;
    this.#resolve = resolve;
    const { connection } = forwarded;
    this.#deadline = new Deadline({
      clock: connection.clock,
      totalMs: times.totalMs,
      onSilence: connection.guard(() => this.#breakOff(this.#createSilenceError())),
      onTotal: connection.guard(() => this.#breakOff(createTimeoutError(formatProvider(endpoint), 'end', times.totalMs))),
    });
    this.#progress = { id: forwarded.id, attempts: 1, notes: [], provider: provider.id, upstream: provider.protocol, model };
  }

  begin(call: Call): void {
    const { connection } = this.#forwarded;
    connection.listen(this.#onInterruption);
    this.#startAttempt();
    this.#deadline.expect(this.#headMs);
    this.#line = this.#services.dialer.dial(call, this);
    if (connection.isInterrupted) this.#onInterruption();
  }

  /** Servers send the headers of a whole response when it is complete, so it gets the time that a stream would have. */
  get #headMs(): number {
    const { headersMs, firstEventMs, betweenEventsMs } = this.#endpoint.times;
    return headersMs + firstEventMs + betweenEventsMs;
  }

  #createSilenceError(): CanonicalError {
    const name = formatProvider(this.#endpoint);
    const { betweenEventsMs } = this.#endpoint.times;
    return this.#status === 0
      ? createTimeoutError(name, 'response', this.#headMs)
      : createTimeoutError(name, 'more', betweenEventsMs);
  }

  again(): void {
    this.#progress.attempts++;
    this.#forwarded.record.endAttempt({ status: undefined, ending: 'upstream_error', possiblyBilled: true });
    this.#startAttempt();
  }

  connected(): void {
    this.#forwarded.record.attempt?.connected();
  }

  #startAttempt(): void {
    const { id: provider, protocol } = this.#endpoint.provider;
    this.#forwarded.record.startAttempt({ provider, protocol, model: this.#progress.model });
  }

  start(status: number, headers: Record<string, string>): void {
    const { redact, limits } = this.#services;
    const { response } = this.#forwarded;
    const wrong = findRedirectError(formatProvider(this.#endpoint), status);
    if (wrong) {
      this.#breakOff(wrong);
      return;
    }
    this.#status = status;
    this.#headers = headers;
    this.#forwarded.record.attempt?.responded(headers);
    this.#deadline.expect(this.#endpoint.times.betweenEventsMs);
    if (status >= 400) this.#refusal = new Collector(limits.errorBytes);
    else
      response.writeHead(
        status,
        buildExchangeHeaders(this.#progress, addUpstreamHeaders(buildBodyHeaders(headers, redact), headers, redact)),
      );
  }

  data(chunk: Uint8Array): void {
    this.#deadline.recordData();
    if (this.#refusal) {
      if (!this.#refusal.push(chunk)) this.end();
    } else if (!this.#forwarded.response.write(chunk)) this.#wait();
  }

  end(): void {
    this.#line?.hangUp();
    if (this.#refusal) this.#refuse(withoutBom(this.#refusal.take()).toString('utf8'));
    else this.#finish();
  }

  #finish(): void {
    const { provider, model } = this.#progress;
    if (provider !== undefined && model !== undefined) this.#services.metrics.answeredFor(provider, model);
    this.#forwarded.response.end();
    this.#settle({ status: this.#status, ending: 'answered' });
  }

  fail(error: Error): void {
    this.#breakOff(createConnectionError(error, formatProvider(this.#endpoint), this.#endpoint.times.connectMs));
  }

  /**
   * Forwards an error of the protocol unless it would mislead the client. It is serialised again, so that escapes hide
   * no secret.
   */
  #refuse(text: string): void {
    const { route, response } = this.#forwarded;
    const { limits, redactUpstream } = this.#services;
    const wire: WireReply = { status: this.#status, headers: this.#headers, body: parseJson(text) ?? text };
    const exchange = createExchange(route.client, route.client, { provider: this.#endpoint.provider, passthrough: true });
    const converted = exchange.error(wire);
    const reply = { ...converted, headers: { ...wire.headers, ...converted.headers } };
    sendReply(response, reply, this.#progress, { stallMs: limits.stallMs, redact: redactUpstream });
    this.#settle({ status: this.#status, ending: 'upstream_error', error: exchange.readError(wire) });
  }

  #wait(): void {
    const { response } = this.#forwarded;
    this.#line?.pause();
    this.#deadline.rest();
    response.setTimeout(this.#services.limits.stallMs);
    const resume = (): void => {
      response.setTimeout(0);
      this.#deadline.expect(this.#endpoint.times.betweenEventsMs);
      this.#line?.resume();
    };
    response.once('drain', this.#forwarded.connection.guard(resume));
  }

  readonly #onInterruption = (): void => {
    if (this.#forwarded.connection.isGone) this.#leave();
    else this.#breakOff(STOPPED);
  };

  /** A truncated body must look truncated to the client. */
  #breakOff(error: CanonicalError): void {
    if (this.#isSettled) return;
    this.#line?.hangUp();
    const { response, route } = this.#forwarded;
    const reply = encodeError(error, { to: route.client });
    if (response.headersSent) response.destroy();
    else sendReply(response, reply, this.#progress, buildSendOptions(this.#services));
    this.#settle({ status: response.statusCode, ending: findEnding(error), error });
  }

  #leave(): void {
    this.#line?.hangUp();
    this.#settle({ status: 499, ending: 'client_aborted' });
  }

  #settle(result: Pick<Result, 'status' | 'ending' | 'error'>): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#deadline.stop();
    this.#forwarded.connection.unlisten(this.#onInterruption);
    // Bytes that are not read have no usage; what the provider charges for them is not known.
    this.#forwarded.record.endAttempt({
      status: this.#status || undefined,
      ending: result.ending,
      error: result.error,
      possiblyBilled: this.#status > 0 && this.#status < 400,
    });
    this.#resolve({ ...this.#progress, ...result });
  }
}

/** Headers of the body that are sent to the client, beside those of every response. */
const BODY_HEADERS = ['content-type', 'content-length', 'content-disposition'];

/** Bytes above ASCII are kept: file names in `content-disposition` contain them. */
const buildBodyHeaders = (headers: Record<string, string>, redact: (text: string) => string): Record<string, string> =>
  Object.fromEntries(
    Object.entries(putDispositionFirst(pickHeaders(headers, BODY_HEADERS))).map(([name, value]) => [name, redact(value)]),
  );

/** Undefined for text that is not JSON, or is nested too deeply to be serialised again. */
function parseJson(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return isDeeperThan(value, MAX_JSON_DEPTH) ? undefined : value;
  } catch {
    return undefined;
  }
}

const buildSendOptions = ({ limits, redact }: { limits: Limits; redact: (text: string) => string }) => ({
  stallMs: limits.stallMs,
  redact,
});
