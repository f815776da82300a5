/** Objects that providers keep for clients: files, batches and the like. Each belongs to the key that made it. */

import type { StateRequest } from '../exchange/state.ts';
import { createObjectNotFound } from './errors.ts';
import { isJson, parse } from './items.ts';
import type { ResponseStore } from './store.ts';

/** The object that a request is about. `id` is undefined for one that creates an object. */
export interface ObjectRequest {
  id: string | undefined;
}

/**
 * The provider that keeps the object; undefined when that is not known. Throws the same error for an object of another
 * key as for an unknown one, unless the operator lets all keys share what providers keep.
 */
export function checkObject(
  store: ResponseStore,
  { id }: ObjectRequest,
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

/** Throws for a body that names an object of another key. A body that only mentions an id in a text is not affected. */
export function checkNamedObjects(store: ResponseStore, text: string, caller: string): void {
  if (!store.hasObjects) return;
  for (const [, one, list = ''] of text.matchAll(NAMED)) {
    const ids = one === undefined ? list.split(',').map((id) => id.trim().replace(/^"|"$/g, '')) : [one];
    // Gemini names a file by its address.
    for (const id of ids) checkNamed(store, id.split('/').at(-1) ?? '', caller);
  }
}

function checkNamed(store: ResponseStore, id: string, caller: string): void {
  if (store.isForeign(id, caller)) throw createObjectNotFound(id);
}

/** Fields that name objects of providers: `file_id`, `input_file_id`, `file_ids`, `fileUri` and the like. */
const NAMED =
  /"(?:input_)?(?:file|batch|container|vector_store)_?(?:[iI]ds?|[uU]ri)"\s{0,8}:\s{0,8}(?:"([^"\\]{1,512})"|\[([^\]]{0,8192})\])/g;

/** The id of the object that a response describes: `id`, or the last segment of Gemini's `name`. */
export function readObjectId(body: Buffer): string | undefined {
  const value = parse(body.toString('utf8'));
  if (!isJson(value)) return undefined;
  const object = isJson(value['file']) ? value['file'] : value;
  const { id, name } = object;
  if (typeof id === 'string' && id !== '') return id;
  return typeof name === 'string' && name !== '' ? name.split('/').at(-1) : undefined;
}
