import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { REAL_CLOCK } from '../../src/http/clock.ts';
import { run } from '../../src/server/run.ts';
import { startGateway } from '../gateway/start.ts';
import { startUpstream, type Upstream } from './upstreams.ts';

let upstream: Upstream;
let folder: string;

beforeEach(async () => {
  upstream = await startUpstream('openai-chat');
  folder = await mkdtemp(join(tmpdir(), 'sluice-restart-'));
});

afterEach(async () => {
  upstream.close();
  await rm(folder, { recursive: true });
});

async function ask(url: string, body: object): Promise<{ id: string; error?: { code: string } }> {
  const response = await fetch(`${url}/v1/responses`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'up/m', ...body }),
  });
  return (await response.json()) as { id: string }; // asserted by the caller
}

test.each([
  ['memory', 'previous_response_not_found'],
  ['disk', undefined],
])('after a restart with responses.store: %s', async (store, code) => {
  const start = async () => {
    const config = join(folder, 'sluice.json');
    const text = { providers: { up: { protocol: 'openai-chat', base_url: upstream.url, api_key: 'k' } }, responses: { store } };
    await writeFile(config, JSON.stringify(text));
    return run({ config, folder, env: {}, listen: { host: '127.0.0.1', port: 0 }, log: 'silent', data: join(folder, 'data') });
  };
  const first = await start();
  const { id } = await ask(first.url, { input: 'before the restart' });
  await first.close(0);
  const second = await start();
  const next = await ask(second.url, { input: 'after', previous_response_id: id });
  await second.close(0);
  expect(next.error?.code).toBe(code);
  if (code === undefined) expect(upstream.got[1]).toContain('before the restart');
});

test('a response expires an hour after its last use', async () => {
  let offset = 0;
  const clock = { ...REAL_CLOCK, now: () => REAL_CLOCK.now() + offset };
  const gateway = await startGateway({
    clock,
    config: { providers: { up: { protocol: 'openai-chat', base_url: upstream.url } } },
  });
  const { id } = await ask(gateway.url, { input: 'one' });
  offset += 3_590_000;
  expect((await ask(gateway.url, { input: 'two', previous_response_id: id })).error).toBeNull();
  offset += 3_600_000;
  expect((await ask(gateway.url, { input: 'three', previous_response_id: id })).error?.code).toBe('previous_response_not_found');
  await gateway.close();
});

test('responses.store: off keeps nothing', async () => {
  const config = { providers: { up: { protocol: 'openai-chat', base_url: upstream.url } }, responses: { store: 'off' } };
  const gateway = await startGateway({ config });
  const { id } = await ask(gateway.url, { input: 'one' });
  expect((await ask(gateway.url, { input: 'two', previous_response_id: id })).error?.code).toBe('unsupported_value');
  await gateway.close();
});

test('what a key without a name stored stays its own when another line of the configuration is removed', async () => {
  const [alice, bob] = ['key-of-alice-123', 'key-of-bob-12345'];
  const start = async (keys: unknown[]) => {
    const config = join(folder, 'sluice.json');
    const providers = { up: { protocol: 'openai-chat', base_url: upstream.url, api_key: 'k', passthrough: 'off' } };
    await writeFile(config, JSON.stringify({ auth: { keys }, providers, responses: { store: 'disk' } }), { mode: 0o600 });
    return run({ config, folder, env: {}, listen: { host: '127.0.0.1', port: 0 }, log: 'silent', data: join(folder, 'data') });
  };
  const read = async (url: string, key: string, id: string): Promise<number> =>
    (await fetch(`${url}/v1/responses/${id}/input_items`, { headers: { authorization: `Bearer ${key}` } })).status;
  const first = await start([alice, bob]);
  const made = await fetch(`${first.url}/v1/responses`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${alice}` },
    body: JSON.stringify({ model: 'up/m', input: 'private' }),
  });
  const { id } = (await made.json()) as { id: string }; // checked by the requests below
  expect([await read(first.url, alice, id), await read(first.url, bob, id)]).toEqual([200, 404]);
  await writeFile(join(folder, 'sluice.json'), JSON.stringify({ auth: { keys: [bob] }, responses: { store: 'disk' } }), {
    mode: 0o600,
  });
  await first.reload();
  expect(await read(first.url, bob, id)).toBe(404);
  await first.close(0);
  const second = await start([bob, alice]);
  expect([await read(second.url, alice, id), await read(second.url, bob, id)]).toEqual([200, 404]);
  await second.close(0);
});
