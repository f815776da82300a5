import { isIPv4, isIPv6 } from 'node:net';
import type { HeaderBag } from '@sluice/core';
import { safeJson } from '@sluice/lab/text';
import { isLoopback } from '../providers/base-url.ts';
import { refusal } from './refusal.ts';

/**
 * Whether a web page of another origin sent the request. Any page in the operator's browser can call a gateway on the
 * same machine and spend the operator's money. Browsers send these headers, programs do not.
 */
export function isForeignPage({ origin, host, 'sec-fetch-site': site }: HeaderBag): boolean {
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return true;
  if (origin === undefined) return false;
  return !URL.canParse(origin) || new URL(origin).host !== host;
}

/** Hosts that need no further parsing. */
const COMMON_HOST = /^(?:127\.0\.0\.1|localhost)(?::\d{1,5})?$/;

/** The address in brackets, or the name; then the port. */
const HOST = /^(?:\[([\da-f:.]{2,45})\]|([\w.-]{1,255}))(?::\d{0,5})?$/i;

/**
 * Whether the Host header names this machine: `localhost`, a name below it, or a loopback address as it is usually
 * written. A web page can point any other name here and then has the gateway's origin (DNS rebinding). That includes
 * `.local` and names of one label, which any host in the same network can claim.
 */
export function isLoopbackName(host: string): boolean {
  if (COMMON_HOST.test(host)) return true;
  const [, address, name = ''] = HOST.exec(host) ?? [];
  if (address !== undefined) return isIPv6(address) && isLoopback(address);
  return /(?:^|[^.]\.)localhost\.?$/i.test(name) || (isIPv4(name) && isLoopback(name));
}

/** For servers without client keys: throws for a Host header that is not this machine. `remedy` ends the message. */
export function checkHost(host: string | undefined, remedy: string): void {
  // Browsers always send it; HTTP/1.0 clients may omit it.
  if (host === undefined || isLoopbackName(host)) return;
  const shown = safeJson(JSON.stringify(host.slice(0, MAX_SHOWN_LENGTH)));
  throw refusal(403, 'PERMISSION', `Host ${shown} is not allowed${remedy}`);
}

const MAX_SHOWN_LENGTH = 100;
