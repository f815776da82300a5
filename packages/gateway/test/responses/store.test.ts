import { describe, expect, test } from 'vitest';
import { createResponseEntry } from '../../src/responses/request-state.ts';
import { ENTRY_BYTES, ResponseStore, type StoredConversation, type StoredResponse } from '../../src/responses/store.ts';
import { createTurn, joinResponse, splitResponse, type Turn } from '../../src/responses/turns.ts';

// Limits of the store: by bytes, by key and by time.

const KIB = 1024;

interface Fixture {
  store: ResponseStore;
  clock: { at: number };
  add(caller: string, id: string, size?: number, parent?: Turn): StoredResponse;
}

function create({ maxBytes = 1000 * KIB, maxBytesPerKey = 100 * KIB, ttlMs = 1000 } = {}): Fixture {
  const clock = { at: 0 };
  const store = new ResponseStore({ maxBytes, maxBytesPerKey, ttlMs }, { now: () => clock.at });
  const add = (caller: string, id: string, size = KIB, parent?: Turn): StoredResponse => {
    const turn = createTurn({ key: id, parent, input: 'x'.repeat(size), body: '', ids: [`item_${id}`], holder: '' });
    const entry = createResponseEntry({ id, caller, holder: '', body: '', turn });
    void store.put(entry);
    return entry;
  };
  return { store, clock, add };
}

test('an entry is found by its key alone', () => {
  const { store, add } = create();
  const entry = add('a', 'resp_1');
  expect(store.find('response', 'resp_1', 'a')).toBe(entry);
  expect(store.find('response', 'resp_1', 'b')).toBeUndefined();
  expect(store.find('conversation', 'resp_1', 'a')).toBeUndefined();
  expect([store.isForeign('resp_1', 'b'), store.isForeign('resp_1', 'a'), store.isForeign('resp_2', 'b')]).toEqual([
    true,
    false,
    false,
  ]);
  expect(store.findItem('item_resp_1', 'a')).toMatchObject({ index: 0 });
  expect(store.findItem('item_resp_1', 'b')).toBeUndefined();
});

test('two keys may have the same id', () => {
  const { store, add } = create();
  const [one, two] = [add('a', 'resp_1'), add('b', 'resp_1')];
  expect([store.find('response', 'resp_1', 'a'), store.find('response', 'resp_1', 'b')]).toEqual([one, two]);
  store.remove(one);
  expect(store.find('response', 'resp_1', 'a')).toBeUndefined();
  expect(store.find('response', 'resp_1', 'b')).toBe(two);
});

test('the bytes of a key stay below its limit; others keep theirs', () => {
  const { store, add } = create();
  add('quiet', 'resp_q');
  for (let i = 0; i < 1000; i++) {
    add('busy', `resp_${i}`, 3 * KIB);
    expect(store.bytesOf('busy')).toBeLessThanOrEqual(100 * KIB);
  }
  expect(store.find('response', 'resp_999', 'busy')).toBeDefined();
  expect(store.find('response', 'resp_0', 'busy')).toBeUndefined();
  expect(store.find('response', 'resp_q', 'quiet')).toBeDefined();
});

test('the bytes of all keys stay below the limit, and the least recently used goes first', () => {
  const { store, add } = create({ maxBytes: 50 * KIB });
  add('a', 'resp_old', 5 * KIB);
  add('b', 'resp_used', 5 * KIB);
  for (let i = 0; i < 500; i++) {
    add(`key ${i % 40}`, `resp_${i}`, 5 * KIB);
    store.find('response', 'resp_used', 'b');
    expect(store.bytes).toBeLessThanOrEqual(50 * KIB);
  }
  expect(store.find('response', 'resp_old', 'a')).toBeUndefined();
  expect(store.find('response', 'resp_used', 'b')).toBeDefined();
});

