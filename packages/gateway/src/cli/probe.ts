/** Finds out what listens at an address, before a key or a prompt is sent there. */

import { isUntrusted } from '../http/connect-errors.ts';
import { INSTANCE_HEADER } from '../server/instance.ts';

const PROBE_MS = 5000;

/** Why there is no gateway at an address that the user has named, and what to do. */
export const MISSING_GATEWAY = {
  nothing: (url, name, undo) => `no gateway responds at ${url}; start one with "sluice serve", check ${name}, or ${undo}`,
  untrusted: (url) =>
    `the certificate of ${url} is not trusted; name the file of its authority in NODE_EXTRA_CA_CERTS, and use a host that the certificate names`,
  other: (url, name, undo) => `the server at ${url} is not a Sluice gateway; check ${name}, or ${undo}`,
} as const satisfies Record<string, (url: string, name: string, undo: string) => string>;

/** What was found at an address. */
export interface Probed {
  /** A gateway, a server without a trusted certificate, another server, or nothing. */
  readonly state: 'gateway' | keyof typeof MISSING_GATEWAY;
  /** What identifies the gateway; undefined for one that does not send it. */
  readonly instance: string | undefined;
}

/** Finds out what listens at an address. */
export async function probeGateway(url: string): Promise<Probed> {
  try {
    const response = await fetch(`${url}/health/live`, { signal: AbortSignal.timeout(PROBE_MS), redirect: 'manual' });
    const isGateway = response.ok && response.headers.has('x-sluice-request-id') && (await response.text()).trim() === 'live';
    return { state: isGateway ? 'gateway' : 'other', instance: response.headers.get(INSTANCE_HEADER) || undefined };
  } catch (error) {
    return { state: isUntrusted(error) ? 'untrusted' : 'nothing', instance: undefined };
  }
}
