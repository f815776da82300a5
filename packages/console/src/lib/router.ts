/** The address of what is shown: `#/exchanges?filter=…&id=…`. It is in the fragment, so no server or log sees filters. */

import { signal } from '@preact/signals';

/** A page and its parameters. */
export interface Route {
  readonly page: string;
  readonly parameters: Readonly<Record<string, string>>;
}

/** Reads the fragment of an address. */
export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split(/\?(.*)/s, 2);
  return { page: path, parameters: Object.fromEntries(new URLSearchParams(query)) };
}

/** Writes the fragment of an address. Empty parameters are left out. */
export function formatRoute({ page, parameters }: Route): string {
  const given = Object.entries(parameters).filter(([, value]) => value !== '');
  const query = new URLSearchParams(given).toString();
  return `#/${page}${query === '' ? '' : `?${query}`}`;
}

/** What is shown now. */
export const route = signal<Route>(parseRoute(''));

/** Follows the address. */
export function startRouter(): void {
  const follow = (): void => {
    route.value = parseRoute(location.hash);
  };
  addEventListener('hashchange', follow);
  follow();
}

/** Changes parameters of this page, without an entry in the history. Empty values remove a parameter. */
export function setParameters(changes: Readonly<Record<string, string>>): void {
  const { page, parameters } = route.value;
  const changed = { page, parameters: { ...parameters, ...changes } };
  history.replaceState(null, '', formatRoute(changed));
  route.value = parseRoute(location.hash);
}
