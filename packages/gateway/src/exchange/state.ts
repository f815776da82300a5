/** What keeps the state of responses for clients of OpenAI Responses, as the exchange layer sees it. */

import type { ClientRequest, ExchangeOptions, InterfaceType, Note } from '@sluice/core';
import type { Admission } from '../admission/gate.ts';
import type { Caller } from '../keys/caller.ts';
import type { ModelRequest, Result } from './model-request.ts';
import type { PassedContent } from './object-fields.ts';
import type { ForwardedRequest } from './pass-bytes.ts';
import type { Candidate, Directory, ProviderEndpoint, Reply, Services } from './types.ts';

/** Keeps responses, and serves those that are kept. */
export interface ResponseKeeper {
  /** Opens the lanes of a WebSocket connection; undefined when WebSocket is off. */
  readonly openLanes: (() => ConnectionLanes) | undefined;
  /** Bytes of what a chat request refers to, which an upstream may get as well. */
  measure(body: unknown, caller: Caller, lane: Lane | undefined): number;
  /** Throws for a request that names what its key may not use. */
  check(request: ModelRequest, type: InterfaceType, caller: Caller): void;
  /** Runs a chat request, with the state that it refers to. */
  run(request: ModelRequest, caller: Caller, services: Services): Promise<Result>;
  /** Serves a stored object, or decides who may reach one that a provider keeps. */
  serve(request: StateRequest, services: Services): Promise<Served>;
}

/** What a WebSocket connection keeps for as long as it is open: the latest response of each of its lanes. */
export interface ConnectionLanes {
  close(): void;
}

/** The lane of a connection that a request belongs to: requests of a lane are run one after the other. */
export interface Lane {
  readonly lanes: ConnectionLanes;
  /** Empty for the lane without a name. */
  readonly name: string;
}

/** A request that is not one for a model. */
export interface StateRequest extends ForwardedRequest {
  directory: Directory;
  caller: Caller;
  /** Reads the body of the request. */
  readBody(): Promise<Buffer>;
  /** Admits a request for a model that is made to serve this one. Throws or rejects with the refusal. */
  admitModel(model: string, body: unknown, bytes: number): Promise<Admission | undefined>;
}

/** How a request for a stored object continues. */
export type Served =
  /** It was answered. */
  | { is: 'served'; result: Result }
  /** It is passed on. `provider`: the only one that may get it, because it keeps an object of this caller. */
  | {
      is: 'passed';
      provider?: string;
      /** Throws for content that names an object which the caller may not use at this provider. */
      checkContent?: (content: PassedContent, endpoint: ProviderEndpoint) => void;
      onReply?: (body: Buffer, provider: string) => void;
    };

/** The state of one request. */
export interface ExchangeState {
  /** The request for a candidate. Throws a CodecError when the candidate cannot know what the request refers to. */
  prepare(candidate: Candidate): PreparedState;
  /** Whether the response to an equal request may be sent again: the request refers to nothing that can change. */
  readonly mayReuse: boolean;
  /** Fields of a converted response: an id of its own, and what repeats the state of the request. */
  readonly convertedEnvelope: NonNullable<ExchangeOptions['envelope']>;
  /** A part of the stream is sent to the client. `source`: the candidate that sends it. */
  sent(bytes: Uint8Array, source: Candidate | undefined): void;
  /**
   * The last part of the stream is about to be sent. Resolves when the response is kept. `source`: the candidate that made all
   * of it; undefined for a response from a cache, or of several candidates.
   */
  beforeEnd(held: readonly Uint8Array[], source: Candidate | undefined): Promise<void> | undefined;
  /** A whole response is about to be sent. Resolves when it is kept. */
  beforeReply(reply: Reply, source: Candidate | undefined): Promise<void> | undefined;
}

/** A request with the conversation that it refers to, where the candidate does not keep it. */
export interface PreparedState {
  wire: ClientRequest;
  /** What the candidate does not get of it. */
  notes?: readonly Note[];
  /** Options of the conversion that the state requires. */
  options?: Partial<ExchangeOptions>;
}
