import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Codec, encodeError } from '@sluice/core';
import { connectionError } from '../exchange/failures.ts';
import { Collector } from '../upstream/collect.ts';
import { type Dialer, type Line, type Receiver, repeatByMethod } from '../upstream/dialer.ts';
import { dispositionFirst } from '../upstream/headers.ts';
import { headersOf } from './asked.ts';
import type { Ending, Read } from './format.ts';

export interface Question {
  url: string;
  origin: string;
  request: IncomingMessage;
  response: ServerResponse;
  client: Codec;
  body: Buffer;
  /** What is kept of the answer. */
  maxBytes: number;
}

/** What went through. */
export interface Passed {
  ending: Ending;
  answer: { status: number; headers: Record<string, string>; body: Buffer; reads: Read[] } | undefined;
}

/** Headers that are about one connection, and not about what is said over it. */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'host',
  'expect',
]);
const CONNECT_MS = 10_000;
const NO_BYTES = Buffer.alloc(0);

function endToEnd(headers: Record<string, string>, ...without: readonly string[]): Record<string, string> {
  const named = new Set((headers['connection'] ?? '').split(',').map((name) => name.trim().toLowerCase()));
  const isKept = (name: string): boolean => !HOP_BY_HOP.has(name) && !named.has(name) && !without.includes(name);
  return Object.fromEntries(Object.entries(headers).filter(([name]) => isKept(name)));
}

/** Asks the upstream, hands on what it says as it comes, and keeps it. Never rejects. */
export const pass = (dialer: Dialer, question: Question): Promise<Passed> =>
  new Promise((resolve) => new Passage(question, resolve).begin(dialer));

class Passage implements Receiver {
  readonly #question: Question;
  readonly #resolve: (passed: Passed) => void;
  readonly #collector: Collector;
  readonly #reads: Read[] = [];
  readonly #started = performance.now();
  #isTooLarge = false;
  #head: { status: number; headers: Record<string, string> } | undefined;
  #line: Line | undefined;

  constructor(question: Question, resolve: (passed: Passed) => void) {
    this.#question = question;
    this.#resolve = resolve;
    this.#collector = new Collector(question.maxBytes);
  }

  begin(dialer: Dialer): void {
    const { url, origin, request, response, body } = this.#question;
    // Packed bytes are no reading matter; who is asked for plain ones sends them.
    const headers = { ...endToEnd(headersOf(request), 'content-length'), 'accept-encoding': 'identity' };
    const method = request.method ?? 'POST';
    response.once('close', this.#leave);
    const call = { url, origin, method, headers, connectMs: CONNECT_MS, repeat: repeatByMethod(method) };
    this.#line = dialer.dial({ ...call, ...(body.length > 0 && { body }) }, this);
    if (response.destroyed) this.#leave();
  }

  start(status: number, headers: Record<string, string>): void {
    this.#head = { status, headers };
    // `flushHeaders` would write them as UTF-8; before bytes, they are written as they came.
    this.#question.response.writeHead(status, dispositionFirst(endToEnd(headers))).write(NO_BYTES);
  }

  data(chunk: Uint8Array): void {
    const { response } = this.#question;
    this.#isTooLarge ||= !this.#collector.push(chunk);
    if (!this.#isTooLarge) this.#reads.push([Math.round(performance.now() - this.#started), chunk.length]);
    if (response.write(chunk)) return;
    this.#line?.pause();
    response.once('drain', () => this.#line?.resume());
  }

  end(): void {
    this.#question.response.end();
    this.#settle('complete');
  }

  /** A body that breaks off must be seen to break off. */
  fail(error: Error): void {
    const { response, client } = this.#question;
    if (this.#head) {
      response.destroy();
      this.#settle('upstream_cut');
      return;
    }
    const { status, body } = encodeError(connectionError(error, 'the upstream'), { to: client });
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    this.#settle('unreachable');
  }

  readonly #leave = (): void => {
    this.#line?.hangUp();
    this.#settle('client_gone');
  };

  #settle(ending: Ending): void {
    const { response } = this.#question;
    response.off('close', this.#leave);
    const body = this.#collector.take();
    const isWhole = ending !== 'complete' || !this.#isTooLarge;
    const answer = this.#head && { ...this.#head, body, reads: this.#reads };
    this.#resolve({ ending: isWhole ? ending : 'too_large', answer });
  }
}
