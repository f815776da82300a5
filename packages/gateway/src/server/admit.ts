import type { Services } from '../exchange/types.ts';
import { checkHost, isForeignPage } from '../http/origin.ts';
import { refusal } from '../http/refusal.ts';
import type { Caller } from '../keys/caller.ts';
import { checkAddress } from '../keys/scope.ts';
import type { Incoming } from './handle.ts';

/** Checks every request before anything is done for it, and finds who sends it. Throws the refusal. */
export function admit(incoming: AdmissionRequest, services: Services): Caller {
  checkForm(incoming, services);
  const caller = incoming.console?.caller ?? findCaller(incoming);
  const { streams, memory, metrics } = services;
  if (!streams.isFull && !memory.isTight) return caller;
  metrics.shed.inc();
  throw refusal(503, 'OVERLOADED', 'too many requests in progress; retry later', 1000);
}

type AdmissionRequest = Pick<Incoming, 'request' | 'client' | 'headers' | 'route' | 'directory' | 'console'>;

/** Rejects headers that node's parser accepts and no honest client sends. */
export function checkForm(
  { request: { rawHeaders, httpVersion } }: Pick<AdmissionRequest, 'request'>,
  { limits }: Pick<Services, 'limits'>,
): void {
  if (rawHeaders.length / 2 > limits.headers)
    throw refusal(431, 'INVALID_INPUT', `the request has more than ${limits.headers} headers (limits.header_count)`);
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) if (isHost(rawHeaders[i] ?? '')) hosts++;
  if (hosts > 1) throw refusal(400, 'INVALID_INPUT', 'the request has more than one Host header');
  if (hosts === 0 && httpVersion === '1.1') throw refusal(400, 'INVALID_INPUT', 'the Host header is required');
}

const isHost = (name: string): boolean => name.length === 4 && name.toLowerCase() === 'host';

/** Rejects web pages of other origins, foreign hosts, missing or wrong client keys, and addresses that a key excludes. */
function findCaller({ client, headers, route, directory: { gatekeeper } }: AdmissionRequest): Caller {
  if (isForeignPage(headers))
    throw refusal(403, 'PERMISSION', 'requests from web pages of other origins are not allowed; send them from a server');
  // With client keys the host does not matter, because a web page has no key.
  if (gatekeeper.isOpen) checkHost(headers['host'], ' without client keys; set auth.keys or use 127.0.0.1');
  const admission = gatekeeper.admit(headers, route.path);
  if (!admission.admitted && admission.isTemporary) throw refusal(503, 'OVERLOADED', admission.reason, 1000);
  if (!admission.admitted) throw refusal(401, 'AUTHENTICATION', admission.reason);
  const { caller } = admission;
  if (caller.policy.addresses.length > 0) checkAddress(caller, client.address);
  return caller;
}
