import { isIP } from 'node:net';
import type { HeaderBag } from '@sluice/core';

/**
 * Whether a web page of somebody else asks. Any page open in the operator's browser can call a gateway on the same machine, and would spend
 * the operator's money: browsers say who asks, programs do not.
 */
export function isForeignPage({ origin, host, 'sec-fetch-site': site }: HeaderBag): boolean {
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return true;
  if (origin === undefined) return false;
  return !URL.canParse(origin) || new URL(origin).host !== host;
}

/** Names that nobody can register: they lead where the operator's own network says. */
const PRIVATE_NAME = /^[^.]+$|\.(localhost|local|internal|test|lan|home\.arpa)$/i;

/** What nearly every client says. */
const LOCAL = /^(?:127\.0\.0\.1|localhost)(?::\d{1,5})?$/;

/**
 * Whether somebody else's name leads here. A page can let its own name point to this machine, and is then, to the browser, a page of ours
 * (DNS rebinding); only the name tells.
 */
export function isForeignName(host: string | undefined): boolean {
  if (host !== undefined && LOCAL.test(host)) return false;
  if (host === undefined || !URL.canParse(`http://${host}`)) return host !== undefined;
  const name = new URL(`http://${host}`).hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  return isIP(name) === 0 && !PRIVATE_NAME.test(name);
}
