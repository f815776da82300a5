/** Objects that providers keep for clients: files, batches and the like. Each belongs to the key that made it. */

import type { NamedObject } from '../exchange/known-endpoints.ts';
import type { NamedId } from '../exchange/object-fields.ts';
import type { StateRequest } from '../exchange/state.ts';
import type { ProviderEndpoint } from '../exchange/types.ts';
import { createObjectNotFound } from './errors.ts';
import { ENTRY_BYTES, type ResponseStore } from './store.ts';

/**
 * The provider that keeps the object; undefined when that is not known. Throws the same error for an object of another
 * key as for an unknown one, unless the operator lets all keys share what providers keep.
 */
export function checkObject(
  store: ResponseStore,
  { id }: NamedObject,
  caller: string,
  { directory, route }: Pick<StateRequest, 'directory' | 'route'>,
): string | undefined {
  if (id === undefined) return undefined;
  const known = store.find('object', id, caller);
  if (known) return known.provider;
  const settings = new Set(directory.providersFor(route.client.id).map(({ passthrough }) => passthrough));
  // Without `known` and `all`, the request is refused by the setting.
  const isBound = settings.has('known') && !settings.has('all') && !directory.gatekeeper.isOpen;
  if (isBound || store.isForeign(id, caller)) throw createObjectNotFound(id);
  return undefined;
}

/** Who may use what a request names. */
export interface Ownership {
  readonly store: ResponseStore;
  readonly caller: string;
  /** Only what is known to belong to the key may be used: keys share an account of the provider. */
  readonly isBound: boolean;
}

/** Whether keys may only use what they are known to own at the providers that may get a request. */
export const isBoundAt = (
  { gatekeeper }: Pick<StateRequest['directory'], 'gatekeeper'>,
  endpoints: readonly Pick<ProviderEndpoint, 'passthrough'>[],
): boolean => !gatekeeper.isOpen && (endpoints.length === 0 || endpoints.some(({ passthrough }) => passthrough !== 'all'));

/** Whether there is anything that a request of this key may not name. */
export const isRestricted = ({ store, caller, isBound }: Ownership): boolean => isBound || store.hasOthers(caller);

/** Throws for an id that the key may not use, as for one that does not exist. */
export function checkNamedIds(ids: Iterable<NamedId>, { store, caller, isBound }: Ownership): void {
  for (const { id, mayBeName } of ids) {
    if (store.use(id, caller)) continue;
    if ((isBound && !mayBeName) || store.isForeign(id, caller)) throw createObjectNotFound(id);
  }
}

/** Notes who has some objects, and which provider keeps them. */
export function rememberObjects(store: ResponseStore, ids: readonly string[], caller: string, provider: string): void {
  // Only the latest provider of an id is known; what is known already is written again only when that changes.
  for (const id of new Set(ids.slice(0, MAX_REMEMBERED)))
    if (store.find('object', id, caller)?.provider !== provider)
      void store.put({ kind: 'object', id, caller, provider, bytes: ENTRY_BYTES, usedAt: 0, isPinned: false });
}

/** Objects of one response: real ones have a few. */
const MAX_REMEMBERED = 1000;
