import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { CaptureSummary } from '../../src/capture/capture.ts';
import type { Captures } from '../../src/capture/captures.ts';
import { deriveClientBytes } from '../../src/capture/derive.ts';
import { type Running, run } from '../../src/server/run.ts';
import { ask } from '../gateway/start.ts';

let folder: string;
let gateway: Running | undefined;
let lines: string[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-capture-'));
  lines = [];
});

afterEach(async () => {
  await gateway?.close(0);
  await rm(folder, { recursive: true, force: true });
});

async function start(capture: object, data = join(folder, 'data')): Promise<Running> {
  const config = join(folder, 'sluice.json');
  await writeFile(config, JSON.stringify({ listen: { port: 0 }, data, capture, log: { level: 'warn' } }));
  const formatLog = (line: string): string => {
    lines.push(line);
    return '';
  };
  gateway = await run({ config, folder, env: {}, listen: { port: 0 }, formatLog });
  return gateway;
}

test('captures are stored beside the ledger, under the id of the exchange', async () => {
  const { url, captures, store } = await start({ models: ['demo/*'] });
  await ask(url, { client: 'openai-responses', model: 'demo/hello', stream: true });
  await ask(url, { client: 'gemini', model: 'demo/hello', stream: false });
  await gateway?.close();
  const names = (await readdir(join(folder, 'data', 'captures'))).toSorted();
  expect(names).toHaveLength(2);
  for (const name of names) {
    const capture = await captures.get(name);
    expect(capture && deriveClientBytes(capture)).toMatchObject({ is: 'equal', isPrefix: false });
  }
  const listed = await captures.list();
  expect(listed.map(({ id }) => id).toSorted()).toEqual(names);
  expect(listed.every(({ status, ending }) => status === 200 && ending === 'answered')).toBe(true);
  expect(store.folder).toBe(join(folder, 'data'));
  expect(lines).toEqual([]);
});

test('the id of a capture is that of the exchange in the ledger', async () => {
  const { url, captures, store } = await start({});
  const { headers } = await ask(url, { client: 'openai-chat', model: 'demo/hello', stream: true });
  const [summary] = await eventually(captures);
  const { exchanges } = await store.list();
  expect(exchanges.map(({ id, request_id }) => ({ id, request_id }))).toEqual([
    { id: summary?.id, request_id: headers['x-sluice-request-id'] },
  ]);
  expect(summary).toMatchObject({ place: 'memory', requestId: headers['x-sluice-request-id'], attempts: 1 });
});

/** The first list that is not empty: exchanges are captured right after the client has its response. */
async function eventually(captures: Captures): Promise<CaptureSummary[]> {
  for (;;) {
    const list = await captures.list();
    if (list.length > 0) return list;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test('a folder that cannot be used is logged once, and responses are sent', async () => {
  const data = join(folder, 'data');
  const { url, close } = await start({ models: ['*'] }, data);
  await close();
  await rm(join(data, 'captures'), { recursive: true });
  await writeFile(join(data, 'captures'), '');
  lines = [];
  const { url: again } = await start({ models: ['*'] }, data);
  expect(again).not.toBe(url);
  for (let i = 0; i < 3; i++)
    expect((await ask(again, { client: 'openai-chat', model: 'demo/hello', stream: false })).status).toBe(200);
  expect(lines.filter((line) => line.includes('could not be captured'))).toHaveLength(1);
});

test('capture.keys needs no warning, because keys have names', async () => {
  const { state } = await start({ keys: ['alice'] });
  expect(state.warnings).toEqual([]);
});
