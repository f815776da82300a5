/** What exchanges are made of: candidates, services, attempts and outcomes, and the failures the gateway detects. */

import {
  type CanonicalError,
  CodecError,
  type Exchange,
  type Note,
  type PassRequest,
  type ProtocolId,
  type Provider,
  type ProviderProfile,
  type Sealing,
  type WireReply,
} from '@sluice/core';
import type { AdmissionGate } from '../admission/gate.ts';
import type { Network } from '../config/network.ts';
import type {
  Limits,
  ModelInAnswer,
  OnMalformed,
  Passthrough,
  ProviderLimits,
  RecoveryOptions,
  TagBudget,
} from '../config/options.ts';
import type { AddressRanges } from '../http/client-address.ts';
import type { Clock } from '../http/clock.ts';
import type { Gatekeeper } from '../keys/gatekeeper.ts';
import type { Logger } from '../observe/log.ts';
import type { ExchangeLabels, Metrics } from '../observe/metrics.ts';
import type { Tracer } from '../observe/tracing/tracer.ts';
import type { PriceTable } from '../prices/table.ts';
import type { Routable } from '../routing/order.ts';
import type { Router } from '../routing/router.ts';
import type { RuleTable } from '../routing/rules.ts';
import type { Breakers, Pause } from '../upstream/breaker.ts';
import {
  type Call,
  DecompressionError,
  type Dialer,
  MalformedResponse,
  TooLargeError,
  type Transport,
  UpstreamTimeout,
  type Wait,
  WrongAddress,
} from '../upstream/dialer.ts';
import type { LearnedRefusals, RetryBudget } from '../upstream/retry.ts';
import { ProxyError } from '../upstream/tunnel.ts';
import type { ClientConnection } from './client-connection.ts';
import type { IdempotentResponses } from './idempotent-responses.ts';
import type { MemoryGuard, Streams } from './load.ts';
import type { ModelLists } from './model-lists.ts';
import type { ExchangeObservers } from './observer.ts';
import type { PendingBytes } from './pending-bytes.ts';
import type { AttemptRecord, ExchangeRecord, RecordKeeping } from './record.ts';
import type { ResponseCache } from './response-cache.ts';
import { createInvalidResponse, HOPELESS, PROCESSED, REMEDY, UNUSABLE } from './response-errors.ts';
import type { ResponseKeeper } from './state.ts';

export { formatProvider } from './response-errors.ts';

/** What every exchange needs. */
export interface Services {
  directory(): Directory;
  readonly limits: Limits;
  readonly dialer: Dialer;
  readonly breakers: Breakers;
  readonly router: Router;
  readonly budget: RetryBudget;
  readonly refusals: LearnedRefusals;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly clock: Clock;
  /** The same as `clock.now`. */
  readonly now: () => number;
  readonly random: () => number;
  readonly streams: Streams;
  /** Concurrency, rates and budgets of keys and tags. */
  readonly gate: AdmissionGate;
  /** Connections of clients that are open at the same time. */
  readonly maxConnections: number;
  readonly memory: MemoryGuard;
  /** What requests hold before they run. */
  readonly pending: PendingBytes;
  readonly modelLists: ModelLists;
  /** How exchanges are recorded; undefined when they are not. */
  readonly keeping: RecordKeeping | undefined;
  /** Keeps responses; undefined when none is kept. */
  readonly responses: ResponseKeeper | undefined;
  /** Seals the opaque state of a candidate; undefined when it travels as plain text. */
  readonly sealing: ((candidate: Candidate) => Sealing) | undefined;
  /** Responses of requests with an `Idempotency-Key`; undefined when they are not shared. */
  readonly idempotency: IdempotentResponses | undefined;
  /** Responses that are sent again for equal requests; undefined when none are. */
  readonly cache: ResponseCache | undefined;
  /** Captures exchanges; undefined when none is captured. */
  readonly observers: ExchangeObservers | undefined;
  /** Makes spans of exchanges; undefined when they are not exported. */
  readonly tracer: Tracer | undefined;
  /** Removes secrets and private hosts from text for clients. */
  readonly redact: (text: string) => string;
  /** The same for names of models, which clients repeat. */
  readonly redactName: (name: string) => string;
  /** The same for upstream text: also removes private addresses and internal host names. */
  readonly redactUpstream: (text: string) => string;
}

