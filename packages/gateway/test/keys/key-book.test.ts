import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { tried } from '../../../../test/tries.ts';
import { UNLIMITED } from '../../src/keys/caller.ts';
import { Gatekeeper } from '../../src/keys/gatekeeper.ts';
import { KeyBook, type KeyBookOptions } from '../../src/keys/key-book.ts';
import { createKeyText } from '../../src/keys/key-text.ts';
import { Pepper } from '../../src/keys/pepper.ts';
import type { KeyRecord, KeyStore } from '../../src/keys/records.ts';
import { openStore, openStoreReader, type Store } from '../../src/store/index.ts';
import { TestClock } from '../gateway/test-clock.ts';
import { createFolder, createTables, describeEngines, type Engine } from '../store/ledger-fixture.ts';

const DAY = 86_400_000;

const closers: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function openFolder(folder: string | null, engine: Engine = 'SQLite'): Promise<Store> {
  const url = engine === 'PostgreSQL' ? await createTables() : undefined;
  const store = await openStore({ folder, url, ballastBytes: 0 });
  closers.push(() => store.close());
  return store;
}

async function openBook(store: KeyStore, options: Partial<KeyBookOptions> = {}): Promise<KeyBook> {
  const book = await KeyBook.open({ store, pepperFile: null, requiresPepper: true, clock: new TestClock(), ...options });
  closers.push(() => book.close());
  return book;
}

const bearer = (text: string) => ({ authorization: `Bearer ${text}` });

/** What a client with this key is told. */
const knock = (book: KeyBook, text: string): string => {
  const admission = new Gatekeeper([], book).admit(bearer(text), '/v1/chat/completions');
  return admission.admitted ? `admitted ${admission.caller.name}` : admission.reason;
};

describeEngines('a key on %s', (engine) => {
  test('is found by its text, with its policy and tags, and by no other text', async () => {
    const book = await openBook(await openFolder(null, engine));
    expect(new Gatekeeper([], book).isOpen).toBe(true);
    const { record, text } = await book.create('alice', { models: 'gpt-*', tags: ['team=a'] }, 'cli');
    const gatekeeper = new Gatekeeper([], book);
    expect(gatekeeper.isOpen).toBe(false);
    const caller = { id: record.id, name: 'alice', tags: ['team=a'], policy: { ...UNLIMITED, models: ['gpt-*'] } };
    expect(gatekeeper.admit(bearer(text), '/v1/models')).toEqual({ admitted: true, caller });
    expect(gatekeeper.admit({ 'x-api-key': text }, '/')).toEqual({ admitted: true, caller });
    expect(gatekeeper.admit({ 'x-goog-api-key': text }, '/')).toEqual({ admitted: true, caller });
    expect(gatekeeper.admit({}, `/v1beta/models?key=${text}`)).toEqual({ admitted: true, caller });
    expect(gatekeeper.admit({}, `/v1/chat/completions?key=${text}`).admitted).toBe(false);
    // The right id with another secret, and another id.
    expect(knock(book, createKeyText(record.id).text)).toMatch(/^invalid client key;/);
    expect(knock(book, createKeyText().text)).toMatch(/^invalid client key;/);
  });

  test('expires, by the clock', async () => {
    let now = Date.now();
    const book = await openBook(await openFolder(null, engine), { now: () => now });
    const { text, record } = await book.create('alice', { expires: '90d' }, 'cli');
    now += 90 * DAY - 1;
    expect(knock(book, text)).toBe('admitted alice');
    now += 1;
    expect(knock(book, text)).toMatch(/^client key "alice" expired at 20/);
    // Only the holder of the secret learns it.
    expect(knock(book, createKeyText(record.id).text)).toMatch(/^invalid client key;/);
    await book.edit('alice', { expires: null }, 'cli');
    expect(knock(book, text)).toBe('admitted alice');
  });

  test('is rotated: both secrets work for the overlap, then the new one only', async () => {
    let now = Date.now();
    const book = await openBook(await openFolder(null, engine), { now: () => now });
    const first = await book.create('alice', {}, 'cli');
    const second = await book.rotate('alice', DAY, 'cli');
    expect(second.record.id).toBe(first.record.id);
    now += DAY - 1;
    expect([knock(book, first.text), knock(book, second.text)]).toEqual(['admitted alice', 'admitted alice']);
    now += 1;
    expect(knock(book, first.text)).toBe('client key "alice" was rotated; use its new secret');
    const third = await book.rotate('alice', 0, 'cli');
    expect(knock(book, second.text)).toBe('client key "alice" was rotated; use its new secret');
    expect(knock(book, first.text)).toMatch(/^invalid client key;/);
    expect(knock(book, third.text)).toBe('admitted alice');
  });

  test('is revoked at once, and the gateway stays closed after the last one', async () => {
    const book = await openBook(await openFolder(null, engine));
    const { text, record } = await book.create('alice', {}, 'cli');
    await book.revoke('alice', false, 'cli');
    expect(knock(book, text)).toBe('client key "alice" was revoked; request a new one');
    expect(knock(book, createKeyText(record.id).text)).toMatch(/^invalid client key;/);
    expect(new Gatekeeper([], book).isOpen).toBe(false);
    expect(new Gatekeeper([], book).admit({}, '/').admitted).toBe(false);
    await expect(book.rotate(record.id, 0, 'cli')).rejects.toMatchObject({ code: 'revoked' });
    await expect(book.rotate('alice', 0, 'cli')).rejects.toMatchObject({ code: 'unknown' });
    // Its name is free again.
    const next = await book.create('alice', {}, 'cli');
    expect(book.find('alice')?.id).toBe(next.record.id);
    expect(book.find(record.id)?.revoked_ts).not.toBeNull();
  });

  test('has a name that no other has, also when both are created at the same time', async () => {
    const book = await openBook(await openFolder(null, engine), { isTaken: (name) => name === 'key-1' });
    const results = await Promise.allSettled(['a', 'a', 'b', 'key-1'].map((name) => book.create(name, {}, 'cli')));
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'rejected']);
    await expect(book.edit('b', { name: 'a' }, 'cli')).rejects.toMatchObject({ code: 'exists' });
    await book.edit('b', { name: 'c' }, 'cli');
    expect([book.find('b'), book.find('c')?.name]).toEqual([undefined, 'c']);
  });

  test('that cannot be written is not admitted and leaves nothing behind', async () => {
    const store = await openFolder(null, engine);
    const failing: KeyStore = Object.assign(Object.create(store), {
      saveKey: () => Promise.reject(new Error('disk full')),
      listKeys: () => store.listKeys(),
      createId: () => store.createId(),
    });
    const book = await openBook(failing);
    await expect(book.create('alice', {}, 'cli')).rejects.toThrow('disk full');
    expect([book.isUsed, book.count]).toEqual([false, 0]);
  });
});

