import type { ProviderRow } from './row.ts';
import { PROVIDERS, type ProviderId } from './table.ts';

export const PROVIDER_IDS: readonly ProviderId[] = Object.keys(PROVIDERS) as ProviderId[]; // keys of the literal above

/** Every variable in which the key or token of a known provider is customarily kept. */
export const KEY_VARIABLES: ReadonlySet<string> = new Set(
  Object.values<ProviderRow>(PROVIDERS).flatMap(({ key_env, token_env = [] }) => [...key_env, ...token_env]),
);

/** The row of that id, or undefined: ids are typed by people. */
export function rowOf(id: string): ProviderRow | undefined {
  return Object.hasOwn(PROVIDERS, id) ? PROVIDERS[id as ProviderId] : undefined; // hasOwn narrows nothing
}

/** The name under which core knows the quirks of a row. */
export const profileIdOf = (id: string): string => rowOf(id)?.vendor ?? id;

/** All the rows of one vendor: the same key opens them. */
export function rowsOf(vendor: string): readonly ProviderId[] {
  return PROVIDER_IDS.filter((id) => profileIdOf(id) === profileIdOf(vendor));
}

/** Whether an address is the vendor's own: the key that is kept for the vendor is not sent to another. */
export function isOwnAddress({ base_url, resource }: ProviderRow, address: string): boolean {
  const { origin, protocol, hostname } = new URL(address);
  if (base_url !== undefined) return new URL(base_url).origin === origin;
  return protocol === 'https:' && (resource?.domains ?? []).some((domain) => hostname.endsWith(`.${domain}`));
}