/** Which provider serves which model: a snapshot of the configuration. An exchange keeps the one it began with. */
export interface Directory {
  /** Candidates for a model: tiers in the order in which they are tried. The router orders each tier. */
  resolve(model: string, client: ProtocolId): readonly Candidate[];
  /** Rules that send requests to another model; undefined when there are none. */
  readonly rules: RuleTable | undefined;
  /** How long a conversation stays with its target; null for not at all. */
  readonly affinityMs: number | null;
  /** Which model name responses have. */
  readonly modelInAnswer: ModelInAnswer;
  /** Why no provider serves a model. */
  whyUnknown(model: string): string;
  /**
   * Providers that have the endpoints of this protocol, for requests that are only forwarded. Those whose `passthrough`
   * is not `off` come first, then those of the protocol itself.
   */
  providersFor(protocol: ProtocolId): readonly ProviderEndpoint[];
  /** Model names for clients. */
  readonly models: readonly string[];
  /** Providers whose models are not configured; their lists are requested. */
  readonly unlisted: readonly ProviderEndpoint[];
  /** Proxies in front of the gateway. */
  readonly proxies: AddressRanges;
  readonly gatekeeper: Gatekeeper;
  /** Checks the key of `/metrics`; open when none is set. */
  readonly metricsGatekeeper: Gatekeeper;
  readonly prices: PriceTable;
  /** Budgets of tags. */
  readonly budgets: readonly TagBudget[];
  /** What happens when an upstream fails or is slow. */
  readonly recovery: RecoveryOptions;
  /** Hosts that are redacted for clients. */
  readonly privateHosts: readonly string[];
}

/** A provider that requests can be sent to, with its key. */
export interface ProviderEndpoint {
  provider: Provider;
  /** Scheme, host and port that the key belongs to. */
  origin: string;
  times: ProviderLimits;
  /** How its servers are reached. */
  network: Network;
  /** Which endpoints are forwarded without conversion. */
  passthrough: Passthrough;
}

/** A provider and model that a request may be sent to. */
export interface Candidate extends ProviderEndpoint, Routable {
  provider: Provider;
  /** `provider/model`, and which key of the provider if it has several: for the log and for clients. */
  label: string;
  /** What the provider and the model are known to accept. */
  profile: ProviderProfile;
  /** Same protocol on both sides: repair the stream instead of forwarding its bytes. */
  repair: boolean;
  /**
   * Same protocol on both sides: whether the request is forwarded unchanged, by how much is known about the provider
   * and the model.
   */
  passRequest: PassRequest;
  /** Whether the configuration names this model; otherwise the name is the client's text. */
  isConfigured: boolean;
  /** Read a response to its end after the client has disconnected, to learn its usage. */
  drains: boolean;
  /** What happens to an event of its streams whose data is not JSON. */
  onMalformed: OnMalformed;
  /** Responds inside this process; absent for providers on the network. */
  transport?: Transport;
}

/** What an attempt at one upstream needs, for streams and whole responses. */
export interface Attempt {
  exchange: Exchange;
  /** What the candidate does not get of the state that the request refers to. */
  notes: readonly Note[];
  candidate: Candidate;
  /** By `services.now`. */
  startedAt: number;
  transport: Transport;
  limits: Limits;
  connection: ClientConnection;
  /** The record of the exchange in the ledger. */
  record: ExchangeRecord;
  /** That of this attempt; another one when the request is sent again. */
  log: AttemptRecord;
  /** The request is sent again on a new connection. */
  onAgain: () => void;
  /** The upstream sent neither a response nor an error of its protocol; `head` is its beginning, for the log. */
  onStrange: (head: string) => void;
  /** Removes secrets and private addresses from upstream text for the client. The log redacts by itself. */
  redact: (text: string) => string;
}

