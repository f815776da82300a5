/** Names for the keys and addresses of a provider that has several, without the keys. */

import { createHmac, randomBytes } from 'node:crypto';
import { type ConfiguredProvider, listEndpoints } from '../config/providers.ts';

/** Which of the keys and addresses of a provider is used. */
export interface EndpointPlace {
  /** Keys and addresses of the provider. */
  readonly count: number;
  /** Ends the keys of breakers; stays the same when a reload changes the order of keys. Empty for the only one. */
  readonly suffix: string;
  /** For the log and for clients: ` (key 2)`. */
  readonly title: string;
}

/** Names one of the keys and addresses of a provider. */
export function placeEndpoint(provider: ConfiguredProvider, endpoint: ConfiguredProvider): EndpointPlace {
  const endpoints = listEndpoints(provider);
  if (endpoints.length === 1) return ONLY_ENDPOINT;
  const { base_url } = endpoint.provider;
  const digest = createHmac('sha256', SALT)
    .update(JSON.stringify([base_url, endpoint.key?.reveal()]))
    .digest('hex');
  const hasKeys = new Set(endpoints.map(({ key }) => key)).size > 1;
  const kind = hasKeys ? 'key' : 'address';
  return {
    count: endpoints.length,
    suffix: `#${digest.slice(0, 12)}`,
    title: ` (${kind} ${endpoints.indexOf(endpoint) + 1})`,
  };
}

const ONLY_ENDPOINT: EndpointPlace = { count: 1, suffix: '', title: '' };

/** Without it, a digest could be used to check a guess of a key. */
const SALT = randomBytes(32);
