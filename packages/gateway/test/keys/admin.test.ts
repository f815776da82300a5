import { chmodSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseKeyId } from '../../src/keys/key-text.ts';
import { run } from '../../src/server/run.ts';
import {
  ADMIN_KEY,
  type Answer,
  type CallOptions,
  CLIENT_KEY,
  converse,
  startAdmin,
  type TestGateway,
  withKey,
} from '../admin/start.ts';
import { eventually } from '../gateway/start.ts';

let gateway: TestGateway;

beforeAll(async () => {
  const config = { admin: { key: ADMIN_KEY }, auth: { keys: [{ name: 'file-key', key: CLIENT_KEY, tags: 'from=file' }] } };
  gateway = await startAdmin({ config, isPersistent: true });
});

afterAll(() => gateway.stop());

const call = (path: string, options: CallOptions = {}): Promise<Answer> =>
  gateway.call(path, { ...options, headers: { ...withKey(ADMIN_KEY), ...options.headers } });

const create = async (name: string, settings: object = {}): Promise<{ id: string; secret: string }> => {
  const { status, json } = await call('keys', { method: 'POST', body: { name, ...settings } });
  expect(status, JSON.stringify(json)).toBe(200);
  return { id: json.key.id, secret: json.secret };
};

// One gateway, which has the keys of the tests before.
describe('the admin API', { shuffle: false }, () => {
  test('creates a key whose secret is shown once and opens the gateway', async () => {
    const settings = {
      models: ['demo/hello'],
      budget: '20usd/month',
      rpm: 60,
      tpm: '100k',
      concurrency: 8,
      expires: '90d',
      tags: 'team=a',
    };
    const { status, json, headers } = await call('keys', {
      method: 'POST',
      body: { name: 'alice', ip: ['127.0.0.0/8'], ...settings },
    });
    expect([status, headers['cache-control']]).toEqual([200, 'no-store']);
    expect(parseKeyId(json.secret)).toBe(json.key.id);
    expect(json.is_persistent).toBe(true);
    expect(json.key).toMatchObject({
      name: 'alice',
      state: 'active',
      models: ['demo/hello'],
      budget: ['20usd/month'],
      rpm: 60,
      tpm: 100_000,
    });
    expect((await converse(gateway.url, 'demo/hello', withKey(json.secret))).status).toBe(200);
    expect((await converse(gateway.url, 'gpt-5', withKey(json.secret))).status).toBe(403);
    for (const path of ['keys', `keys/${json.key.id}`, 'keys/alice', 'audit', 'config'])
      expect((await call(path)).text).not.toContain(json.secret.slice(24));
    const row = await eventually(async () => (await call('exchanges?limit=1')).json.exchanges[0]);
    expect(await row).toMatchObject({ key_id: json.key.id, key_name: 'alice', tags: ['team=a'] });
    expect(gateway.lines.join('')).not.toContain(json.secret.slice(24));
  });

  test('names the exchanges of keys of the configuration', async () => {
    await converse(gateway.url, 'demo/hello', { ...withKey(CLIENT_KEY), 'x-sluice-tags': 'x=y' });
    const { json } = await call('exchanges?limit=1');
    expect(json.exchanges[0]).toMatchObject({ key_id: 'file-key', key_name: 'file-key', tags: ['from=file', 'x=y'] });
  });

  test('changes, rotates and revokes a key', async () => {
    const { id, secret } = await create('bob', { rpm: 5 });
    const edited = await call('keys/bob', { method: 'PATCH', body: { rpm: null, models: 'demo/hello', name: 'bobby' } });
    expect(edited.json).toMatchObject({ id, name: 'bobby', rpm: null, models: ['demo/hello'] });
    const rotated = await call(`keys/${id}/rotate`, { method: 'POST', body: { overlap: '0' } });
    expect((await converse(gateway.url, 'demo/hello', withKey(secret))).status).toBe(401);
    expect((await converse(gateway.url, 'demo/hello', withKey(rotated.json.secret))).status).toBe(200);
    const revoked = await call(`keys/${id}?now=true`, { method: 'DELETE' });
    expect(revoked.json).toMatchObject({ id, state: 'revoked' });
    expect((await converse(gateway.url, 'demo/hello', withKey(rotated.json.secret))).status).toBe(401);
    expect((await call(`keys/${id}`)).json.state).toBe('revoked');
    expect((await call('keys/bobby')).status).toBe(404);
    const { json } = await call('audit?limit=4');
    expect(json.entries.map(({ action, object, actor }: Record<string, string>) => [action, object, actor])).toEqual(
      ['key.revoke', 'key.rotate', 'key.edit', 'key.create'].map((action) => [action, id, 'key']),
    );
  });

  test('lists keys by pages and by state', async () => {
    for (const name of ['p1', 'p2', 'p3']) await create(name);
    const names: string[] = [];
    for (let cursor = ''; ; ) {
      const { json } = await call(`keys?limit=2&state=active${cursor === '' ? '' : `&cursor=${cursor}`}`);
      names.push(...json.keys.map(({ name }: { name: string }) => name));
      if (json.next === null) break;
      cursor = json.next;
    }
    expect(names).toEqual(['alice', 'p1', 'p2', 'p3']);
    expect((await call('keys?state=revoked')).json.keys.map(({ name }: { name: string }) => name)).toEqual(['bobby']);
  });

  test.each<[string, string, CallOptions, number, string]>([
    ['a name that exists', 'keys', { method: 'POST', body: { name: 'alice' } }, 409, 'there is a key with the name'],
    ['a name of the file', 'keys', { method: 'POST', body: { name: 'file-key' } }, 409, 'the configuration has a key'],
    ['a bad name', 'keys', { method: 'POST', body: { name: 'a b' } }, 400, 'name: must have'],
    ['no name', 'keys', { method: 'POST', body: {} }, 400, 'name: '],
    ['a bad budget', 'keys', { method: 'POST', body: { name: 'x', budget: '20' } }, 400, 'budget: must be an amount'],
    ['an unknown setting', 'keys', { method: 'POST', body: { name: 'x', modles: [] } }, 400, 'modles'],
    ['a number as name', 'keys', { method: 'POST', body: { name: 5 } }, 400, 'name: '],
    ['another type', 'keys', { method: 'POST', raw: 'a=b', headers: { 'content-type': 'text/plain' } }, 415, 'application/json'],
    ['an unknown key', 'keys/nobody', {}, 404, 'no key has the name or id'],
    ['an unknown key to edit', 'keys/nobody', { method: 'PATCH', body: { rpm: 1 } }, 404, 'no key has'],
    ['an unknown key to rotate', 'keys/nobody/rotate', { method: 'POST', body: {} }, 404, 'no key has'],
    ['an unknown key to revoke', 'keys/nobody', { method: 'DELETE' }, 404, 'no key has'],
    ['a bad overlap', 'keys/alice/rotate', { method: 'POST', body: { overlap: 'long' } }, 400, 'overlap: must be a duration'],
    ['a bad state', 'keys?state=all', {}, 400, 'must be one of active'],
    ['a bad switch', 'keys/alice?now=1', { method: 'DELETE' }, 400, 'must be one of true'],
    ['an injection as id', `keys/${encodeURIComponent("' OR 1=1 --")}`, {}, 404, 'no key has'],
    ['wildcards as id', 'keys/%25%25', {}, 404, 'no key has'],
    ['an injection as cursor', `audit?cursor=${encodeURIComponent("' OR 1=1")}`, {}, 400, 'must be `next`'],
    ['a prototype as id', 'keys/__proto__', {}, 404, 'no key has'],
  ])('refuses %s', async (_, path, options, status, text) => {
    const answer = await call(path, options);
    expect([answer.status, answer.json.detail]).toEqual([status, expect.stringContaining(text)]);
  });

  test('writes logins and backups to the audit log', async () => {
    await gateway.call('session', { method: 'POST', body: { token: gateway.issueConsoleToken() } });
    await call('backup', { method: 'POST' });
    const { json } = await call('audit?limit=2');
    expect(json.entries.map(({ action, actor }: Record<string, string>) => `${action} ${actor}`)).toEqual([
      'backup key',
      'session.open session',
    ]);
  });

  test('a session creates keys from a page of the gateway only', async () => {
    const { headers, json } = await gateway.call('session', { method: 'POST', body: { token: gateway.issueConsoleToken() } });
    const cookie = String(headers['set-cookie']).split(';', 1)[0] ?? '';
    const post = (name: string, more: Record<string, string>): Promise<Answer> =>
      gateway.call('keys', { method: 'POST', body: { name }, headers: { cookie, ...more } });
    const csrf = { 'x-sluice-csrf': json.csrf_token };
    expect((await post('console', { ...csrf, 'sec-fetch-site': 'same-origin' })).status).toBe(200);
    expect((await post('forged', { 'sec-fetch-site': 'same-origin' })).status).toBe(403);
    expect((await post('forged', csrf)).status).toBe(403);
    expect((await post('forged', { ...csrf, 'sec-fetch-site': 'cross-site' })).status).toBe(403);
    expect((await post('forged', { ...csrf, origin: 'http://evil.example' })).status).toBe(403);
    expect((await call('audit?limit=1')).json.entries[0]).toMatchObject({ action: 'key.create', actor: 'session' });
  });

  test('a reload of the configuration is in the audit log, and keeps stored keys', async () => {
    const { secret } = await create('stays');
    const file = join(gateway.folder, 'sluice.json');
    const config = JSON.parse(readFileSync(file, 'utf8'));
    writeFileSync(file, `${JSON.stringify({ ...config, capture: { ring: 'off' } })}\n`);
    await gateway.reload();
    await eventually(() => gateway.lines.some((line) => line.includes('configuration reloaded')));
    expect((await converse(gateway.url, 'demo/hello', withKey(secret))).status).toBe(200);
    expect((await call('audit?limit=1')).json.entries[0]).toMatchObject({ action: 'config.reload', actor: 'config' });
  });
});