/** The result of an attempt. */
export type Outcome =
  /** The client received its stream, or receives this reply. `error`: the error that ended the stream. */
  | { is: 'answered'; reply?: Reply; error?: CanonicalError }
  /**
   * Nothing was sent to the client, so another upstream may be tried. `reply`: the upstream's error in the client's
   * protocol.
   */
  | { is: 'failed'; error: CanonicalError; reply?: Reply }
  /** The client has received a part of the response; another upstream may continue it. */
  | { is: 'broken'; error: CanonicalError }
  /** Another upstream, asked at the same time, responded first. */
  | { is: 'lost' }
  /** The client disconnected. */
  | { is: 'gone' };

/** A whole response for the client. `bytes`: the upstream's unchanged body. */
export interface Reply extends Omit<WireReply, 'body'> {
  body: unknown;
  bytes?: Buffer;
}

/** The outcome of a request that a codec rejected. Throws any other error again. */
export function toFailedOutcome(error: unknown): Outcome {
  if (error instanceof CodecError) return { is: 'failed', error: error.error };
  throw error;
}

/** How an exchange ended, for the log. */
export type Ending =
  | 'answered'
  | 'refused'
  | 'client_aborted'
  | 'client_stalled'
  | 'hedge_lost'
  | 'stopped'
  | 'timeout'
  | 'upstream_truncated'
  | 'upstream_malformed'
  | 'upstream_error'
  | 'internal_error';

/** How an exchange with this error ended. */
export function findEnding(error: CanonicalError | undefined): Ending {
  if (!error) return 'answered';
  const { code, details = {}, upstream, http_status: status = 0 } = error;
  if (isStop(error)) return 'stopped';
  if (details['rule'] === 'sse/malformed-json') return 'upstream_malformed';
  if (code === 'STREAM_TRUNCATED') return 'upstream_truncated';
  if (code === 'TIMEOUT' && !upstream) return 'timeout';
  if (code === 'INTERNAL' && !upstream) return 'internal_error';
  return upstream || status >= 502 || code === 'UPSTREAM_ERROR' ? 'upstream_error' : 'refused';
}

/** Converts a request to a call. Throws a CodecError when the upstream's protocol cannot express it. */
export function buildCall(
  exchange: Exchange,
  wire: Parameters<Exchange['request']>[0],
  { origin, times, network }: Candidate,
  repeat: Call['repeat'],
): Call {
  const { url, method, headers, body, text } = exchange.request(wire);
  headers['accept-encoding'] = 'identity';
  return { url, origin, method, headers, body: text ?? JSON.stringify(body), connectMs: times.connectMs, network, repeat };
}

/** Metric labels of an exchange with this candidate. */
export const buildLabels = ({ provider, model, isConfigured }: Candidate, client: ProtocolId): ExchangeLabels => ({
  provider: provider.id,
  model,
  client_protocol: client,
  upstream_protocol: provider.protocol,
  isConfigured,
});

// ---- failures that the gateway detects; messages name the provider, but neither its host nor its key

/** The gateway is shutting down. */
export const STOPPED: CanonicalError = {
  code: 'OVERLOADED',
  message: 'the gateway is shutting down; retry the request',
  http_status: 503,
  retry_after_ms: 1000,
  details: { ending: 'stopped' },
};

/** The client's key was revoked while its request was running. */
export const REVOKED: CanonicalError = {
  code: 'AUTHENTICATION',
  message: 'the client key of this request was revoked',
  http_status: 401,
  details: { ending: 'stopped' },
};

/** Whether the gateway itself ended the exchange. */
export const isStop = ({ details }: CanonicalError): boolean => details?.['ending'] === 'stopped';

