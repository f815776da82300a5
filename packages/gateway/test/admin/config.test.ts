import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ADMIN_KEY, startAdmin, type TestGateway, withKey } from './start.ts';

let gateway: TestGateway;
const headers = withKey(ADMIN_KEY);
const CONFIG = { listen: { host: '127.0.0.1', port: 0 }, admin: { key: 'env:ADMIN' }, log: { level: 'debug' } };

beforeAll(async () => {
  gateway = await startAdmin({ config: CONFIG, env: { ADMIN: ADMIN_KEY } });
});

afterAll(() => gateway.stop());

const write = (config: object | string): void =>
  writeFileSync(join(gateway.folder, 'sluice.json'), typeof config === 'string' ? config : `${JSON.stringify(config)}\n`);

test('settings have their origins, also after a reload', async () => {
  const read = async (path: string) => {
    const { json } = await gateway.call('config/settings', { headers });
    return json.settings.find((setting: { path: string }) => setting.path === path);
  };
  expect(await read('admin.key')).toMatchObject({ value: null, reference: 'env:ADMIN', origin: 'environment' });
  expect(await read('data')).toMatchObject({ value: 'memory', origin: 'flag' });
  expect(await read('affinity')).toMatchObject({ value: '5m', origin: 'default' });
  write({ ...CONFIG, affinity: '7m' });
  await gateway.reload();
  expect(await read('affinity')).toMatchObject({ value: '7m', origin: 'file' });
});

test('settings that wait for a restart are shown as they are in force', async () => {
  const reload = async (config: object) => {
    write({ ...CONFIG, ...config });
    await gateway.reload();
    const { settings } = (await gateway.call('config/settings', { headers })).json;
    const { reloads } = (await gateway.call('config/reloads', { headers })).json;
    const find = (path: string) => settings.find((setting: { path: string }) => setting.path === path)?.value;
    return { streams: find('limits.streams'), affinity: find('affinity'), restart: reloads[0].restart };
  };
  expect(await reload({ limits: { streams: 2 } })).toEqual({ streams: '2000', affinity: '5m', restart: ['limits'] });
  // Another change does not put it in force.
  const both = { limits: { streams: 2 }, affinity: '7m' };
  expect(await reload(both)).toEqual({ streams: '2000', affinity: '7m', restart: ['limits'] });
  expect(await reload({ affinity: '7m' })).toEqual({ streams: '2000', affinity: '7m', restart: [] });
});

test('reloads are listed with what caused them, and why they were rejected', async () => {
  write({ ...CONFIG, affinity: 'never' });
  await gateway.reload();
  const { json } = await gateway.call('config/reloads', { headers });
  expect(json.reloads[0]).toMatchObject({
    ok: false,
    by: 'signal',
    reason: expect.stringContaining('affinity: must be a duration'),
  });
  expect(json.reloads.at(-1)).toMatchObject({ ok: true, by: 'start', reason: null });
  write({ ...CONFIG, time_zone: 'Europe/Berlin' });
  const readLast = async () => (await gateway.call('config/reloads', { headers })).json.reloads[0];
  await expect.poll(readLast).toMatchObject({ ok: true, by: 'file', restart: ['time_zone'] });
});

test('a pasted file is checked and changes nothing', async () => {
  const check = (text: string) => gateway.call('config/validate', { method: 'POST', headers, body: { text } });
  expect((await check('log: { level: info }')).json).toMatchObject({ valid: true, problems: [] });
  const { json } = await check('log:\n  level: loud\n');
  expect(json).toMatchObject({ valid: false, problems: [{ severity: 'error', path: 'log.level', line: 2, column: 10 }] });
  const { settings } = (await gateway.call('config/settings', { headers })).json;
  expect(settings).toContainEqual(expect.objectContaining({ path: 'log.level', value: 'debug' }));
});

test('a text that takes long to check holds up no other request', async () => {
  const text = `models:\n${Array.from({ length: 1500 }, (_, i) => `  m${i}: "\${V${i}}"`).join('\n')}\n`;
  const check = () => gateway.call('config/validate', { method: 'POST', headers, body: { text } });
  let isDone = false;
  const slow = check().finally(() => {
    isDone = true;
  });
  for (let i = 0; i < 5; i++) expect((await gateway.call('whoami', { headers })).status).toBe(200);
  expect(isDone).toBe(false);
  expect(await check()).toMatchObject({ status: 503, json: { detail: expect.stringContaining('another configuration') } });
  expect([200, 503]).toContain((await slow).status);
}, 30_000);

test('a text that is too long is refused, at 64 KiB and before it is read', async () => {
  for (const [length, status] of [
    [64 * 1024, 200],
    [64 * 1024 + 1, 400],
    [512 * 1024, 413],
  ] as const)
    expect(
      (await gateway.call('config/validate', { method: 'POST', headers, body: { text: `#${'x'.repeat(length - 1)}` } })).status,
    ).toBe(status);
});

test('local programs without a key see no settings', async () => {
  const open = await startAdmin();
  try {
    expect((await open.call('config')).status).toBe(200);
    for (const path of ['config/settings', 'config/reloads']) expect((await open.call(path)).status).toBe(403);
  } finally {
    await open.stop();
  }
});

test('clients need a key as soon as the store has one', async () => {
  const own = await startAdmin({ config: CONFIG, env: { ADMIN: ADMIN_KEY } });
  const read = async () => (await own.call('clients', { headers })).json.needs_key;
  expect(await read()).toBe(false);
  await own.call('keys', { method: 'POST', headers, body: { name: 'alice' } });
  expect(await read()).toBe(true);
  await own.stop();
});

test('the audit log is filtered by text', async () => {
  const find = async (text: string) => {
    const { json } = await gateway.call(`audit?text=${encodeURIComponent(text)}`, { headers });
    return json.entries.map(({ action }: { action: string }) => action);
  };
  await gateway.call('keys', { method: 'POST', headers, body: { name: 'bob' } });
  expect(await find('BOB')).toEqual(['key.create']);
  expect(new Set(await find('key.create'))).toEqual(new Set(['key.create']));
  expect(await find("'; DROP TABLE audit_log; --")).toEqual([]);
  expect(await find('%')).toEqual([]);
});
