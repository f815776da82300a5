import { mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readTape } from '@sluice/lab/tape';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Allowance, ByteLog, BytePool } from '../../src/capture/byte-log.ts';
import type { Capture } from '../../src/capture/capture.ts';
import { deriveClientBytes } from '../../src/capture/derive.ts';
import { CaptureFolder } from '../../src/capture/folder.ts';
import { Ring } from '../../src/capture/ring.ts';
import { loadConfig } from '../../src/config/load.ts';
import { framesOf, wholeOf } from '../gateway/dialects.ts';
import { Faultd } from '../gateway/faultd.ts';
import { chunk, LAST_CHUNK, streamHead, whole } from '../gateway/http.ts';
import { KEY, providersAt } from '../gateway/pairs.ts';
import { RawClient, requestText } from '../gateway/raw-client.ts';
import { ask } from '../gateway/start.ts';
import { type Capturing, startCapturing } from './start.ts';

let faultd: Faultd;
let data: string;
let folder: string;
let gateway: Capturing | undefined;

beforeAll(async () => {
  faultd = await Faultd.start();
});

afterAll(() => faultd.stop());

beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), 'sluice-captures-'));
  folder = join(data, 'captures');
  await mkdir(folder);
  faultd.play([{ send: streamHead() }, { send: chunk(framesOf('openai-chat').join('')) }, { send: LAST_CHUNK }]);
});

afterEach(async () => {
  await gateway?.close();
  gateway = undefined;
  await rm(data, { recursive: true, force: true });
});

async function start(capture: object, rest: { keys?: string[]; withFolder?: boolean } = {}): Promise<Capturing> {
  const { keys, withFolder = true } = rest;
  gateway = await startCapturing({
    secrets: [KEY],
    ...(withFolder && { folder }),
    config: { providers: providersAt(faultd), capture, ...(keys && { auth: { keys } }) },
  });
  return gateway;
}

/** Sends one request and resolves with its id when it is captured, or not. */
async function exchange({ url, ended, captures }: Capturing, model = 'mend-openai-chat/m', key?: string): Promise<string> {
  const headers = key === undefined ? {} : { 'x-api-key': key };
  const reply = await ask(url, { client: 'anthropic-messages', model, stream: true, headers });
  expect(reply.status).toBe(200);
  const id = reply.headers['x-sluice-request-id'] ?? '';
  await ended(id);
  await captures.settled();
  return id;
}

const CLIENT_KEY = 'a-key-of-a-client-0123456789';

describe('which exchanges are kept', () => {
  const NOWHERE = { memory: false, disk: false };
  const MEMORY = { memory: true, disk: false };
  const DISK = { memory: false, disk: true };
  const BOTH = { memory: true, disk: true };

  test.each([
    { name: 'by default in memory', capture: {}, expected: MEMORY },
    { name: 'nothing with ring: off', capture: { ring: 'off' }, expected: NOWHERE },
    { name: 'nothing with client keys', capture: {}, keys: [CLIENT_KEY], expected: NOWHERE },
    { name: 'a model', capture: { models: ['mend-openai-chat/m'] }, expected: BOTH },
    { name: 'a model with client keys', capture: { models: ['mend-*'] }, keys: [CLIENT_KEY], expected: DISK },
    { name: 'another model', capture: { ring: 'off', models: ['x*'] }, expected: NOWHERE },
    { name: 'a provider', capture: { ring: 'off', providers: ['mend-openai-chat'] }, expected: DISK },
    { name: 'another provider', capture: { ring: 'off', providers: ['spare-*'] }, expected: NOWHERE },
    { name: 'a key by its name', capture: { ring: 'off', keys: ['key-1'] }, keys: [CLIENT_KEY], expected: DISK },
    { name: 'another key', capture: { ring: 'off', keys: ['alice'] }, keys: [CLIENT_KEY], expected: NOWHERE },
    { name: 'a model without a data folder', capture: { ring: 'off', models: ['*'] }, withFolder: false, expected: MEMORY },
  ])('$name', async ({ capture, keys, withFolder, expected }) => {
    const started = await start(capture, { ...(keys && { keys }), ...(withFolder === false && { withFolder }) });
    const id = await exchange(started, undefined, keys?.[0]);
    const kept = await started.captures.get(id);
    expect({
      memory: kept !== undefined && started.captures.status().memoryBytes > 0,
      disk: (await readdir(folder)).length > 0,
    }).toEqual({
      ...expected,
    });
    expect(started.failures).toEqual([]);
  });

  test('client keys that a reload adds drop the captures in memory', async () => {
    const { captures, ...rest } = await start({});
    const id = await exchange({ captures, ...rest });
    expect(await captures.get(id)).toBeDefined();
    const { capture } = loadCaptureOptions();
    captures.configure(capture, true);
    expect(await captures.get(id)).toBeUndefined();
    expect(captures.status().memoryBytes).toBe(0);
  });
});

