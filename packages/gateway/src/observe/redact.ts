import type { SecretRegistry } from '../config/secret.ts';

/** Providers show keys half hidden (`sk-proj-****wxyz`): whose key it is, is still nobody's business. */
const HALF_HIDDEN = /[\w-]{1,24}\*{3,}[\w-]{0,24}|\*{3,}[\w-]{1,24}/g;

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