test('a conversation of 10,000 turns is kept once', () => {
  const { store, add } = create({ maxBytes: 64 * KIB * KIB, maxBytesPerKey: 64 * KIB * KIB });
  let parent: Turn | undefined;
  for (let i = 0; i < 10_000; i++) parent = add('a', `resp_${i}`, 100, parent).turn;
  expect(store.bytes).toBeLessThan(10_000 * (100 + 1100));
  expect(parent?.totalItems).toBe(10_000);
  for (const entry of [...store.entries]) store.remove(entry);
  expect([store.bytes, store.size, store.findItem('item_resp_5', 'a')]).toEqual([0, 0, undefined]);
});

test('what a later response needs stays when the earlier one is removed', () => {
  const { store, add } = create();
  const first = add('a', 'resp_1');
  const second = add('a', 'resp_2', KIB, first.turn);
  const before = store.bytes;
  store.remove(first);
  expect(store.find('response', 'resp_1', 'a')).toBeUndefined();
  expect(second.turn?.parent).toBe(first.turn);
  expect(store.bytes).toBe(before - ENTRY_BYTES);
  store.remove(second);
  expect(store.bytes).toBe(0);
});

test('an entry expires some time after its last use', () => {
  const { store, clock, add } = create({ ttlMs: 1000 });
  add('a', 'resp_1');
  add('a', 'resp_2');
  clock.at = 900;
  expect(store.find('response', 'resp_1', 'a')).toBeDefined();
  clock.at = 1800;
  expect(store.find('response', 'resp_1', 'a')).toBeDefined();
  expect(store.find('response', 'resp_2', 'a')).toBeUndefined();
  clock.at = 2900;
  expect([store.find('response', 'resp_1', 'a'), store.bytes, store.size]).toEqual([undefined, 0, 0]);
});

test('an item in use keeps its response', () => {
  const { store, clock, add } = create({ ttlMs: 1000 });
  add('a', 'resp_1');
  clock.at = 900;
  store.findItem('item_resp_1', 'a');
  clock.at = 1800;
  expect(store.find('response', 'resp_1', 'a')).toBeDefined();
});

test('a response that is in progress is not removed', () => {
  const { store, clock } = create({ ttlMs: 1000, maxBytesPerKey: 2 * KIB });
  const entry = createResponseEntry({ id: 'resp_1', caller: 'a', holder: '', body: '{}', turn: undefined });
  entry.isPinned = true;
  void store.put(entry);
  clock.at = 5000;
  expect(store.find('response', 'resp_1', 'a')).toBe(entry);
  expect(store.grow(entry, 10 * KIB)).toBe(false);
  expect(store.find('response', 'resp_1', 'a')).toBe(entry);
  entry.isPinned = false;
  clock.at = 9000;
  expect(store.find('response', 'resp_1', 'a')).toBeUndefined();
});

test('a response that is larger than the limit is not kept', () => {
  const { store, add } = create({ maxBytesPerKey: 10 * KIB });
  add('a', 'resp_1', 20 * KIB);
  expect([store.find('response', 'resp_1', 'a'), store.bytes]).toEqual([undefined, 0]);
});

const grow = (add: Fixture['add'], prefix: string, count: number, size = KIB): StoredResponse[] => {
  const entries: StoredResponse[] = [];
  for (let i = 0; i < count; i++) entries.push(add('a', `${prefix}_${i}`, size, entries.at(-1)?.turn));
  return entries;
};

const findAll = (store: ResponseStore, entries: readonly StoredResponse[]): string[] =>
  entries.filter((entry) => store.has(entry)).map(({ id }) => id);

test('a conversation that grows removes others, never itself', () => {
  const { store, add } = create({ maxBytesPerKey: 60 * KIB });
  const other = grow(add, 'other', 5);
  const own = grow(add, 'own', 25);
  expect(findAll(store, own)).toHaveLength(25);
  expect(findAll(store, other).length).toBeLessThan(5);
  const [next] = grow((caller, id, size) => add(caller, id, size, own.at(-1)?.turn), 'next', 1, 3 * KIB);
  expect(next && store.has(next)).toBe(true);
});

