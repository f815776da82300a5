/** Makes a capture of a recording: everything that is kept passes here first, and secrets end here. */

import type { CanonicalError, ExchangeOptions, Provider } from '@sluice/core';
import { isDeeperThan, MAX_JSON_DEPTH } from '@sluice/core/internal';
import type { SecretRegistry } from '../config/secrets.ts';
import type { ResponseLimits } from '../exchange/limits.ts';
import { createRedact } from '../observe/redact.ts';
import { Scrubber } from '../tape/scrub.ts';
import {
  CAPTURE_VERSION,
  type Capture,
  type CapturedAttempt,
  type CapturedRequest,
  type CapturedResponse,
  CONVERSION_FIELDS,
  type Conversion,
} from './capture.ts';
import type { AttemptRecording, Recording } from './recording.ts';

/**
 * The capture of a finished recording, without secrets. Throws when the exchange has more credentials than can be
 * removed.
 */
export function cleanRecording(recording: Recording, secrets: SecretRegistry, limits: ResponseLimits): Capture {
  const { request, head, end, at } = recording;
  const cleaner = new Cleaner(secrets);
  cleaner.learn(request.headers, request.path);
  for (const { call } of recording.attempts) if (call) cleaner.learn(call.headers, call.url);
  const capture: Omit<Capture, 'isTruncated' | 'isRedacted'> = {
    capture: CAPTURE_VERSION,
    id: request.id || request.requestId,
    requestId: request.requestId,
    at: new Date(at).toISOString(),
    endpoint: request.endpoint,
    protocol: request.client.id,
    model: request.model === undefined ? null : cleaner.text(request.model),
    isStream: request.isStream,
    request: cleaner.request({ ...request, body: recording.body }),
    attempts: recording.attempts.map((attempt) => cleanAttempt(attempt, cleaner)),
    response: head
      ? { ...cleaner.response(head, recording.sentBytes.take()), isStream: head.isStream, fills: recording.fills }
      : null,
    ending: end.ending,
    ...(end.error && { error: cleaner.error(end.error) }),
    limits,
  };
  return { ...capture, isTruncated: recording.allowance.isExceeded, isRedacted: cleaner.hasRedacted };
}

function cleanAttempt(attempt: AttemptRecording, cleaner: Cleaner): CapturedAttempt {
  const { provider, options, clock, call, head, received, error } = attempt;
  const outcome = attempt.outcome ?? (attempt.closed === 'complete' ? 'answered' : 'failed');
  const url = cleaner.path(call?.url ?? '');
  return {
    startMs: Math.round(attempt.startMs),
    provider: provider.id,
    protocol: provider.protocol,
    conversion: options ? pickConversion(options, provider, cleaner) : null,
    clock,
    request: {
      url,
      ...cleaner.request({
        method: call?.method ?? '',
        path: call ? readPath(call.url) : '',
        headers: call?.headers ?? {},
        body: attempt.body,
      }),
    },
    response: head ? cleaner.response(head, received.take()) : null,
    end: attempt.closed ?? (head ? CUT_BY[outcome] : 'unreachable'),
    outcome,
    ...(error && { error: cleaner.error(error) }),
  };
}

/** How a response ended that the gateway itself stopped reading. */
const CUT_BY = {
  answered: 'complete',
  failed: 'upstream_cut',
  broken: 'upstream_cut',
  lost: 'upstream_cut',
  gone: 'client_gone',
} as const;

const readPath = (url: string): string => url.replace(/^https?:\/\/[^/?#]*/i, '') || '/';

function pickConversion(options: ExchangeOptions, { id, protocol, base_url: url }: Provider, cleaner: Cleaner): Conversion {
  const kept = CONVERSION_FIELDS.flatMap((name) => (options[name] === undefined ? [] : [[name, options[name]]]));
  const provider = { id, protocol, base_url: cleaner.text(url) };
  return { ...Object.fromEntries(kept), ...(options.repair && { inPlace: true }), provider };
}

/** Removes the secrets of one exchange: secrets of the process, credentials of its requests, and texts that look like keys. */
class Cleaner {
  readonly #secrets: SecretRegistry;
  readonly #redact: (text: string) => string;
  readonly #scrubber = new Scrubber();
  hasRedacted = false;

  constructor(secrets: SecretRegistry) {
    this.#secrets = secrets;
    this.#redact = createRedact(secrets);
  }

  learn(headers: Readonly<Record<string, string>>, path: string): void {
    this.#scrubber.learn(headers, path);
  }

  text(text: string): string {
    return this.#scrubber.text(this.#redact(text));
  }

  path(path: string): string {
    return this.#scrubber.path(this.#redact(path));
  }

  request({
    method,
    path,
    headers,
    body,
  }: Omit<CapturedRequest, 'body'> & { body: string | Uint8Array | undefined }): CapturedRequest {
    return {
      method,
      path: this.path(path),
      headers: this.#headers(this.#scrubber.requestHeaders(headers)),
      // Clients paste keys into prompts, so requests are searched for patterns as well.
      body: this.#body(typeof body === 'string' ? Buffer.from(body) : (body ?? new Uint8Array()), true),
    };
  }

  response(
    { status, headers }: { status: number; headers: Readonly<Record<string, string>> },
    { body, reads }: Pick<CapturedResponse, 'reads'> & { body: Buffer },
  ): CapturedResponse {
    const kept = this.#headers(this.#scrubber.responseHeaders(headers));
    return { status, headers: kept, body: this.#body(body, status >= 400), reads };
  }

  error(error: CanonicalError): CanonicalError {
    if (isDeeperThan(error, MAX_JSON_DEPTH)) return { code: error.code, message: this.text(error.message) };
    return JSON.parse(this.text(JSON.stringify(error)));
  }

  #headers(headers: Record<string, string>): Record<string, string> {
    return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, this.#redact(value)]));
  }

  #body(bytes: Uint8Array, withPatterns: boolean): Buffer {
    const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    const text = view.toString('latin1');
    const clean = this.#scrubber.bytes(this.#secrets.redactKnown(text), withPatterns);
    if (clean === text) return view;
    this.hasRedacted = true;
    return Buffer.from(clean, 'latin1');
  }
}