const loadCaptureOptions = () => loadConfig('sluice.json', '{"log":{}}', {}).options;

describe('stored captures', () => {
  test('are read again as they were', async () => {
    const started = await start({ models: ['*'] });
    const id = await exchange(started);
    const kept = await started.captures.get(id);
    const [name = ''] = await readdir(folder);
    const stored = await (await CaptureFolder.open(folder, Date.now)).get(name);
    expect(stored).toEqual(kept);
    expect(stored && deriveClientBytes(stored)).toMatchObject({ is: 'equal', isPrefix: false });
    expect(kept).toMatchObject({
      requestId: id,
      protocol: 'anthropic-messages',
      model: 'mend-openai-chat/m',
      request: { method: 'POST', path: '/v1/messages' },
      attempts: [
        { provider: 'mend-openai-chat', protocol: 'openai-chat', request: { path: '/v1/chat/completions' }, end: 'complete' },
      ],
      response: { status: 200, isStream: true },
    });
    const { reads = [], body = [] } = kept?.attempts[0]?.response ?? {};
    expect(reads.reduce((sum, [, bytes]) => sum + bytes, 0)).toBe(body.length);
  });

  test('are tapes of the client, and of every attempt', async () => {
    const started = await start({ models: ['*'] });
    await exchange(started);
    const [id = ''] = await readdir(folder);
    const facts = JSON.parse(await readFile(join(folder, id, 'capture.json'), 'utf8'));
    expect(facts).toMatchObject({ capture: 1, id, is_truncated: false, limits: { tool_calls: 128 } });
    expect(facts.attempts[0]).toMatchObject({ start_ms: expect.any(Number), conversion: { pass_request: expect.any(String) } });
    const [client] = await readTape(folder);
    expect(client).toMatchObject({ protocol: 'anthropic-messages', isStream: true, ending: 'complete' });
    const [upstream] = await readTape(join(folder, id, 'upstream-1'));
    expect(upstream).toMatchObject({ protocol: 'openai-chat', model: 'm', isStream: true, ending: 'complete' });
    expect(Buffer.from((await upstream?.response?.readBody()) ?? []).toString()).toBe(framesOf('openai-chat').join(''));
  });

  test('can be read by the owner only', async () => {
    const started = await start({ models: ['*'] });
    await exchange(started);
    expect((await stat(folder)).mode & 0o777).toBe(0o700);
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      const { mode } = await stat(join(entry.parentPath, entry.name));
      expect(mode & 0o777, entry.name).toBe(entry.isDirectory() ? 0o700 : 0o600);
    }
  });

  test('that are cut are ignored, and leftovers of a crash are removed', async () => {
    const started = await start({ ring: 'off', models: ['*'] });
    await exchange(started);
    await exchange(started);
    const [cut = '', whole = ''] = await readdir(folder);
    await truncate(join(folder, cut, 'response.sse'), 10);
    await writeFile(join(folder, '.00000000-0000-4000-8000-000000000000.part'), 'x');
    await writeFile(join(folder, 'notes.txt'), 'not ours');
    const opened = await CaptureFolder.open(folder, Date.now);
    expect(await opened.get(cut)).toBeUndefined();
    expect(await opened.get(whole)).toBeDefined();
    expect((await readdir(folder)).toSorted()).toEqual([cut, whole, 'notes.txt'].toSorted());
    const listed = await started.captures.list();
    expect(listed.map(({ id }) => id)).toEqual([whole]);
  });

  test('are deleted by age and by size, the oldest first', async () => {
    const started = await start({ models: ['*'] });
    const first = await started.captures.get(await exchange(started));
    if (!first) throw new Error('not captured');
    const own = join(folder, 'own');
    let now = Date.parse('2026-11-17T00:00:00Z');
    const opened = await CaptureFolder.open(own, () => now);
    const limits = { retentionMs: 60_000, maxBytes: 1e9 };
    const save = async (digit: number, maxBytes = 1e9): Promise<void> => {
      now += 1000;
      await opened.save({ ...first, id: idOf(digit), at: new Date(now).toISOString() }, { ...limits, maxBytes });
    };
    await save(1);
    const size = opened.bytes;
    await save(2);
    await save(3, size * 2 + 10);
    expect(opened.listIds()).toEqual([idOf(3), idOf(2)]);
    expect(await readdir(own)).toEqual([idOf(2), idOf(3)]);
    expect(opened.bytes).toBeLessThanOrEqual(size * 2 + 10);
    now += 59_500;
    await opened.sweep(limits);
    expect(opened.listIds()).toEqual([idOf(3)]);
  });

  test('that cannot be written are counted and delay no response', async () => {
    await rm(folder, { recursive: true });
    await writeFile(folder, 'a file in place of the folder');
    const started = await start({ models: ['*'] });
    expect(started.failures).toHaveLength(1);
    expect(await started.captures.get(await exchange(started))).toBeDefined();
  });

  test('have one writer: the folder of another gateway is left alone until that has ended', async () => {
    const first = await start({ ring: 'off', models: ['*'] });
    await exchange(first);
    const [kept = ''] = first.captures.listIds();
    const unfinished = join(folder, `.${idOf(1)}.part`);
    await writeFile(unfinished, 'the first writes it just now');
    const config = { providers: providersAt(faultd), capture: { ring: 'off', models: ['*'] } };
    const second = await startCapturing({ folder, config });
    const idle = await startCapturing({ folder, config: { ...config, capture: {} } });
    try {
      expect(second.failures).toEqual([expect.stringContaining(`another gateway stores its captures in "${folder}"`)]);
      expect(idle.failures).toEqual([]);
      expect(await second.captures.get(await exchange(second))).toBeDefined();
      expect((await readdir(folder)).toSorted()).toEqual([`.${idOf(1)}.part`, kept].toSorted());
      await first.close();
      gateway = undefined;
      const { capture } = loadConfig('sluice.json', JSON.stringify(config), {}).options;
      second.captures.configure(capture, false);
      await second.captures.settled();
      await exchange(second);
      expect(second.failures).toHaveLength(1);
      expect(second.captures.status().stored).toBe(2);
      expect(await readdir(folder)).toHaveLength(2);
    } finally {
      await second.close();
      await idle.close();
    }
  });

  test('an export has one side', async () => {
    const started = await start({});
    const id = await exchange(started);
    expect(await started.captures.exportTape(id, join(folder, 'client'))).toBe(true);
    expect(await started.captures.exportTape(id, join(folder, 'upstream'), 1)).toBe(true);
    expect(await started.captures.exportTape('unknown', join(folder, 'unknown'))).toBe(false);
    await expect(started.captures.exportTape(id, join(folder, 'second'), 2)).rejects.toThrow('has 1 attempts, not 2');
    expect((await readTape(folder)).map(({ protocol }) => protocol)).toEqual(['anthropic-messages', 'openai-chat']);
  });

  test('ids that are not ids name no folder', async () => {
    const started = await start({ models: ['*'] });
    const capture = await started.captures.get(await exchange(started));
    const opened = await CaptureFolder.open(join(folder, 'own'), Date.now);
    if (!capture) throw new Error('not captured');
    await expect(opened.save({ ...capture, id: '../x' }, { retentionMs: 1, maxBytes: 1 })).rejects.toThrow('no valid id');
    expect(await opened.get('../x')).toBeUndefined();
  });
});

