import type { SecretRegistry } from '../config/secrets.ts';

/**
 * Providers show keys half hidden (`sk-proj-****wxyz`): whose key it is, is still nobody's business. A run of asterisks is looked at from its
 * beginning only: from each of its characters, 1 MB of them would take half an hour.
 */
const HALF_HIDDEN = /[\w-]{1,24}\*{3,}[\w-]{0,24}|(?<!\*)\*{3,}[\w-]{1,24}/g;

/** Takes out of a text what must not leave: the secrets of this process, what looks like one, and what hints at one. */
export const createRedact =
  (secrets: SecretRegistry) =>
  (text: string): string =>
    hideHalves(secrets.redact(text));

/** The pattern backtracks at every character, 3 us for a request id: most texts have no asterisk. */
const hideHalves = (text: string): string => (text.includes('***') ? text.replace(HALF_HIDDEN, '***') : text);

/** The same for what clients read: where the operator's own upstreams stand is not their business, and upstreams like to tell it. */
export const hidingHosts =
  (redact: (text: string) => string, hosts: () => readonly string[]) =>
  (text: string): string =>
    hosts().reduce((clean, host) => clean.replaceAll(host, '***'), redact(text));

/** An IPv4 address of a loopback, private (RFC 1918), shared (RFC 6598) or link-local range. */
const BYTE = '(?:25[0-5]|2[0-4]\\d|1?\\d?\\d)';

const PRIVATE_V4 = `(?<![\\w.])(?:(?:10|127)\\.${BYTE}|172\\.(?:1[6-9]|2\\d|3[01])|192\\.168|169\\.254|100\\.(?:6[4-9]|[7-9]\\d|1[01]\\d|12[0-7]))\\.${BYTE}\\.${BYTE}(?!\\w|\\.\\w)`;

/** A unique local, link-local or loopback IPv6 address. */
const PRIVATE_V6 = '(?<![\\w:])(?:(?:f[cd][0-9a-f]{2}|fe[89ab][0-9a-f]):[0-9a-f:]{2,40}|::1(?![\\w:.]))';

/** Names that no public DNS resolves, also as the only label of a URL's host. */
const PRIVATE_NAME =
  '(?<![\\w.-])(?:(?:[\\w-]{1,63}\\.){1,20}(?:internal|local|localdomain|lan|corp|intranet|home\\.arpa|svc)|ip(?:-\\d{1,3}){4}|localhost(?=:\\d))(?!\\w|[.-]\\w)';

const ONE_LABEL_URL = '(?<=://)[\\w-]{1,63}(?![\\w.@-]|:[^\\d])';

const PRIVATE = new RegExp(`(?:${PRIVATE_V4}|\\[?${PRIVATE_V6}\\]?|${PRIVATE_NAME}|${ONE_LABEL_URL})(?::\\d{1,5})?`, 'gi');

/** The same for text that an upstream wrote: proxies like to tell which of their machines failed. */
export const hidingAddresses =
  (redact: (text: string) => string) =>
  (text: string): string =>
    redact(text).replace(PRIVATE, '***');
