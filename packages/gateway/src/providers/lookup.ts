/** Lookups in the table of known providers. */

import type { ProviderRow } from './row.ts';
import { PROVIDERS, type ProviderId } from './table.ts';

/** Ids of all known providers, in the order of the table. */
export const PROVIDER_IDS: readonly ProviderId[] = Object.keys(PROVIDERS) as ProviderId[]; // the type has exactly these keys

/** Every variable that may hold a key or token of a known provider. */
export const KEY_VARIABLES: ReadonlySet<string> = new Set(
  Object.values<ProviderRow>(PROVIDERS).flatMap(({ key_env, token_env = [] }) => [...key_env, ...token_env]),
);

/** The row with this id; undefined for an id that is not in the table. */
export function findRow(id: string): ProviderRow | undefined {
  return Object.hasOwn(PROVIDERS, id) ? PROVIDERS[id as ProviderId] : undefined; // checked by hasOwn, which does not narrow
}

/** The id under which core knows a row's profile. */
export const findProfileId = (id: string): string => findRow(id)?.vendor ?? id;

/** Ids of all rows of the same vendor, which share a key. */
export function listVendorRows(vendor: string): readonly ProviderId[] {
  return PROVIDER_IDS.filter((id) => findProfileId(id) === findProfileId(vendor));
}

/** Whether an address belongs to the vendor; the vendor's key is not sent to any other. */
export function isOwnAddress({ base_url, resource }: ProviderRow, address: string): boolean {
  const { origin, protocol, hostname } = new URL(address);
  if (base_url !== undefined) return new URL(base_url).origin === origin;
  return protocol === 'https:' && (resource?.domains ?? []).some((domain) => hostname.endsWith(`.${domain}`));
}
