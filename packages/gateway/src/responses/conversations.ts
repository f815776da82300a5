/** The endpoints of `/v1/conversations`. */

import { createConversationNotFound, createInvalid } from './errors.ts';
import { createId, isJson, type Json, listItems, listTurns, type NamedItem, nameItems, paginate, toListed } from './items.ts';
import type { StateCall } from './keeper.ts';
import { measureConversation, type ResponseStore, type StoredConversation } from './store.ts';
import { createTurn, describeItems } from './turns.ts';

/** Creates, reads and changes conversations. */
export class ConversationEndpoints {
  readonly #store: ResponseStore;

  constructor(store: ResponseStore) {
    this.#store = store;
  }

  /** The body of the response, or `pass` for a conversation that only a provider can know (`mayPass`). */
  async serve(call: StateCall, mayPass: () => boolean): Promise<unknown> {
    const [id, list, item, more] = call.rest;
    if (id === undefined) {
      if (call.method !== 'POST') throw createConversationNotFound('');
      return this.#create(await call.readBody(), call.caller);
    }
    const isKnownPath = more === undefined && (list === undefined || list === 'items');
    const found = isKnownPath ? this.#store.find('conversation', id, call.caller) : undefined;
    if (!found) {
      if (!this.#store.isForeign(id, call.caller) && mayPass()) return 'pass';
      throw createConversationNotFound(id);
    }
    if (list === undefined) return this.#serveOne(found, call);
    return item === undefined ? this.#serveItems(found, call) : this.#serveItem(found, item, call);
  }

  async #create({ metadata, items }: Json, caller: string): Promise<Json> {
    const conversation: StoredConversation = {
      kind: 'conversation',
      id: createId('conv'),
      caller,
      createdAt: Math.floor(Date.now() / 1000),
      metadata: metadata ?? {},
      head: undefined,
      deleted: new Set(),
      bytes: measureConversation(metadata),
      usedAt: 0,
      isPinned: false,
    };
    await this.#store.put(conversation);
    if (Array.isArray(items) && items.length > 0) await this.#append(conversation, items);
    return describe(conversation);
  }

  async #serveOne(conversation: StoredConversation, { method, readBody }: StateCall): Promise<Json> {
    switch (method) {
      case 'GET':
        return describe(conversation);
      case 'POST': {
        const { metadata } = await readBody();
        conversation.metadata = metadata ?? {};
        this.#store.grow(conversation, measureConversation(metadata) - conversation.bytes);
        await this.#store.save(conversation);
        return describe(conversation);
      }
      case 'DELETE':
        this.#store.remove(conversation);
        return { id: conversation.id, object: 'conversation.deleted', deleted: true };
      default:
        throw createConversationNotFound(conversation.id);
    }
  }

  async #serveItems(conversation: StoredConversation, { method, query, readBody }: StateCall): Promise<Json> {
    if (method === 'GET') return paginate(listAll(conversation), query, conversation.deleted);
    const { items } = await readBody();
    if (method !== 'POST' || !Array.isArray(items))
      throw createInvalid('items: must be a list of items', 'items', 'invalid_type');
    const added = await this.#append(conversation, items);
    return {
      object: 'list',
      data: added.map(toListed),
      first_id: added[0]?.id ?? null,
      last_id: added.at(-1)?.id ?? null,
      has_more: false,
    };
  }

  async #serveItem(conversation: StoredConversation, id: string, { method }: StateCall): Promise<unknown> {
    const found = findItem(conversation, id);
    if (!found) throw createInvalid(`Item with id '${id.slice(0, 100)}' not found in this conversation.`, 'item_id', 'not_found');
    if (method !== 'DELETE') return toListed(found);
    conversation.deleted.add(id);
    await this.#store.save(conversation);
    return describe(conversation);
  }

  /** Adds items as a turn of their own. */
  async #append(conversation: StoredConversation, items: readonly unknown[]): Promise<NamedItem[]> {
    if (items.length > MAX_ADDED) throw createInvalid(`items: at most ${MAX_ADDED} items can be added at once`, 'items', null);
    const ids = nameItems(items);
    const { text: input, ...facts } = describeItems(items);
    const turn = createTurn({ key: createId('turn'), parent: conversation.head, input, body: '', ids, holder: '', ...facts });
    await this.#store.setTurn(conversation, turn);
    return items.map((item, i) => ({ id: ids[i] ?? '', item }));
  }
}

/** The API accepts 20. */
const MAX_ADDED = 20;

const describe = ({ id, createdAt, metadata }: StoredConversation): Json => ({
  id,
  object: 'conversation',
  created_at: createdAt,
  metadata: isJson(metadata) ? metadata : {},
});

const listAll = ({ head }: StoredConversation): NamedItem[] => listItems(listTurns(head));

const findItem = (conversation: StoredConversation, id: string): NamedItem | undefined =>
  conversation.deleted.has(id) ? undefined : listAll(conversation).find((item) => item.id === id);
