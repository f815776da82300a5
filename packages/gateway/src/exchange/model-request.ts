/** A request for a model, as it comes to the exchange layer, and what became of it. */

import type { CanonicalError, ClientRequest, Codec, RequestTarget } from '@sluice/core';
import type { Admission } from '../admission/gate.ts';
import type { LimitRefusal } from '../admission/refusals.ts';
import type { Rule } from '../config/resolve.ts';
import type { Caller } from '../keys/caller.ts';
import type { LabelledSeries } from '../observe/labelled-series.ts';
import type { ClientConnection } from './client-connection.ts';
import type { Endpoint } from './endpoint.ts';
import type { ExchangeObserver } from './observer.ts';
import type { ExchangeRecord } from './record.ts';
import type { Progress } from './reply.ts';
import type { Caching } from './response-cache.ts';
import type { ExchangeState, Lane } from './state.ts';
import type { Directory, Ending } from './types.ts';

/** A parsed request for a model. */
export interface ModelRequest {
  /** Chat, or an endpoint beside it: token counts, embeddings, rankings. */
  kind: Endpoint['kind'];
  id: string;
  client: Codec;
  wire: ClientRequest;
  /** The model and the stream flag of the request. */
  target: RequestTarget;
  connection: ClientConnection;
  /** The record of the exchange in the ledger. */
  record: ExchangeRecord;
  /** What the request holds at the gate; undefined without limits. */
  admission: Admission | undefined;
  observer: ExchangeObserver | undefined;
  directory: Directory;
  /** Who sends the request. */
  caller: Caller | undefined;
  /** The conversation that the request belongs to, if its client names it. */
  session: string | undefined;
  /** The rule that chose the model, if one did. */
  rule: Rule | undefined;
  /** When the whole request had arrived, by `services.now`. */
  receivedAt: number;
  /** The lane of a WebSocket connection that the request came over; undefined for HTTP. */
  lane?: Lane | undefined;
  /** The only response that the request may get, because its budget allows no other. */
  cached?: CachedOnly | undefined;
  /** What the request refers to, and what is kept of its response. */
  state?: ExchangeState | undefined;
}

/** A cached response, and the error of a request that may not get it. */
export interface CachedOnly {
  readonly caching: Caching;
  readonly refusal: LimitRefusal;
}

/**
 * Why a request needed no upstream: it shares the response of a running request, or repeats that of a finished one with
 * the same `Idempotency-Key`, or of an equal one.
 */
export type Reuse = 'joined' | 'replayed' | 'cached';

/** What became of a request, for the log and the metrics. */
export interface Result extends Progress {
  status: number;
  ending: Ending;
  error?: CanonicalError | undefined;
  /** The exchange continues without its client, and settles its record itself. */
  isDetached?: boolean;
  /** Whose response it is, when nothing was sent upstream for this request: that of an earlier one. */
  reused?: Reuse | undefined;
  /** What changed in the prompt since the turn before: `tools[3].description changed`. */
  cacheBreak?: string | undefined;
  /** The metric series of the last candidate, if there was one. */
  series?: LabelledSeries | undefined;
}
