/** `@sluice/core/fetch`: a `fetch` that repairs or converts responses, for any SDK that takes one. */

import type { ProtocolId } from './canonical/protocol.ts';
import type { Provider } from './codec/protocol.ts';
import { createFetchHandler } from './io/fetch-handler.ts';
import { createRepairFetchFor, type Fetch, type RepairOptions } from './io/repair-fetch.ts';
import { CODECS, REPAIRS } from './protocols/index.ts';
import { type PrepareOptions, prepareRequests } from './repair/requests.ts';

export type { ProtocolId } from './canonical/protocol.ts';
export type { RepairCodec } from './codec/protocol.ts';
export { createRepairFetchFor, type Fetch, type RepairFinding, type RepairOptions } from './io/repair-fetch.ts';
export { type PrepareOptions, type PrepareRequest, prepareRequests } from './repair/requests.ts';
export type { RuleId } from './rules/index.ts';

/** Options of `createRepairFetch`. */
export interface RepairFetchOptions extends Omit<RepairOptions, 'requests'>, PrepareOptions {
  /** Also prepares requests: tool schemas, names and ids of tools, results without calls, the order of messages. */
  requests?: boolean | undefined;
  /** Sends every request of a chat to a server of another protocol instead, and converts its responses. */
  convert?: ConvertTarget | undefined;
}

/** The server that gets converted requests. */
export interface ConvertTarget extends Pick<Provider, 'adapter_config' | 'profile'> {
  /** The protocol of the server. */
  to: ProtocolId;
  /** The base URL of the server, with its version where it has one. */
  baseUrl: string;
  apiKey?: string;
  /** The name of the model at the server; by default the one in the request. */
  model?: string;
  /** The id of the provider in the tables of facts. */
  provider?: string;
}

/**
 * Creates a `fetch` for SDKs that repairs the responses of all four protocols. Bytes are unchanged when nothing is
 * wrong.
 *
 * ```ts
 * const client = new OpenAI({ baseURL: 'http://localhost:11434/v1', fetch: createRepairFetch() });
 * ```
 */
export function createRepairFetch({ convert, requests, provider, onNote, ...options }: RepairFetchOptions = {}): Fetch {
  if (convert) return createConvertingFetch(convert, options);
  const prepare = requests ? prepareRequests(Object.values(CODECS), { provider, onNote }) : undefined;
  return createRepairFetchFor(Object.values(REPAIRS), { ...options, requests: prepare });
}

function createConvertingFetch(target: ConvertTarget, { fetch, maxBytes }: RepairOptions): Fetch {
  const { to, baseUrl, apiKey, model, provider = to, adapter_config, profile } = target;
  const upstream: Provider = {
    id: provider,
    protocol: to,
    base_url: baseUrl,
    ...(apiKey !== undefined && { api_key: apiKey }),
    ...(adapter_config && { adapter_config }),
    ...(profile && { profile }),
  };
  const handle = createFetchHandler({
    resolve: (requested) => ({ provider: upstream, model: model ?? requested }),
    ...(fetch && { fetch }),
    ...(maxBytes !== undefined && { maxBytes }),
  });
  return (input, init) => handle(new Request(input, init));
}