describe('a gateway without keys in its file', () => {
  test('is open until the first key is created, then closed, also after a restart', async () => {
    const open = await startAdmin({ env: { SLUICE_ADMIN_KEY: ADMIN_KEY }, isPersistent: true });
    const data = join(open.folder, 'data');
    try {
      expect((await converse(open.url)).status).toBe(200);
      expect(readdirSync(data)).not.toContain('pepper');
      const { json } = await open.call('keys', { method: 'POST', headers: withKey(ADMIN_KEY), body: { name: 'first' } });
      expect((await converse(open.url)).status).toBe(401);
      expect((await open.captures.list()).length).toBe(0);
      await open.close(0);
      const options = { folder: open.folder, env: {}, data, formatLog: () => '' };
      // Others may reach a gateway whose only keys are in the store.
      const again = await run({ ...options, listen: { host: '0.0.0.0', port: 0 } });
      const url = again.url.replace('0.0.0.0', '127.0.0.1');
      expect((await converse(url)).status).toBe(401);
      expect((await converse(url, 'demo/hello', withKey(json.secret))).status).toBe(200);
      await again.close(0);
      writeFileSync(join(data, 'pepper'), 'ab'.repeat(32));
      await expect(run({ ...options, listen: { port: 0 } })).rejects.toThrow('auth.pepper_file: the pepper file');
    } finally {
      await open.stop();
    }
  });

  test.each([
    ['emptied', (file: string) => truncateSync(file, 0)],
    ['removed', (file: string) => rmSync(file)],
  ])('admits no client when its database was %s, until a key is created', async (_, lose) => {
    const before = await startAdmin({ env: { SLUICE_ADMIN_KEY: ADMIN_KEY }, isPersistent: true });
    const { folder } = before;
    const data = join(folder, 'data');
    const lines: string[] = [];
    const formatLog = (line: string): string => {
      lines.push(line);
      return '';
    };
    const start = () => run({ folder, env: { SLUICE_ADMIN_KEY: ADMIN_KEY }, data, listen: { port: 0 }, formatLog });
    try {
      const body = { name: 'first' };
      const { json } = await before.call('keys', { method: 'POST', headers: withKey(ADMIN_KEY), body });
      await before.close(0);
      lose(join(data, 'sluice.db'));
      const closed = await start();
      for (const headers of [{}, withKey(json.secret)]) {
        const { status, text } = await converse(closed.url, 'demo/hello', headers);
        expect([status, text]).toEqual([401, expect.stringContaining('has lost its client keys')]);
      }
      expect(lines.join('\n')).toMatch(/"level":"error".*the pepper file shows that client keys were created/);
      const { text } = await closed.keys.create('second', {}, 'cli');
      expect((await converse(closed.url, 'demo/hello', withKey(text))).status).toBe(200);
      expect((await converse(closed.url)).status).toBe(401);
      await closed.close(0);
      // The documented way to open it again.
      for (const name of ['sluice.db', 'pepper']) rmSync(join(data, name));
      const open = await start();
      expect((await converse(open.url)).status).toBe(200);
      await open.close(0);
    } finally {
      await before.stop();
    }
  });

  test.runIf(process.platform !== 'win32')('warns of a pepper and a data folder that others can use', async () => {
    const first = await startAdmin({ isPersistent: true });
    const { folder } = first;
    const data = join(folder, 'data');
    const listWarnings = async (): Promise<string[]> => {
      const lines: string[] = [];
      const formatLog = (line: string): string => {
        lines.push(line);
        return '';
      };
      const again = await run({ folder, env: {}, data, listen: { port: 0 }, formatLog });
      await again.close(0);
      return lines.filter((line) => line.includes('give it mode'));
    };
    try {
      await first.keys.create('first', {}, 'cli');
      await first.close(0);
      expect(await listWarnings()).toEqual([]);
      chmodSync(join(data, 'pepper'), 0o644);
      chmodSync(data, 0o777);
      const [pepper, place] = await listWarnings();
      expect(JSON.parse(pepper ?? '')).toMatchObject({ level: 'warn', path: join(data, 'pepper'), mode: '0644' });
      expect(JSON.parse(place ?? '')).toMatchObject({ level: 'warn', path: data, mode: '0777' });
    } finally {
      await first.stop();
    }
  });

  test('is not replaced by one in memory, which would be open, when the default folder cannot be used', async () => {
    const first = await startAdmin({ isPersistent: true });
    const { folder } = first;
    const env = { XDG_DATA_HOME: folder };
    try {
      await first.close(0);
      const start = () => run({ folder, env, data: 'default', listen: { port: 0 }, formatLog: () => '' });
      const owner = await start();
      // Without keys, a second gateway is as open as the first.
      const second = await start();
      expect(second.store.isPersistent).toBe(false);
      await second.close(0);
      await owner.keys.create('first', {}, 'cli');
      await expect(start()).rejects.toThrow(/in use by .*without them the gateway would admit everybody/);
      await owner.close(0);
    } finally {
      await first.stop();
    }
  });

  test('does not listen where others can reach it', async () => {
    const folder = gateway.folder;
    await expect(run({ folder, env: {}, data: 'memory', config: writeConfig(folder), listen: {} })).rejects.toThrow(
      /listen\.host: 0\.0\.0\.0 is reachable from other machines; create a client key with "sluice keys create"/,
    );
  });
});

function writeConfig(folder: string): string {
  const file = join(folder, 'open.yaml');
  writeFileSync(file, 'listen: { host: 0.0.0.0, port: 0 }\n');
  return file;
}
