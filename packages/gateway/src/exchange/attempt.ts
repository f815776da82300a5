import type { Exchange, ProtocolId } from '@sluice/core';
import type { Limits } from '../config/limits.ts';
import type { ExchangeLabels } from '../observe/metrics.ts';
import type { Call, Transport } from '../upstream/dialer.ts';
import type { Presence } from './presence.ts';
import type { Candidate } from './services.ts';

/** All that an attempt at one upstream needs, whether a stream or a whole answer is wanted. */
export interface Attempt {
  exchange: Exchange;
  candidate: Candidate;
  transport: Transport;
  limits: Limits;
  presence: Presence;
  /** The same call is made once more. */
  onAgain: () => void;
  /** The upstream answered with something that is neither an answer nor an error: what, for the log. */
  onStrange: (head: string) => void;
  /** Takes secrets and private addresses out of what an upstream wrote, for the client. The log redacts by itself. */
  redact: (text: string) => string;
}

/** The call that a request becomes. Throws a CodecError when the upstream cannot be asked that. */
export function callOf(
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
export const labelsOf = ({ provider, model, isConfigured }: Candidate, client: ProtocolId): ExchangeLabels => ({
  provider: provider.id,
  model,
  client_protocol: client,
  upstream_protocol: provider.protocol,
  isConfigured,
});