const idOf = (digit: number): string => `00000000-0000-7000-8000-00000000000${digit}`;

describe('memory', () => {
  test('a long stream is truncated, and the client receives all of it', async () => {
    const started = await start({ exchange_bytes: '6kB' });
    const text = 'x'.repeat(1000);
    const frame = `data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"${text}"},"finish_reason":null}]}\n\n`;
    const [first = '', ...rest] = framesOf('openai-chat');
    faultd.play([
      { send: streamHead() },
      ...[first, ...Array.from({ length: 20 }, () => frame), ...rest].map((part) => ({ send: chunk(part) })),
      { send: LAST_CHUNK },
    ]);
    const reply = await ask(started.url, { client: 'anthropic-messages', model: 'mend-openai-chat/m', stream: true });
    expect(reply.body.length).toBeGreaterThan(20_000);
    const id = reply.headers['x-sluice-request-id'] ?? '';
    await started.ended(id);
    await started.captures.settled();
    const capture = await started.captures.get(id);
    expect(capture?.isTruncated).toBe(true);
    expect(capture?.response?.body.length).toBeLessThan(6000);
    expect(reply.body.subarray(0, capture?.response?.body.length)).toEqual(capture?.response?.body);
    expect(capture && deriveClientBytes(capture)).toMatchObject({ is: 'equal', isPrefix: true });
  });

  test('a request that does not fit is dropped', async () => {
    const started = await start({ exchange_bytes: 100 });
    const capture = await started.captures.get(await exchange(started));
    expect(capture).toMatchObject({ isTruncated: true, request: { body: Buffer.alloc(0) } });
    expect(capture && deriveClientBytes(capture)).toEqual({ is: 'unknown', reason: 'the request is not in the capture' });
  });

  test('running exchanges share a pool and give it back', () => {
    const pool = new BytePool(1000);
    const [a, b] = [new Allowance(pool, 900), new Allowance(pool, 900)];
    expect([a.take(800), b.take(300), b.take(200), a.take(101)]).toEqual([true, false, true, false]);
    a.release();
    expect(b.take(700)).toBe(true);
  });

  test('small parts count with their overhead, and nothing follows a part that did not fit', () => {
    const log = new ByteLog(new Allowance(new BytePool(1e6), 1000));
    for (let i = 0; i < 1000; i++) log.push(Buffer.from('x'), i);
    expect(log.count).toBe(30);
    log.push(Buffer.alloc(0), 0);
    expect(log.take().body.toString()).toBe('x'.repeat(30));
  });

  test('parts are copied', () => {
    const log = new ByteLog(new Allowance(new BytePool(1e6), 1000));
    const shared = Buffer.from('abc');
    log.push(shared, 0);
    shared.fill('z');
    expect(log.take().body.toString()).toBe('abc');
  });

  test('the ring keeps the newest by count and by bytes', async () => {
    const started = await start({});
    const capture = await started.captures.get(await exchange(started));
    if (!capture) throw new Error('not captured');
    const add = (ring: Ring, count: number): string[] => {
      for (let i = 1; i <= count; i++) ring.add({ ...capture, id: idOf(i), requestId: `r${i}` });
      return ring.list().map(({ id }) => id);
    };
    expect(add(new Ring({ count: 2, bytes: 1e9 }), 5)).toEqual([idOf(5), idOf(4)]);
    const one = new Ring();
    one.add(capture);
    const ring = new Ring({ count: 100, bytes: one.bytes * 3 });
    expect(add(ring, 5)).toEqual([idOf(5), idOf(4), idOf(3)]);
    expect(ring.bytes).toBe(one.bytes * 3);
    expect(ring.get('r4')?.id).toBe(idOf(4));
    ring.add({ ...capture, id: idOf(9), request: { ...capture.request, body: new Uint8Array(one.bytes * 4) } });
    expect(ring.get(idOf(9))).toBeUndefined();
  });
});