describe('10,000 keys', () => {
  const pepper = new Pepper();
  const issued = Array.from({ length: 10_000 }, () => createKeyText());
  const records = issued.map(
    ({ id, text }, index): KeyRecord => ({
      ...{ id, name: `key${index}`, digest: pepper.digest(text).toString('hex'), pepper: pepper.fingerprint },
      ...{ previous_digest: null, previous_until: null, policy: UNLIMITED, tags: [], created_ts: index, rotated_ts: null },
      ...{ revoked_ts: index % 2 === 0 ? null : 1, last_used_ts: null },
    }),
  );

  /** A store that counts what is read from it. */
  function createSpy() {
    const reads: string[] = [];
    const spy: KeyStore = {
      listKeys: async () => {
        reads.push('listKeys');
        return records;
      },
      listAudit: async () => ({ entries: [], next: null }),
      createId: () => ({ id: '1', ts: 1 }),
      saveKey: async () => void reads.push('saveKey'),
      touchKeys: async () => void reads.push('touchKeys'),
      addAudit: async () => void reads.push('addAudit'),
      shared: undefined,
    };
    return { spy, reads };
  }

  async function openMany() {
    const { spy, reads } = createSpy();
    const folder = createFolder();
    const file = join(folder, 'pepper');
    // The pepper that made the digests has no text, so the test makes the digests again with that of a file.
    writeFileSync(file, `${'ab'.repeat(32)}\n`);
    const own = new Pepper(Buffer.alloc(32, 0xab));
    for (const [index, record] of records.entries())
      records[index] = { ...record, digest: own.digest(issued[index]?.text ?? '').toString('hex'), pepper: own.fingerprint };
    const book = await openBook(spy, { pepperFile: file });
    reads.length = 0;
    return { book, reads };
  }

  test('are kept apart, and 2,000 fuzzed credentials are refused without a read of the store', async () => {
    tried(2000);
    const { book, reads } = await openMany();
    const gatekeeper = new Gatekeeper(
      [{ key: 'of-the-configuration', caller: { id: 'c', name: 'c', tags: [], policy: UNLIMITED } }],
      book,
    );
    for (const [index, { text }] of issued.entries()) {
      const admission = gatekeeper.admit(bearer(text), '/');
      expect(admission.admitted ? admission.caller.name : 'refused').toBe(index % 2 === 0 ? `key${index}` : 'refused');
    }
    const known = issued[0]?.text ?? '';
    const header = fc.oneof(
      fc.string(),
      fc.string({ unit: 'binary' }),
      fc.constant('a'.repeat(65_536)),
      fc.constantFrom(
        "' OR '1'='1",
        '\0',
        'Bearer',
        '%%%%',
        '__proto__',
        'constructor',
        '[object Object]',
        '"; DROP TABLE client_keys; --',
      ),
      fc.nat(known.length - 1).map((at) => `${known.slice(0, at)}!${known.slice(at + 1)}`),
      fc.constant(0).map(() => createKeyText(known.slice(7, 23)).text),
      fc.constant(0).map(() => createKeyText().text),
    );
    const name = fc.constantFrom('authorization', 'x-api-key', 'x-goog-api-key', 'api-key');
    fc.assert(
      fc.property(name, header, fc.boolean(), (field, value, isBearer) => {
        const headers = { [field]: isBearer || field === 'authorization' ? `Bearer ${value}` : value };
        return !gatekeeper.admit(headers, '/v1/chat/completions').admitted;
      }),
      { numRuns: 2000 },
    );
    expect(reads).toEqual([]);
  });

  test('take as long to check as one', async () => {
    const { book } = await openMany();
    const gatekeeper = new Gatekeeper([], book);
    const headers = issued.filter((_, index) => index % 2 === 0).map(({ text }) => bearer(text));
    const measure = (): number => {
      const started = performance.now();
      for (const header of headers.slice(0, 200)) gatekeeper.admit(header, '/');
      return ((performance.now() - started) / 200) * 1000;
    };
    // The best of many: on a busy machine most are interrupted.
    const micros = Math.min(...Array.from({ length: 50 }, measure));
    // Far above the cost of a checksum and an HMAC, far below a look at every key.
    expect(micros).toBeLessThan(500);
  });
});