test('a response that does not fit beside its conversation is removed alone', () => {
  const { store, add } = create({ maxBytesPerKey: 60 * KIB });
  const own = grow(add, 'own', 20);
  const large = add('a', 'large', 50 * KIB, own.at(-1)?.turn);
  expect(store.has(large)).toBe(false);
  expect(findAll(store, own)).toHaveLength(20);
  expect(store.bytesOf('a')).toBeLessThanOrEqual(60 * KIB);
});

test('a conversation is removed from its end, and its beginning stays usable meanwhile', () => {
  const { store, clock, add } = create({ maxBytesPerKey: 30 * KIB });
  const old = grow(add, 'old', 10);
  clock.at = 10;
  for (let i = 0; i < 12; i++) {
    add('a', `new_${i}`);
    const left = findAll(store, old);
    expect(left).toEqual(old.slice(0, left.length).map(({ id }) => id));
  }
  expect(findAll(store, old).length).toBeLessThan(10);
});

test('all entries of a conversation go when its room is needed, the last and the conversation itself too', () => {
  const { store, add } = create({ maxBytesPerKey: 30 * KIB });
  const entries = grow(add, 'own', 10);
  const conversation: StoredConversation = {
    ...{ kind: 'conversation', id: 'conv', caller: 'a', createdAt: 0, metadata: {}, head: entries.at(-1)?.turn },
    ...{ deleted: new Set<string>(), bytes: ENTRY_BYTES, usedAt: 0, isPinned: false },
  };
  void store.put(conversation);
  const large = add('a', 'large', 27 * KIB);
  expect([store.size, store.has(large)]).toEqual([1, true]);
});

test('what a running request refers to stays until it ends', () => {
  const { store, clock, add } = create({ maxBytesPerKey: 20 * KIB, ttlMs: 1000 });
  const held = add('a', 'held', 5 * KIB);
  const [one, two] = [store.hold([held]), store.hold([held, held])];
  for (let i = 0; i < 30; i++) add('a', `resp_${i}`, 5 * KIB);
  clock.at = 5000;
  store.expire();
  one();
  one();
  for (let i = 0; i < 30; i++) add('a', `more_${i}`, 5 * KIB);
  expect(store.has(held)).toBe(true);
  two();
  for (let i = 0; i < 30; i++) add('a', `last_${i}`, 5 * KIB);
  expect(store.has(held)).toBe(false);
});

describe('fields that responses repeat', () => {
  const tools = [{ type: 'function', name: 'f', description: 'x'.repeat(40 * KIB) }];

  test('are kept once for a key', () => {
    const { store } = create({ maxBytesPerKey: 200 * KIB });
    const put = (caller: string, id: string, parent?: Turn): StoredResponse => {
      const response = { id, object: 'response', tools, status: 'completed', output: [{ type: 'message' }] };
      const turn = createTurn({ key: id, parent, input: '[]', ...splitResponse(response), ids: [''], holder: '' });
      const entry = createResponseEntry({ id, caller, holder: '', body: '', turn });
      void store.put(entry);
      expect(joinResponse(turn)).toEqual(response);
      return entry;
    };
    const entries: StoredResponse[] = [];
    for (let i = 0; i < 100; i++) entries.push(put('a', `resp_${i}`, entries.at(-1)?.turn));
    expect(store.size).toBe(100);
    put('b', 'resp_b');
    expect(store.bytesOf('b')).toBeGreaterThan(40 * KIB);
    for (const entry of entries.reverse()) store.remove(entry);
    expect(store.bytesOf('a')).toBe(0);
  });

  test('output and short fields are not among them', () => {
    const output = [{ type: 'message', content: 'x'.repeat(1000) }];
    const { body, fields } = splitResponse({ id: 'r', model: 'm', output, instructions: 'y'.repeat(1000) });
    expect(JSON.parse(body)).toEqual({ id: 'r', model: 'm', output });
    expect(fields.map(({ name }) => name)).toEqual(['instructions']);
  });
});
