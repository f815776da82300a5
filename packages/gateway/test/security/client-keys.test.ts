import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ADMIN_KEY, send, startAdmin, type TestGateway, withKey } from '../admin/start.ts';

let gateway: TestGateway;
let secret: string;

beforeAll(async () => {
  gateway = await startAdmin({ config: { admin: { key: ADMIN_KEY } }, isPersistent: true });
  const { json } = await gateway.call('keys', { method: 'POST', headers: withKey(ADMIN_KEY), body: { name: 'leaky' } });
  secret = json.secret;
});

afterAll(() => gateway.stop());

const PLACES: Readonly<Record<string, (key: string) => { headers?: Record<string, string>; body?: object }>> = {
  'a user agent': (key) => ({ headers: { 'user-agent': `agent ${key}` } }),
  'a user agent, behind other letters': (key) => ({ headers: { 'user-agent': `agent${key}` } }),
  'a tag': (key) => ({ headers: { 'x-sluice-tags': `a=${key}` } }),
  'a session of our header': (key) => ({ headers: { 'x-sluice-session': key } }),
  'a session of other headers': (key) => ({ headers: { session_id: key } }),
  'a session of the metadata': (key) => ({ body: { metadata: { session_id: key } } }),
  'a cache key': (key) => ({ body: { prompt_cache_key: key } }),
  'a model of a provider': (key) => ({ body: { model: `demo/${key}` } }),
  'a model': (key) => ({ body: { model: key } }),
};

test.each(Object.entries(PLACES))('no row, roll-up or backup has the key that a client sends as %s', async (place, write) => {
  const { headers, body } = write(secret);
  const messages = [{ role: 'user', content: 'hello' }];
  await send(gateway.url, '/v1/chat/completions', {
    method: 'POST',
    headers: { ...withKey(secret), ...headers },
    body: { model: 'demo/hello', messages, ...body },
  });
  await gateway.store.flush();
  const data = join(gateway.folder, 'data');
  const backup = join(gateway.folder, `${place.replaceAll(' ', '-')}.db`);
  await gateway.store.backup(backup);
  // Neither the key nor what a limit of length leaves of it. Its id is public.
  const part = secret.slice('sluice_'.length + 17, -30);
  const files = readdirSync(data)
    .filter((name) => name !== 'captures')
    .map((name) => join(data, name));
  for (const file of [...files, backup]) expect(readFileSync(file).includes(part), file).toBe(false);
});
