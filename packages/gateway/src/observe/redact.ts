/** Removes secrets, hosts and private addresses from texts before they are logged or sent. */

import type { SecretRegistry } from '../config/secrets.ts';

/** A function that removes the secrets of this process, texts that look like secrets, and partially masked keys. */
export const createRedact =
  (secrets: Pick<SecretRegistry, 'redact'>) =>
  (text: string): string =>
    hidePartialKeys(secrets.redact(text));

/** Most texts have no asterisk, and the pattern backtracks at every character (3 us for a request id). */
const hidePartialKeys = (text: string): string => (text.includes('***') ? text.replace(PARTIAL_KEY, '***') : text);

/**
 * A partially masked key in a message of a provider (`sk-proj-****wxyz`). A run of asterisks is matched from its start
 * only: trying each position would take half an hour for 1 MB of them.
 */
const PARTIAL_KEY = /[\w-]{1,24}\*{3,}[\w-]{0,24}|(?<!\*)\*{3,}[\w-]{1,24}/g;

/** Extends `redact` for texts that clients see: removes the hosts of the operator's upstreams as well. */
export const createHostRedact =
  (redact: (text: string) => string, hosts: () => readonly string[]) =>
  (text: string): string =>
    hosts().reduce((clean, host) => clean.replaceAll(host, '***'), redact(text));

/** Extends `redact` for texts of an upstream: removes private addresses and host names as well. */
export const createAddressRedact =
  (redact: (text: string) => string) =>
  (text: string): string =>
    redact(text).replace(PRIVATE, '***');

const BYTE = '(?:25[0-5]|2[0-4]\\d|1?\\d?\\d)';

/** An IPv4 address of a loopback, private (RFC 1918), shared (RFC 6598) or link-local range. */
const PRIVATE_V4 = `(?<![\\w.])(?:(?:10|127)\\.${BYTE}|172\\.(?:1[6-9]|2\\d|3[01])|192\\.168|169\\.254|100\\.(?:6[4-9]|[7-9]\\d|1[01]\\d|12[0-7]))\\.${BYTE}\\.${BYTE}(?!\\w|\\.\\w)`;

/** A unique local, link-local or loopback IPv6 address. */
const PRIVATE_V6 = '(?<![\\w:])(?:(?:f[cd][0-9a-f]{2}|fe[89ab][0-9a-f]):[0-9a-f:]{2,40}|::1(?![\\w:.]))';

/** Host names that public DNS does not resolve. */
const PRIVATE_NAME =
  '(?<![\\w.-])(?:(?:[\\w-]{1,63}\\.){1,20}(?:internal|local|localdomain|lan|corp|intranet|home\\.arpa|svc)|ip(?:-\\d{1,3}){4}|localhost(?=:\\d))(?!\\w|[.-]\\w)';

/** A URL whose host is a single label. */
const ONE_LABEL_URL = '(?<=://)[\\w-]{1,63}(?![\\w.@-]|:[^\\d])';

const PRIVATE = new RegExp(`(?:${PRIVATE_V4}|\\[?${PRIVATE_V6}\\]?|${PRIVATE_NAME}|${ONE_LABEL_URL})(?::\\d{1,5})?`, 'gi');
