/** What sees the bytes of an exchange: captures. Without a capture there is no observer. */

import type { CanonicalError, ExchangeOptions, InterfaceType, Provider } from '@sluice/core';
import type { Route } from '@sluice/core/engine';
import type { Transport } from '../upstream/dialer.ts';
import type { Ending, Outcome } from './types.ts';

/** Decides which exchanges are observed. */
export interface ExchangeObservers {
  /** The observer of an exchange; undefined when it is not observed. Never throws. */
  begin(request: ObservedRequest): ExchangeObserver | undefined;
}

/** A request that has been read. */
export interface ObservedRequest {
  /** The id of the exchange in the ledger; empty without one. */
  id: string;
  /** The id that the client receives. */
  requestId: string;
  endpoint: InterfaceType;
  client: Route['client'];
  /** The model that the client requested; undefined when the request names none. */
  model: string | undefined;
  isStream: boolean;
  method: string;
  path: string;
  headers: Readonly<Record<string, string>>;
  body: string | Uint8Array;
  /** Whether the gateway has no client keys, so that it serves this machine only. */
  isOpen: boolean;
  /** The name of the client's key, where keys have names. */
  key?: string | undefined;
}

/** Sees what passes through one exchange. Its methods return at once and never throw. */
export interface ExchangeObserver {
  /** A request is about to be sent to a provider. Without `options` it is forwarded unchanged. */
  attempt(provider: Provider, options?: ExchangeOptions): AttemptObserver;
  /** The headers of the response are sent to the client. */
  opened(status: number, headers: Readonly<Record<string, string>>, isStream: boolean): void;
  /** A part of the response body is sent to the client. */
  sent(data: string | Uint8Array, encoding?: BufferEncoding): void;
  /** Bytes that clients ignore are sent to keep the connection open. */
  filled(bytes: Uint8Array): void;
  /** The exchange is over. */
  ended(end: ObservedEnd): void;
}

/** How an exchange ended. */
export interface ObservedEnd {
  ending: Ending;
  error?: CanonicalError | undefined;
}

/** Sees one attempt at an upstream. */
export interface AttemptObserver {
  /** The options of the conversion, with a clock whose times are kept: the conversion can be repeated with them. */
  readonly options: ExchangeOptions | undefined;
  /** A transport that shows the call and the response to this observer. */
  tap(transport: Transport): Transport;
  /** The attempt is over. */
  ended(outcome: Outcome): void;
}