/** A bug in the gateway. */
export const INTERNAL: CanonicalError = {
  code: 'INTERNAL',
  message: 'internal gateway error; see the log of the gateway',
  http_status: 500,
};

/** The gateway, not the upstream, has too many connections. */
const NO_DESCRIPTORS: CanonicalError = {
  code: 'OVERLOADED',
  message: 'the gateway has no free file descriptors; retry later',
  http_status: 503,
  retry_after_ms: 1000,
  details: { overloaded: 'gateway' },
};

/** The upstream completed its response without content. */
export const createEmptyResponseError = (name: string): CanonicalError => ({
  code: 'UPSTREAM_ERROR',
  message: `${name} sent an empty response`,
  http_status: 502,
  details: UNUSABLE,
});

/** Every target of the request is paused. */
export function createPausedError({ ms, reason }: Pause): CanonicalError {
  const wait = Math.max(1000, ms);
  const message = `every upstream for this model is paused after failures; retry in ${Math.ceil(wait / 1000)} s; last error: ${reason}`;
  return { code: 'OVERLOADED', message, http_status: 503, retry_after_ms: wait };
}

const WAIT_TEXTS = {
  response: 'did not respond within',
  event: 'sent no event within',
  more: 'sent nothing for',
  end: 'did not finish its response within',
} as const satisfies Record<Wait, string>;

/** The upstream took too long. */
export const createTimeoutError = (name: string, wait: Wait, ms: number): CanonicalError =>
  createTimeout(`${name} timed out: it ${WAIT_TEXTS[wait]} ${formatDuration(ms)}`);

const createTimeout = (message: string): CanonicalError => ({ code: 'TIMEOUT', message, http_status: 504 });

const formatDuration = (ms: number): string => (ms < 1000 ? `${ms} ms` : `${ms / 1000} s`);

/** More bytes than the operator allows. */
export const createTooLargeError = (name: string, bytes: number): CanonicalError =>
  createInvalidResponse(`${name} sent a response of more than ${bytes} bytes`, PROCESSED);

/** A failed connection in the canonical form. */
export function createConnectionError(error: unknown, name: string, connectMs?: number): CanonicalError {
  if (error instanceof UpstreamTimeout) return createTimeoutError(name, error.wait, error.ms);
  if (error instanceof DecompressionError || error instanceof TooLargeError || error instanceof MalformedResponse)
    return createInvalidResponse(`${name} ${error.message}`, PROCESSED);
  if (error instanceof WrongAddress) return createInvalidResponse(`the request would leave the base URL of ${name}; not sent`);
  if (error instanceof ProxyError) return createProxyError(error, name);
  const code = readCode(error);
  if (code === 'EMFILE' || code === 'ENFILE') return NO_DESCRIPTORS;
  const details = { may_be_billed: !UNSENT_CODE.test(code ?? '') };
  if (LOST_CODE.test(code ?? '')) return createLostError(name, code, details);
  if (code !== 'UND_ERR_CONNECT_TIMEOUT')
    return {
      code: 'UPSTREAM_ERROR',
      message: `the connection to ${name} failed${formatReason(code)}${CONNECTION_REMEDIES[code ?? ''] ?? ''}`,
      http_status: 502,
      details,
    };
  const within = connectMs === undefined ? ' in time' : ` within ${formatDuration(connectMs)}`;
  return { ...createTimeout(`could not connect to ${name}${within}`), details };
}

const createProxyError = ({ message, isFinal }: ProxyError, name: string): CanonicalError => ({
  code: 'UPSTREAM_ERROR',
  message: `the proxy of ${name} ${message}`,
  http_status: 502,
  details: { may_be_billed: false, ...(isFinal && HOPELESS) },
});

/** What to check, without the address, which is the operator's. */
const CONNECTION_REMEDIES: Readonly<Record<string, string>> = {
  ECONNREFUSED: ': nothing listens at its base_url; start the server, or correct base_url',
  ENOTFOUND: ': the host name of its base_url does not exist; correct base_url',
};

