import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type CanonicalError,
  CODECS,
  encodeError,
  isDeeperThan,
  MAX_JSON_DEPTH,
  type Route,
  translate,
  type WireReply,
} from '@sluice/core';
import type { Limits } from '../config/limits.ts';
import { Collector, withoutBom } from '../upstream/collect.ts';
import { type Call, type Line, type Receiver, repeatByMethod } from '../upstream/dialer.ts';
import { dispositionFirst } from '../upstream/headers.ts';
import { Patience } from '../upstream/patience.ts';
import type { Result } from './conversation.ts';
import type { Destination } from './destination.ts';
import { connectionError, nameOf, redirected, STOPPED, tooLate } from './failures.ts';
import { endingOf } from './outcome.ts';
import type { Presence } from './presence.ts';
import { addPassed, exchangeHeaders, type Progress, sendReply } from './reply.ts';
import type { Services, Speaker } from './services.ts';

/** Headers that are forwarded to the upstream. All others are dropped, above all the client's key. */
const TO_UPSTREAM = ['content-type', 'accept', 'anthropic-version', 'anthropic-beta', 'openai-beta', 'idempotency-key'];
/** Headers of the body that are sent to the client, beside those of every response. */
const OF_BODY = ['content-type', 'content-length', 'content-disposition'];

const pick = (headers: Record<string, string>, names: readonly string[]): Record<string, string> =>
  Object.fromEntries(names.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])));

/** Bytes above ASCII are kept: file names in `content-disposition` contain them. */
const bodyHeaders = (headers: Record<string, string>, redact: (text: string) => string): Record<string, string> =>
  Object.fromEntries(Object.entries(dispositionFirst(pick(headers, OF_BODY))).map(([name, value]) => [name, redact(value)]));

export interface PassedQuestion {
  id: string;
  route: Route;
  request: IncomingMessage;
  response: ServerResponse;
  headers: Record<string, string>;
  presence: Presence;
}

/**
 * Endpoints that Sluice does not convert (audio, images, files …): the bytes are forwarded to a provider of the same
 * protocol and back. `findDestination` chooses the provider and checks the path.
 */
export function passBytes(question: PassedQuestion, destination: Destination, services: Services): Promise<Result> {
  const call = callFor(question, destination, services.limits);
  return new Promise((resolve) => new Passage(question, destination, services, resolve).begin(call));
}

function callFor({ request, headers }: PassedQuestion, { url, speaker, body }: Destination, limits: Limits): Call {
  const { method = 'GET' } = request;
  const { provider, origin, times } = speaker;
  const { 'content-type': _type, accept: _accept, ...credentials } = CODECS[provider.protocol].buildHeaders(provider);
  return {
    url,
    origin,
    method,
    headers: { ...credentials, ...pick(headers, TO_UPSTREAM), 'accept-encoding': 'identity' },
    ...(body.length > 0 && { body }),
    connectMs: times.connectMs,
    repeat: limits.retries > 0 && limits.retriesPerProvider > 0 ? repeatByMethod(method) : 'never',
  };
}

class Passage implements Receiver {
  readonly #question: PassedQuestion;
  readonly #services: Services;
  readonly #speaker: Speaker;
  readonly #progress: Progress;
  readonly #resolve: (result: Result) => void;
  readonly #patience: Patience;
  #line: Line | undefined;
  #status = 0;
  #headers: Record<string, string> = {};
  /** The body of an error response, collected so that it can be redacted. */
  #refusal: Collector | undefined;
  #isSettled = false;

  constructor(question: PassedQuestion, destination: Destination, services: Services, resolve: (result: Result) => void) {
    const { speaker, model } = destination;
    const { provider, times } = speaker;
    this.#question = question;
    this.#services = services;
    this.#speaker = speaker;
    this.#resolve = resolve;
    const { presence } = question;
    this.#patience = new Patience({
      clock: presence.clock,
      totalMs: times.totalMs,
      onSilence: presence.guard(() => this.#breakOff(this.#silence())),
      onTotal: presence.guard(() => this.#breakOff(tooLate(nameOf(speaker), 'end', times.totalMs))),
    });
    this.#progress = { id: question.id, attempts: 1, notes: [], provider: provider.id, upstream: provider.protocol, model };
  }

  begin(call: Call): void {
    const { presence } = this.#question;
    presence.listen(this.#onInterruption);
    this.#patience.expect(this.#headMs);
    this.#line = this.#services.dialer.dial(call, this);
    if (presence.isInterrupted) this.#onInterruption();
  }

  /** Servers send the headers of a whole response when it is complete, so it gets the time that a stream would have. */
  get #headMs(): number {
    const { headersMs, firstEventMs, betweenEventsMs } = this.#speaker.times;
    return headersMs + firstEventMs + betweenEventsMs;
  }

