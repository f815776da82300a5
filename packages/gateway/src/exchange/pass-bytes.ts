import type { IncomingMessage, ServerResponse } from 'node:http';
import { type CanonicalError, createExchange, type WireReply } from '@sluice/core';
import { CODECS, encodeError, type Route } from '@sluice/core/engine';
import { parseJson } from '@sluice/core/internal';
import type { Admission } from '../admission/gate.ts';
import type { Limits } from '../config/options.ts';
import { Collector, withoutBom } from '../upstream/body.ts';
import { Deadline } from '../upstream/deadline.ts';
import { type Call, chooseRepeat, type Line, putDispositionFirst, type Receiver } from '../upstream/dialer.ts';
import { mayBeBilled } from '../upstream/retry.ts';
import type { ClientConnection } from './client-connection.ts';
import type { Destination } from './destination.ts';
import { findObject } from './known-endpoints.ts';
import { findMissingEndpoint } from './missing-endpoint.ts';
import type { Result } from './model-request.ts';
import type { ExchangeObserver } from './observer.ts';
import { createUsageReader, type UsageReader } from './passed-usage.ts';
import type { AttemptRecord, ExchangeRecord } from './record.ts';
import { addUpstreamHeaders, buildExchangeHeaders, type Progress, sendReply } from './reply.ts';
import {
  createConnectionError,
  createTimeoutError,
  type Directory,
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
  /** The configuration at the start of the request, which has the prices. */
  directory: Directory;
  /** The record of the exchange in the ledger. */
  record: ExchangeRecord;
  /** What the request holds at the gate; undefined without limits. */
  admission?: Admission | undefined;
  observer?: ExchangeObserver | undefined;
  /** Called with the body of a successful response before the client has all of it, unless it is large. */
  onReply?: ((body: Buffer, provider: string) => void) | undefined;
}

function buildCall(
  { request, headers, admission }: ForwardedRequest,
  { url, endpoint, body }: Destination,
  limits: Limits,
): Call {
  const { method = 'GET' } = request;
  const { provider, origin, times, network } = endpoint;
  const { 'content-type': _type, accept: _accept, ...credentials } = CODECS[provider.protocol].buildHeaders(provider);
  return {
    url,
    origin,
    method,
    headers: { ...credentials, ...pickHeaders(headers, REQUEST_HEADERS), 'accept-encoding': 'identity' },
    ...(body.length > 0 && { body }),
    connectMs: times.connectMs,
    network,
    // The reservation of a request with a budget is for one attempt.
    repeat: limits.retries > 0 && limits.retriesPerProvider > 0 && !admission?.isReserved ? chooseRepeat(method) : 'never',
  };
}

const pickHeaders = (headers: Record<string, string>, names: readonly string[]): Record<string, string> =>
  Object.fromEntries(names.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])));

/** Headers that are forwarded to the upstream. All others are dropped, above all the client's key. */
const REQUEST_HEADERS = ['content-type', 'accept', 'anthropic-version', 'anthropic-beta', 'openai-beta', 'idempotency-key'];

/**
 * `waiting` for the response; `recording`: the attempt, before the client receives anything; `sending` the response;
 * `ending`: the end is recorded, before the client receives it; `settled`.
 */
