import { expect, test } from 'vitest';
import { createResponseEntry } from '../../src/responses/request-state.ts';
import { createTurn, ENTRY_BYTES, ResponseStore, type StoredResponse, type Turn } from '../../src/responses/store.ts';

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
