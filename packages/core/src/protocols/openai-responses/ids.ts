import { deriveId } from '../../accumulate/derive-id.ts';

/** What the ids of items begin with; the API refuses others in a history (P23). */
export type ItemPrefix = 'msg' | 'rs' | 'fc' | 'ctc' | 'ig' | 'apc' | 'sh' | 'lsh' | 'tsc' | 'item';

/** Ids that we made for items which came without one. No provider knows them. */
const MARK = 'sl';
const DERIVED = /^[a-z]+_sl_[0-9a-f]{24}$/;
const MAX_ID = 64;

/** The id of an item that can be sent to a provider: of the right kind, and not one of ours. */
export function replayableId(id: unknown, prefix: ItemPrefix): string | undefined {
  if (typeof id !== 'string' || id.length > MAX_ID || DERIVED.test(id)) return undefined;
  return id.startsWith(`${prefix}_`) && /^[A-Za-z0-9_-]+$/.test(id) ? id : undefined;
}

export const isDerivedId = (id: unknown): boolean => typeof id === 'string' && DERIVED.test(id);

/** The ids of the items of one response. Clients refuse two items with one id, and two calls of one kind with one call id. */
export class ItemIds {
  readonly #seed: string;
  readonly #items = new Set<string>();
  readonly #calls = new Set<string>();

  /** Derived ids are made from the id of the response and their number: the same answer has the same ids. */
  constructor(seed: string) {
    this.#seed = seed;
  }

  item(wanted: unknown, prefix: ItemPrefix): string {
    const named = typeof wanted === 'string' && wanted !== '' ? wanted : undefined;
    return this.#unused(named, this.#items, (salt) => deriveId(`${prefix}_${MARK}_`, this.#seed, this.#items.size, salt));
  }

  /** `kind`: items of one type. */
  call(wanted: string, kind: string): string {
    const derive = (salt: number): string => deriveId('call_', this.#seed, this.#calls.size, salt);
    const taken = this.#unused(wanted === '' ? undefined : `${kind} ${wanted}`, this.#calls, (salt) => `${kind} ${derive(salt)}`);
    return taken.slice(kind.length + 1);
  }

  #unused(wanted: string | undefined, used: Set<string>, derive: (salt: number) => string): string {
    let id = wanted;
    for (let salt = 0; id === undefined || used.has(id); salt++) id = derive(salt);
    used.add(id);
    return id;
  }
}