describe('secrets', () => {
  const PASTED = 'sk-ant-canaryPasted0123456789abcdef';
  const COOKIE = 'canary-cookie-0123456789abcdef';
  const QUERY_KEY = 'canary-query-0123456789abcdef';
  const HEADER_KEY = 'canary-header-0123456789abcdef';
  const SECRETS = [KEY, PASTED, COOKIE, QUERY_KEY, HEADER_KEY];

  const FORMS = SECRETS.flatMap((secret) => {
    const bytes = Buffer.from(secret);
    return [secret, encodeURIComponent(secret), bytes.toString('hex'), bytes.toString('base64').slice(0, 24)];
  });

  const echo = [KEY, HEADER_KEY, COOKIE, QUERY_KEY]
    .flatMap((secret) => [secret, Buffer.from(secret).toString('base64'), Buffer.from(secret).toString('hex')])
    .join(' ');

  /** Everything that a capture holds, as text. */
  const dump = (capture: Capture): string =>
    JSON.stringify(capture, (_, value: unknown) =>
      value instanceof Uint8Array || (typeof value === 'object' && value !== null && 'type' in value && value.type === 'Buffer')
        ? Buffer.from(value as Uint8Array).toString('latin1')
        : value,
    );

  const body = JSON.stringify({ contents: [{ role: 'user', parts: [{ text: `my keys are ${PASTED} and ${KEY}` }] }] });
  const answer = {
    id: 'a',
    model: 'm',
    created: 1,
    content: [{ type: 'text' as const, text: echo }],
    stop_reason: 'end_turn' as const,
  };

  const SCRIPTS = {
    'a stream': [
      { send: streamHead({ 'set-cookie': KEY, 'x-request-id': `id-${KEY}` }) },
      { send: chunk(framesOf('openai-chat', answer).join('')) },
      { send: LAST_CHUNK },
    ],
    'a whole response': [{ send: whole(200, wholeOf('openai-chat', answer), { 'x-request-id': KEY }) }],
    'an error': [{ send: whole(400, JSON.stringify({ error: { message: echo, type: 'x' } })) }],
    'an error page': [{ send: whole(500, `<html>${echo}</html>`, { 'content-type': 'text/html' }) }],
  };

  test.each(Object.entries(SCRIPTS))('are in no capture: %s', async (_, script) => {
    const started = await start({ models: ['*'] });
    for (const verb of ['streamGenerateContent?alt=sse&', 'generateContent?']) {
      faultd.play(script);
      const client = await RawClient.open(started.url);
      const headers = { authorization: `Bearer ${HEADER_KEY}`, cookie: `session=${COOKIE}`, 'x-vendor-token': HEADER_KEY };
      const path = `/v1beta/models/mend-openai-chat%2Fm:${verb}key=${QUERY_KEY}`;
      const reply = await client.send(requestText('POST', path, headers, body)).reply();
      client.leave();
      const id = reply.headers['x-sluice-request-id'] ?? '';
      await started.ended(id);
      await started.captures.settled();
      const capture = await started.captures.get(id);
      if (!capture) throw new Error('not captured');
      expect(capture.attempts.length).toBeGreaterThan(0);
      expect(capture.isRedacted).toBe(true);
      const text = dump(capture);
      for (const form of FORMS) expect(text.includes(form), `${form} in ${text}`).toBe(false);
    }
    const files = await readdir(folder, { recursive: true, withFileTypes: true });
    expect(files.filter((entry) => entry.isFile()).length).toBeGreaterThan(8);
    for (const entry of files.filter((one) => one.isFile())) {
      const text = await readFile(join(entry.parentPath, entry.name), 'latin1');
      for (const form of FORMS) expect(text.includes(form), `${form} in ${entry.name}`).toBe(false);
    }
  });

  test('an exchange with more credentials than can be removed is not kept', async () => {
    const started = await start({ models: ['*'] });
    const client = await RawClient.open(started.url);
    const cookie = Array.from({ length: 300 }, (_, index) => `c${index}=canary-${index}-0123456789`).join('; ');
    const request = JSON.stringify({ model: 'mend-openai-chat/m', messages: [{ role: 'user', content: 'hi' }], stream: true });
    const reply = await client.send(requestText('POST', '/v1/chat/completions', { cookie }, request)).reply();
    client.leave();
    expect(reply.status).toBe(200);
    const id = reply.headers['x-sluice-request-id'] ?? '';
    await started.ended(id);
    await started.captures.settled();
    expect(await started.captures.get(id)).toBeUndefined();
    expect(started.failures).toHaveLength(1);
    expect(await readdir(folder)).toEqual([]);
  });
});