  #silence(): CanonicalError {
    const name = nameOf(this.#speaker);
    const { betweenEventsMs } = this.#speaker.times;
    return this.#status === 0 ? tooLate(name, 'response', this.#headMs) : tooLate(name, 'more', betweenEventsMs);
  }

  again(): void {
    this.#progress.attempts++;
  }

  start(status: number, headers: Record<string, string>): void {
    const { redact, limits } = this.#services;
    const { response } = this.#question;
    const wrong = redirected(nameOf(this.#speaker), status);
    if (wrong) {
      this.#breakOff(wrong);
      return;
    }
    this.#status = status;
    this.#headers = headers;
    this.#patience.expect(this.#speaker.times.betweenEventsMs);
    if (status >= 400) this.#refusal = new Collector(limits.errorBytes);
    else response.writeHead(status, exchangeHeaders(this.#progress, addPassed(bodyHeaders(headers, redact), headers, redact)));
  }

  data(chunk: Uint8Array): void {
    this.#patience.heard();
    if (this.#refusal) {
      if (!this.#refusal.push(chunk)) this.end();
    } else if (!this.#question.response.write(chunk)) this.#wait();
  }

  end(): void {
    this.#line?.hangUp();
    if (this.#refusal) this.#refuse(withoutBom(this.#refusal.take()).toString('utf8'));
    else this.#answered();
  }

  #answered(): void {
    const { provider, model } = this.#progress;
    if (provider !== undefined && model !== undefined) this.#services.metrics.answeredFor(provider, model);
    this.#question.response.end();
    this.#settle({ status: this.#status, ending: 'answered' });
  }

  fail(error: Error): void {
    this.#breakOff(connectionError(error, nameOf(this.#speaker), this.#speaker.times.connectMs));
  }

  /**
   * Forwards an error of the protocol unless it would mislead the client. It is serialised again, so that escapes hide
   * no secret.
   */
  #refuse(text: string): void {
    const { route, response } = this.#question;
    const { limits, redactUpstream } = this.#services;
    const said: WireReply = { status: this.#status, headers: this.#headers, body: parsed(text) ?? text };
    const exchange = translate(route.client, route.client, { provider: this.#speaker.provider, passthrough: true });
    const told = exchange.error(said);
    const reply = { ...told, headers: { ...said.headers, ...told.headers } };
    sendReply(response, reply, this.#progress, { stallMs: limits.stallMs, redact: redactUpstream });
    this.#settle({ status: this.#status, ending: 'upstream_error', error: exchange.readError(said) });
  }

  #wait(): void {
    const { response } = this.#question;
    this.#line?.pause();
    this.#patience.rest();
    response.setTimeout(this.#services.limits.stallMs);
    const goOn = (): void => {
      response.setTimeout(0);
      this.#patience.expect(this.#speaker.times.betweenEventsMs);
      this.#line?.resume();
    };
    response.once('drain', this.#question.presence.guard(goOn));
  }

  readonly #onInterruption = (): void => {
    if (this.#question.presence.isGone) this.#leave();
    else this.#breakOff(STOPPED);
  };

  /** A truncated body must look truncated to the client. */
  #breakOff(error: CanonicalError): void {
    if (this.#isSettled) return;
    this.#line?.hangUp();
    const { response, route } = this.#question;
    const reply = encodeError(error, { to: route.client });
    if (response.headersSent) response.destroy();
    else sendReply(response, reply, this.#progress, sendOptions(this.#services));
    this.#settle({ status: response.statusCode, ending: endingOf(error), error });
  }

  #leave(): void {
    this.#line?.hangUp();
    this.#settle({ status: 499, ending: 'client_aborted' });
  }

  #settle(result: Pick<Result, 'status' | 'ending' | 'error'>): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#patience.stop();
    this.#question.presence.unlisten(this.#onInterruption);
    this.#resolve({ ...this.#progress, ...result });
  }
}

/** Undefined for text that is not JSON, or is nested too deeply to be serialised again. */
function parsed(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return isDeeperThan(value, MAX_JSON_DEPTH) ? undefined : value;
  } catch {
    return undefined;
  }
}

const sendOptions = ({ limits, redact }: { limits: Limits; redact: (text: string) => string }) => ({
  stallMs: limits.stallMs,
  redact,
});