describe('the store', () => {
  test('keeps keys across a restart, with when they were used, and has no secret in any file', async () => {
    const folder = createFolder();
    const pepperFile = join(folder, 'pepper');
    const store = await openStore({ folder, ballastBytes: 0 });
    const book = await KeyBook.open({ store, pepperFile, requiresPepper: true });
    expect(existsSync(pepperFile)).toBe(false);
    const first = await book.create('alice', { budget: '20usd/month' }, 'key');
    const second = await book.rotate('alice', DAY, 'key');
    await book.create('bob', {}, 'key');
    await book.revoke('bob', true, 'session');
    expect(knock(book, second.text)).toBe('admitted alice');
    await book.close();
    await store.backup(join(folder, 'copy.backup'));
    await store.close();

    const again = await openFolder(folder);
    const loaded = await openBook(again, { pepperFile });
    expect([knock(loaded, first.text), knock(loaded, second.text)]).toEqual(['admitted alice', 'admitted alice']);
    const alice = loaded.find('alice');
    expect(alice?.policy.budgets).toEqual([{ micros: 20_000_000, period: 'month' }]);
    expect(Date.now() - (alice?.last_used_ts ?? 0)).toBeLessThan(120_000);
    const { entries } = await again.listAudit();
    expect(entries.map(({ action, actor }) => `${action} by ${actor}`)).toEqual([
      'key.revoke by session',
      'key.create by key',
      'key.rotate by key',
      'key.create by key',
    ]);
    expect(entries[3]?.details).toMatchObject({ name: 'alice', budget: ['20usd/month'] });
    const page = await again.listAudit({ limit: 3 });
    expect(page.entries).toHaveLength(3);
    expect((await again.listAudit({ limit: 3, cursor: page.next })).entries.map(({ id }) => id)).toEqual([entries[3]?.id]);

    const pepper = readFileSync(pepperFile, 'utf8').trim();
    expect(statSync(pepperFile).mode & 0o777).toBe(0o600);
    for (const name of readdirSync(folder).filter((file) => file !== 'pepper')) {
      expect(statSync(join(folder, name)).mode & 0o077, name).toBe(0);
      const bytes = readFileSync(join(folder, name));
      for (const { text } of [first, second])
        for (const secret of [text, text.slice(24), text.slice(24, 67), Buffer.from(text).toString('base64').slice(4, -8)])
          expect(bytes.includes(secret), `${name} has a key`).toBe(false);
      expect(bytes.includes(pepper) || bytes.includes(Buffer.from(pepper, 'hex')), `${name} has the pepper`).toBe(false);
    }
  });

  test('keeps when keys were used about every minute, not for every request', async () => {
    const clock = new TestClock();
    const store = await openFolder(null);
    const touched: number[] = [];
    const counting: KeyStore = Object.assign(Object.create(store), {
      createId: () => store.createId(),
      saveKey: (record: KeyRecord, entry: never) => store.saveKey(record, entry, false),
      listKeys: () => store.listKeys(),
      touchKeys: async (uses: readonly unknown[]) => void touched.push(uses.length),
    });
    const book = await openBook(counting, { clock });
    const { text } = await book.create('alice', {}, 'cli');
    for (let i = 0; i < 100; i++) knock(book, text);
    expect(touched).toEqual([]);
    await clock.advance(60_000);
    await clock.advance(60_000);
    expect(touched).toEqual([1]);
  });

  describe.each([
    ['missing', (file: string) => rmSync(file), 'is missing, and 1 client key depends on it'],
    [
      'another one',
      (file: string) => writeFileSync(file, 'cd'.repeat(32)),
      'is not the one that was used before, and 1 client key depends',
    ],
    ['damaged', (file: string) => writeFileSync(file, 'x'), 'is damaged: it must have 64 hexadecimal digits'],
  ])('with a pepper that is %s', (_, spoil, message) => {
    test('refuses to start, and lets the operator revoke the keys and begin again', async () => {
      const folder = createFolder();
      const pepperFile = join(folder, 'pepper');
      const store = await openFolder(folder);
      const book = await openBook(store, { pepperFile });
      await book.create('alice', {}, 'cli');
      spoil(pepperFile);
      await expect(KeyBook.open({ store, pepperFile, requiresPepper: true })).rejects.toThrow(message);
      const repair = await openBook(store, { pepperFile, requiresPepper: false });
      await expect(repair.create('bob', {}, 'cli')).rejects.toMatchObject({ code: 'pepper' });
      await expect(repair.rotate('alice', 0, 'cli')).rejects.toMatchObject({ code: 'pepper' });
      await repair.revoke('alice', false, 'cli');
      if (message.includes('damaged')) rmSync(pepperFile);
      const next = await openBook(store, { pepperFile });
      const { text } = await next.create('alice', {}, 'cli');
      expect(knock(next, text)).toBe('admitted alice');
    });
  });

  test('of a folder can be read while a gateway owns it', async () => {
    const folder = createFolder();
    const store = await openFolder(folder);
    const book = await openBook(store, { pepperFile: join(folder, 'pepper') });
    await book.create('alice', {}, 'cli');
    const reader = await openStoreReader(folder);
    expect((await reader.listKeys()).map(({ name }) => name)).toEqual(['alice']);
    expect((await reader.listAudit()).entries).toHaveLength(1);
    await reader.close();
  });

  test.each(["'; DROP TABLE client_keys; --", '%', '\0', '"', '\ud800', '$1', '?'])(
    'takes %j as a value in every text',
    async (text) => {
      const store = await openFolder(null);
      const { record } = await (await openBook(store)).create('alice', {}, 'cli');
      const entry = { ...store.createId(), actor: 'cli', action: text, object: text, details: { text } } as const;
      await store.saveKey({ ...record, id: text, name: `${text}n`, tags: [text] }, entry, false);
      await store.touchKeys([[text, 5]]);
      const keys = await store.listKeys();
      expect(keys.map(({ name }) => name)).toContain('alice');
      expect(keys).toHaveLength(2);
      expect((await store.listAudit()).entries).toHaveLength(2);
      expect((await store.listAudit({ cursor: text })).entries.length).toBeLessThanOrEqual(2);
    },
  );
});
