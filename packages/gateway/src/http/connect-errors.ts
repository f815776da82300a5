/** Why a server could not be reached, in words, and what to check. For every client of a server: probes, databases and Redis. */

import { isIP } from 'node:net';
import { readCode } from '@sluice/lab/text';

/** What is connected to. */
export interface ConnectTarget {
  /** Where the server is, without a user and a password; by default what the error names. */
  readonly place?: string;
  /** What the user corrects: "--url", "its address". */
  readonly setting: string;
}

/** The reason and what to check; undefined when the error is not one of a connection. */
export function explainConnectError(error: unknown, { place, setting }: ConnectTarget): string | undefined {
  const fault = findConnectFault(error);
  if (!fault) return undefined;
  const [fact, remedy] = EXPLANATIONS[fault.kind];
  return `${fact(place ?? fault.place)} (${fault.code}); ${remedy(setting)}`;
}

/** Whether the certificate of a server is not trusted, or is for another name. */
export const isUntrusted = (error: unknown): boolean =>
  ['untrusted', 'expired', 'misnamed'].includes(findConnectFault(error)?.kind ?? '');

/** What is the case at a place, and what to do about it. */
const EXPLANATIONS = {
  refused: [(at) => `nothing listens at ${at}`, (setting) => `start the server, or correct ${setting}`],
  unresolved: [
    (at) => `the host name of ${at} cannot be resolved`,
    (setting) => `correct ${setting}, or check the DNS of this machine`,
  ],
  unreachable: [(at) => `no network leads to ${at}`, (setting) => `check the network of this machine, or correct ${setting}`],
  late: [
    (at) => `${at} did not respond in time`,
    (setting) => `check that the server runs and that no firewall is between, or correct ${setting}`,
  ],
  closed: [
    (at) => `the server at ${at} closed the connection`,
    (setting) => `check its log, and in ${setting} the port and whether it needs TLS`,
  ],
  untrusted: [(at) => `the certificate of ${at} is not trusted`, () => 'name the file of its authority in NODE_EXTRA_CA_CERTS'],
  expired: [(at) => `the certificate of ${at} is not valid now`, () => 'renew it, or check the clock of this machine'],
  misnamed: [(at) => `the certificate of ${at} is for another host`, (setting) => `use a name that it has in ${setting}`],
  'not-tls': [(at) => `the server at ${at} does not use TLS`, (setting) => `write http:// instead of https:// in ${setting}`],
  'not-http': [
    (at) => `the server at ${at} does not respond with HTTP`,
    (setting) => `correct the port in ${setting}, or write https:// if it uses TLS`,
  ],
} as const satisfies Record<string, readonly [fact: (place: string) => string, remedy: (setting: string) => string]>;

type Kind = keyof typeof EXPLANATIONS;

/** Codes of node, of OpenSSL and of undici. */
const KINDS: readonly (readonly [codes: RegExp, kind: Kind])[] = [
  [/^ECONNREFUSED$/, 'refused'],
  [/^(ENOTFOUND|EAI_\w+)$/, 'unresolved'],
  [/^(EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|ENETDOWN|EHOSTDOWN)$/, 'unreachable'],
  [/^(ETIMEDOUT|ESOCKETTIMEDOUT|UND_ERR_(CONNECT|HEADERS|BODY)_TIMEOUT|TimeoutError)$/, 'late'],
  [/^(ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST)|EPROTO)$/, 'not-tls'],
  [/^(ECONNRESET|EPIPE|UND_ERR_SOCKET)$/, 'closed'],
  [/^CERT_(HAS_EXPIRED|NOT_YET_VALID)$/, 'expired'],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, 'misnamed'],
  [/CERT|SIGNATURE|ISSUER/, 'untrusted'],
  [/^(HPE_|HTTPParserError$)/, 'not-http'],
];

interface Fault {
  readonly kind: Kind;
  readonly code: string;
  /** The place that the error names. */
  readonly place: string;
}

/** Wrappers are few: `fetch`, an error of several addresses, and the error itself. */
const MAX_DEPTH = 4;

function findConnectFault(error: unknown, depth = 0): Fault | undefined {
  if (!(error instanceof Error) || depth > MAX_DEPTH) return undefined;
  // The signal of `AbortSignal.timeout` has a number as its code.
  const code = readCode(error) ?? error.name;
  const kind = KINDS.find(([codes]) => codes.test(code))?.[1];
  const inner = error instanceof AggregateError ? error.errors : [error.cause];
  const deeper = inner.map((one: unknown) => findConnectFault(one, depth + 1)).find((one) => one !== undefined);
  // The error inside is more exact about the place.
  return kind === undefined || (deeper && deeper.kind === kind) ? deeper : { kind, code, place: describePlace(error) };
}

/** Fields that node sets. */
interface NamedPlace {
  readonly address?: unknown;
  readonly port?: unknown;
  readonly hostname?: unknown;
}

function describePlace({ address, port, hostname }: Error & NamedPlace): string {
  if (typeof hostname === 'string') return `"${hostname}"`;
  if (typeof address !== 'string') return 'this address';
  const host = isIP(address) === 6 ? `[${address}]` : address;
  return typeof port === 'number' ? `${host}:${port}` : host;
}