/** An established connection was closed or reset by the upstream. */
const LOST_CODE = /^(ECONNRESET|ECONNABORTED|EPIPE|UND_ERR_SOCKET)$/;

/** "socket hang up" is node's wording: pi and Continue retry stream errors that contain it. */
const createLostError = (name: string, code: string | undefined, details: Readonly<Record<string, unknown>>): CanonicalError => ({
  code: 'UPSTREAM_ERROR',
  message: `the connection to ${name} failed: socket hang up${formatReason(code)}`,
  http_status: 502,
  details: { ...details, connection: 'lost' },
});

/** Failures to connect, so nothing was sent. After any other failure the request may have been sent. */
const UNSENT_CODE =
  /^(ECONNREFUSED|E(HOST|NET)UNREACH|ENOTFOUND|EAI_AGAIN|EADDRNOTAVAIL|UND_ERR_CONNECT_TIMEOUT|.*(CERT|SSL|TLS).*)$/;

/** Codes of system errors contain no secrets. */
const formatReason = (code: string | undefined): string =>
  code !== undefined && /^(E[A-Z]+|UND_ERR_[A-Z_]+|CERT_[A-Z_]+|[A-Z]+_CERT[A-Z_]*|ERR_(SSL|TLS)_[A-Z_]+)$/.test(code)
    ? ` (${code})`
    : '';

function readCode(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : undefined;
}

/** Redirects are not followed: they would send the key to another host. */
export const findRedirectError = (name: string, status: number): CanonicalError | undefined =>
  status >= 300 && status < 400
    ? createInvalidResponse(
        `${name} responded with a redirect (${status}), which is not followed; set its base_url to the final address`,
      )
    : undefined;

/** Neither a response nor an error of the protocol. The message names its content type and does not quote the body. */
export function createInvalidResponseError(name: string, headers: Record<string, string>): CanonicalError {
  const type = /^[\w.+-]{1,60}\/[\w.+-]{1,60}/.exec(headers['content-type'] ?? '')?.[0] ?? 'data without a content type';
  return createInvalidResponse(`${name} responded with ${type} that does not match its protocol; ${REMEDY}`, UNUSABLE);
}

/** An invalid response is the upstream's fault, whatever code the codec gave the error. */
export function toUpstreamError(error: CanonicalError, name: string): CanonicalError {
  if (error.upstream || error.code === 'STREAM_TRUNCATED') return error;
  const details = { ...error.details, ...UNUSABLE };
  // Found by the gateway, which names the provider.
  if (error.code === 'INCOMPATIBLE_FEATURE' || error.message.startsWith(name)) return { ...error, details };
  const message = `${name} sent an invalid response: ${error.message}`;
  return { ...error, details, message, code: 'UPSTREAM_ERROR', http_status: 502 };
}

/** Why a request could not be sent to any upstream. */
export function createUnavailableError(model: string, candidates: readonly Candidate[], directory: Directory): CanonicalError {
  if (candidates.length > 0)
    return { code: 'OVERLOADED', message: `no upstream is available for model ${JSON.stringify(model)}`, http_status: 503 };
  if (model === '') return NO_TEMPLATES;
  return { code: 'NOT_FOUND', message: directory.whyUnknown(model), http_status: 404, param: 'model' };
}

const NO_TEMPLATES: CanonicalError = {
  code: 'INVALID_INPUT',
  message:
    'prompt: prompt templates require a provider with protocol OpenAI Responses, and none is configured; send "model" and "input" instead',
  http_status: 400,
  param: 'prompt',
};

/** For the log: the upstream's own message, where the client receives another one. */
export const readUpstreamMessage = ({ details }: CanonicalError): { upstream_message?: unknown } =>
  details?.['upstream_message'] === undefined ? {} : { upstream_message: details['upstream_message'] };