type State = 'waiting' | 'recording' | 'sending' | 'ending' | 'settled';

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
  #state: State = 'waiting';
  /** Bytes that the client receives when the ledger has what it must have before. */
  #held: Uint8Array[] = [];
  /** The start of the body, for who wants to know what it describes. */
  readonly #copy: Collector | undefined;
  /** Reads what the response says about its usage; undefined when it says nothing. */
  #usage: UsageReader | undefined;
  /** Bytes of the body that have not arrived; infinite when the upstream does not say. */
  #left = Number.POSITIVE_INFINITY;
  /** The upstream has sent everything while the attempt was recorded. */
  #hasEnded = false;
  #called: Pick<Call, 'method' | 'url'> = { method: '', url: '' };

  constructor(forwarded: ForwardedRequest, destination: Destination, services: Services, resolve: (result: Result) => void) {
    const { endpoint, model } = destination;
    const { provider, times } = endpoint;
    this.#forwarded = forwarded;
    this.#services = services;
    this.#endpoint = endpoint;
    this.#resolve = resolve;
    this.#copy = forwarded.onReply && new Collector(MAX_COPIED);
    const { connection } = forwarded;
    this.#deadline = new Deadline({
      clock: connection.clock,
      totalMs: times.totalMs,
      onSilence: connection.guard(() => this.#breakOff(this.#createSilenceError())),
      onTotal: connection.guard(() => this.#breakOff(createTimeoutError(formatProvider(endpoint), 'end', times.totalMs))),
    });
    const { id, admission } = forwarded;
    const limits = admission?.headers;
    this.#progress = { id, attempts: 1, notes: [], provider: provider.id, upstream: provider.protocol, model, limits };
  }

  begin(call: Call): void {
    this.#called = call;
    const { connection, observer, record } = this.#forwarded;
    const { dialer } = this.#services;
    const transport = observer?.attempt(this.#endpoint.provider).tap(dialer) ?? dialer;
    const dial = (): void => {
      if (this.#state !== 'waiting') return;
      this.#deadline.expect(this.#headMs);
      this.#line = transport.dial(call, this);
    };
    connection.listen(this.#onInterruption);
    const recorded = record.beforeSending(this.#startAttempt());
    if (recorded) void recorded.then(connection.guard(dial));
    else dial();
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
    this.#forwarded.record.endAttempt({ ending: 'upstream_error', possiblyBilled: true });
    this.#startAttempt();
  }

  connected(): void {
    this.#forwarded.record.attempt?.connected();
  }

  #startAttempt(): AttemptRecord {
    const { id: provider, protocol } = this.#endpoint.provider;
    return this.#forwarded.record.startAttempt({ provider, protocol, model: this.#progress.model });
  }

  start(status: number, headers: Record<string, string>): void {
    const wrong = findRedirectError(formatProvider(this.#endpoint), status);
    if (wrong) {
      this.#breakOff(wrong);
      return;
    }
    this.#status = status;
    this.#headers = headers;
    this.#forwarded.record.attempt?.responded(status, headers);
    this.#deadline.expect(this.#endpoint.times.betweenEventsMs);
    if (status >= 400) {
      this.#refusal = new Collector(this.#services.limits.errorBytes);
      return;
    }
    if (this.#forwarded.request.method === 'POST')
      this.#usage = createUsageReader(headers['content-type'] ?? '', this.#services.limits.eventBytes);
    this.#recordStart();
  }

  /** The client receives nothing before the attempt is recorded; the upstream is paused meanwhile. */
  #recordStart(): void {
    const { record, connection } = this.#forwarded;
    this.#left = Number(this.#headers['content-length'] ?? Number.POSITIVE_INFINITY);
    const recorded = record.beforeContent();
    if (!recorded) {
      this.#open();
      return;
    }
    this.#state = 'recording';
    this.#line?.pause();
    this.#deadline.rest();
    void recorded.then(connection.guard(() => this.#open()));
  }

  #open(): void {
    if (this.#state === 'settled') return;
    const wasPaused = this.#state === 'recording';
    const { redact } = this.#services;
    const headers = addUpstreamHeaders(buildBodyHeaders(this.#headers, redact), this.#headers, redact);
    this.#state = 'sending';
    const sent = buildExchangeHeaders(this.#progress, headers);
    this.#forwarded.response.writeHead(this.#status, sent);
    this.#forwarded.observer?.opened(this.#status, sent, false);
    for (const chunk of this.#held.splice(0)) this.#send(chunk);
    if (this.#hasEnded) this.#finish();
    else if (wasPaused && !this.#forwarded.response.writableNeedDrain) this.#resume();
  }

  data(chunk: Uint8Array): void {
    this.#deadline.recordData();
    if (this.#refusal) {
      if (!this.#refusal.push(chunk)) this.end();
    } else if (this.#state === 'recording') this.#held.push(chunk);
    else if (this.#state === 'sending') this.#send(chunk);
  }

  /** The bytes that complete the body are the end of the response: they are held back until that is recorded. */
  #send(chunk: Uint8Array): void {
    this.#forwarded.observer?.sent(chunk);
    this.#copy?.push(chunk);
    this.#usage?.push(chunk);
    this.#left -= chunk.length;
    if (this.#left <= 0) this.#held.push(chunk);
    else if (!this.#forwarded.response.write(chunk)) this.#wait();
  }

  end(): void {
    this.#line?.hangUp();
    if (this.#refusal) this.#refuse(withoutBom(this.#refusal.take()).toString('utf8'));
    else if (this.#state === 'recording') this.#hasEnded = true;
    else this.#finish();
  }

  #finish(): void {
    if (this.#copy) this.#forwarded.onReply?.(this.#copy.take(), this.#endpoint.provider.id);
    const { provider, model } = this.#progress;
    const { response } = this.#forwarded;
    if (provider !== undefined && model !== undefined) this.#services.metrics.answeredFor(provider, model);
    this.#conclude({ status: this.#status, ending: 'answered' }, () => {
      for (const chunk of this.#held) response.write(chunk);
      response.end();
    });
  }

  /** Records the end of the exchange, and then sends it to the client. */
  #conclude(result: End, send: () => void): void {
    if (this.#state === 'ending' || this.#state === 'settled') return;
    const { record, connection } = this.#forwarded;
    this.#state = 'ending';
    this.#deadline.stop();
    const used = this.#endAttempt(result);
    const finish = (): void => {
      if (this.#state === 'settled') return;
      send();
      this.#settle(result, used);
    };
    const recorded = record.settle({ ...result, notes: [] });
    if (recorded) void recorded.then(connection.guard(finish));
    else finish();
  }

  fail(error: Error): void {
    this.#breakOff(createConnectionError(error, formatProvider(this.#endpoint), this.#endpoint.times.connectMs));
  }

  /**
   * Forwards an error of the protocol unless it would mislead the client. It is serialised again, so that escapes hide
   * no secret.
   */
  #refuse(text: string): void {
    const { route, response, observer } = this.#forwarded;
    const { limits, redactUpstream } = this.#services;
    const wire: WireReply = { status: this.#status, headers: this.#headers, body: parseJson(text) ?? text };
    const exchange = createExchange(route.client, route.client, { provider: this.#endpoint.provider, passthrough: true });
    const read = exchange.readError(wire);
    const { method, url } = this.#called;
    const isAboutObject = findObject(route.client.id, method, route.path.split('?', 1)[0] ?? '')?.id !== undefined;
    const missing = isAboutObject
      ? undefined
      : findMissingEndpoint(wire, read, { ...this.#endpoint, method, url, isForwarded: true });
    const converted = missing ? exchange.failure(missing) : exchange.error(wire);
    const reply = { ...converted, headers: { ...wire.headers, ...converted.headers } };
    const result: End = { status: reply.status, ending: 'upstream_error', error: missing ?? read };
    const options = { stallMs: limits.stallMs, redact: redactUpstream, observer };
    this.#conclude(result, () => sendReply(response, reply, this.#progress, options));
  }

  #wait(): void {
    const { response } = this.#forwarded;
    this.#line?.pause();
    this.#deadline.rest();
    response.setTimeout(this.#services.limits.stallMs);
    const resume = (): void => {
      response.setTimeout(0);
      if (this.#state === 'sending') this.#resume();
    };
    response.once('drain', this.#forwarded.connection.guard(resume));
  }

  #resume(): void {
    this.#deadline.expect(this.#endpoint.times.betweenEventsMs);
    this.#line?.resume();
  }

  readonly #onInterruption = (): void => {
    const { isGone, stopError = STOPPED } = this.#forwarded.connection;
    if (isGone) this.#leave();
    else this.#breakOff(stopError);
  };

  /** A truncated body must look truncated to the client. */
  #breakOff(error: CanonicalError): void {
    this.#line?.hangUp();
    const { response, route, observer } = this.#forwarded;
    const reply = encodeError(error, { to: route.client });
    const status = response.headersSent ? response.statusCode : reply.status;
    this.#conclude({ status, ending: findEnding(error), error }, () => {
      if (response.headersSent) response.destroy();
      else sendReply(response, reply, this.#progress, { ...buildSendOptions(this.#services), observer });
    });
  }

  #leave(): void {
    this.#line?.hangUp();
    this.#settle({ status: 499, ending: 'client_aborted' });
  }

  #settle(result: End, used: Used = this.#endAttempt(result)): void {
    if (this.#state === 'settled') return;
    this.#state = 'settled';
    this.#deadline.stop();
    this.#forwarded.connection.unlisten(this.#onInterruption);
    this.#resolve({ ...this.#progress, ...result, ...used });
  }

  /** What a provider charges for a response without usage is not known. */
  #endAttempt({ ending, error }: End): Used {
    const { record, request } = this.#forwarded;
    const used = this.#findUsed();
    const isSent = ending === 'client_aborted' && record.attempt?.connectedAt !== undefined;
    const isAnswered = this.#status > 0 && this.#status < 400;
    const mayCost = isSent || isAnswered || (error !== undefined && mayBeBilled(error));
    const possiblyBilled = request.method === 'POST' && !used && mayCost;
    const isFirst = record.endAttempt({ ending, error, possiblyBilled, ...used });
    if (isFirst && used?.cost) this.#countCost(used.cost.micros);
    return used ?? {};
  }

  #countCost(micros: number): void {
    const { provider = '', model = '', upstream = '' } = this.#progress;
    const labels = { provider, model, client_protocol: this.#forwarded.route.client.id, upstream_protocol: upstream };
    this.#services.metrics.of(labels).spent(micros);
  }

  /** What the upstream has reported, and what it costs. */
  #findUsed(): Required<Used> | undefined {
    const usage = this.#usage?.usage;
    const { provider, model } = this.#progress;
    if (!usage || provider === undefined || model === undefined) return undefined;
    return { usage, cost: this.#forwarded.directory.prices.cost(usage, provider, model, Date.now()) };
  }
}

/** What a response has used, and its cost; null when the price is not known. */
type Used = Pick<Result, 'usage' | 'cost'>;

/** Descriptions of stored objects are short. */
const MAX_COPIED = 256 * 1024;

/** How an exchange ended. */
type End = Pick<Result, 'status' | 'ending' | 'error'>;

/** Headers of the body that are sent to the client, beside those of every response. */
const BODY_HEADERS = ['content-type', 'content-length', 'content-disposition'];

/** Bytes above ASCII are kept: file names in `content-disposition` contain them. */
const buildBodyHeaders = (headers: Record<string, string>, redact: (text: string) => string): Record<string, string> =>
  Object.fromEntries(
    Object.entries(putDispositionFirst(pickHeaders(headers, BODY_HEADERS))).map(([name, value]) => [name, redact(value)]),
  );

const buildSendOptions = ({ limits, redact }: { limits: Limits; redact: (text: string) => string }) => ({
  stallMs: limits.stallMs,
  redact,
});
