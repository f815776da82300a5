import type { Exchange, ProtocolId } from '@sluice/core';
import type { Limits } from '../config/limits.ts';
import type { ExchangeLabels } from '../observe/metrics.ts';
import type { Call, Transport } from '../upstream/dialer.ts';
import type { ClientConnection } from './presence.ts';
import type { Candidate } from './services.ts';

/** What an attempt at one upstream needs, for streams and whole responses. */
export interface Attempt {
  exchange: Exchange;
  candidate: Candidate;
  transport: Transport;
  limits: Limits;
  connection: ClientConnection;
  /** The request is sent again on a new connection. */
  onAgain: () => void;
  /** The upstream sent neither a response nor an error of its protocol; `head` is its beginning, for the log. */
  onStrange: (head: string) => void;
  /** Removes secrets and private addresses from upstream text for the client. The log redacts by itself. */
  redact: (text: string) => string;
}

/** Converts a request to a call. Throws a CodecError when the upstream's protocol cannot express it. */
export function buildCall(
  exchange: Exchange,
  wire: Parameters<Exchange['request']>[0],
  { origin, times }: Candidate,
  repeat: Call['repeat'],
): Call {
  const { url, method, headers, body, text } = exchange.request(wire);
  headers['accept-encoding'] = 'identity';
  return { url, origin, method, headers, body: text ?? JSON.stringify(body), connectMs: times.connectMs, repeat };
}

/** Metric labels of an exchange with this candidate. */
export const buildLabels = ({ provider, model, isConfigured }: Candidate, client: ProtocolId): ExchangeLabels => ({
  provider: provider.id,
  model,
  client_protocol: client,
  upstream_protocol: provider.protocol,
  isConfigured,
});
