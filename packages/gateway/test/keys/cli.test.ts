import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { parseKeyId } from '../../src/keys/key-text.ts';
import { openStore, type Store } from '../../src/store/index.ts';
import { ADMIN_KEY, converse, startAdmin, type TestGateway, withKey } from '../admin/start.ts';
import { jsonLines, type Outcome, run } from '../fake-io.ts';
import { createFolder } from '../store/ledger-fixture.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startAdmin({ config: { admin: { key: ADMIN_KEY } }, isPersistent: true });
});

afterAll(() => gateway.stop());

/** The same commands on a data folder and through a gateway. */
const PLACES = {
  folder: () => {
    const folder = createFolder();
    return { args: ['--data', folder], env: {}, actor: 'cli' };
  },
  gateway: () => ({ args: ['--url', gateway.url], env: { SLUICE_ADMIN_KEY: ADMIN_KEY }, actor: 'key' }),
} as const;

describe.each(Object.keys(PLACES) as (keyof typeof PLACES)[])('by the %s', (place) => {
  test('a key is created, shown, changed, rotated and revoked', async () => {
    const { args, env, actor } = PLACES[place]();
    const keys = (...words: string[]): Promise<Outcome> => run(['keys', ...words, ...args], { env });
    const name = `life-${place}`;
    const created = await keys(
      'create',
      name,
      '--models',
      'demo/*',
      '--models',
      'gpt-*',
      '--budget',
      '20usd/month,2usd/day',
      '--tag',
      'team=a',
    );
    expect(created.code, created.stderr).toBe(0);
    const id = parseKeyId(created.stdout.trim()) ?? '';
    expect(id).toHaveLength(16);
    expect(created.stderr).toContain(`Created key "${name}" (id ${id})`);
    if (place === 'gateway') expect((await converse(gateway.url, 'demo/hello', withKey(created.stdout.trim()))).status).toBe(200);

    const shown = await keys('show', name, '--json');
    expect(jsonLines(shown)).toMatchObject([
      { id, name, models: ['demo/*', 'gpt-*'], budget: ['20usd/month', '2usd/day'], tags: ['team=a'] },
    ]);
    expect((await keys('show', id)).stdout).toMatch(/budget +20usd\/month, 2usd\/day/);

    const edited = await keys('edit', name, '--budget', 'none', '--rpm', '60', '--json');
    expect(jsonLines(edited)).toMatchObject([{ budget: [], rpm: 60, models: ['demo/*', 'gpt-*'] }]);

    const rotated = await keys('rotate', name, '--overlap', '0', '--json');
    expect(parseKeyId(String(jsonLines(rotated)[0]?.['secret']))).toBe(id);
    const listed = await keys('list');
    expect(listed.stdout).toMatch(new RegExp(`${name} +${id} +active +demo/\\*, gpt-\\* +– +60`));

    const revoked = await keys('revoke', name, '--now');
    expect([revoked.code, revoked.stdout]).toEqual([0, `Revoked key "${name}" (id ${id}).\n`]);
    expect((await keys('list')).stdout).not.toContain(id);
    expect((await keys('list', '--all', '--json')).stdout).toContain(id);
    if (place === 'gateway')
      expect((await converse(gateway.url, 'demo/hello', withKey(String(jsonLines(rotated)[0]?.['secret'])))).status).toBe(401);

    const audit = await run(['audit', '--json', '--limit', '4', ...args], { env });
    expect(jsonLines(audit).map((entry) => [entry['action'], entry['object'], entry['actor']])).toEqual(
      ['key.revoke', 'key.rotate', 'key.edit', 'key.create'].map((action) => [action, id, actor]),
    );
    expect((await run(['audit', ...args], { env })).stdout).toMatch(/^TIME +BY +ACTION +KEY +DETAILS\n/);
    for (const { stdout, stderr } of [shown, edited, listed, revoked, audit])
      expect(stdout + stderr).not.toContain(created.stdout.trim().slice(24));
  });

  test.each<[string, string[], number, string]>([
    ['no action', [], 2, 'name an action: create, list'],
    ['an unknown action', ['crate', 'x'], 2, 'did you mean "create"'],
    ['no name', ['create'], 2, 'name one key: sluice keys create NAME'],
    ['two names', ['show', 'a', 'b'], 2, 'name one key'],
    ['a bad name', ['create', 'a b'], 2, 'must have 1 to 64 letters'],
    ['a bad budget', ['create', 'x', '--budget', '20'], 2, 'must be an amount and a period'],
    ['a bad address', ['create', 'x', '--ip', 'home'], 2, 'must be an address or a range'],
    ['an option of another action', ['create', 'x', '--overlap', '1h'], 2, '--overlap cannot be used with "keys create"'],
    ['nothing to change', ['edit', 'x'], 2, 'name what to change'],
    ['an unknown key', ['show', 'nobody'], 1, 'no key has the name or id'],
    ['an unknown key to revoke', ['revoke', 'nobody'], 1, 'no key has the name or id'],
  ])('%s', async (_, words, code, text) => {
    const { args, env } = PLACES[place]();
    // A folder with data.
    await run(['keys', 'create', `one-${words.length}-${place}-${Math.random().toString(36).slice(2)}`, ...args], { env });
    const outcome = await run(['keys', ...words, ...args], { env });
    expect([outcome.code, outcome.stderr]).toEqual([code, expect.stringContaining(text)]);
  });
});

describe('a data folder', () => {
  const stores: Store[] = [];

  afterEach(async () => {
    for (const store of stores.splice(0)) await store.close();
  });

  test('is created for the first key, and not for a list', async () => {
    const folder = join(createFolder(), 'new');
    expect((await run(['keys', 'list', '--data', folder])).code).toBe(2);
    expect((await run(['keys', 'revoke', 'x', '--data', folder])).code).toBe(2);
    expect(existsSync(folder)).toBe(false);
    expect((await run(['keys', 'create', 'x', '--data', folder])).code).toBe(0);
    expect(existsSync(join(folder, 'pepper'))).toBe(true);
  });

  test('that a gateway owns can be read, and changes name the way', async () => {
    const folder = createFolder();
    await run(['keys', 'create', 'x', '--data', folder]);
    stores.push(await openStore({ folder, ballastBytes: 0 }));
    expect((await run(['keys', 'list', '--data', folder])).stdout).toContain('x ');
    const { code, stderr } = await run(['keys', 'revoke', 'x', '--data', folder]);
    expect([code, stderr]).toEqual([2, expect.stringContaining('is in use by process')]);
    expect(stderr).toContain('SLUICE_ADMIN_KEY');
  });
});

describe('a gateway that keeps its data in memory', () => {
  let fleeting: TestGateway;

  beforeAll(async () => {
    fleeting = await startAdmin({ config: { admin: { key: ADMIN_KEY } } });
  });

  afterAll(() => fleeting.stop());

  const RED = '\u001b[31m';
  const WARNING = `${RED}sluice: warning: key "x" is lost when the gateway stops, because the gateway keeps its data in memory; restart it`;

  test.each([['create'], ['rotate', '--overlap', '0'], ['rotate', '--json']])('%s warns in red', async (action, ...options) => {
    const env = { SLUICE_ADMIN_KEY: ADMIN_KEY, FORCE_COLOR: '1' };
    const { code, stdout, stderr } = await run(['keys', action, 'x', ...options, '--url', fleeting.url], { env });
    expect([code, stderr]).toEqual([0, expect.stringContaining(WARNING)]);
    expect(stdout).not.toContain('warning');
  });

  test.each(['folder', 'gateway'] as const)('a %s with a disk gives no warning', async (place) => {
    const { args, env } = PLACES[place]();
    const { stderr } = await run(['keys', 'create', 'quiet', ...args], { env });
    expect(stderr).not.toContain('warning');
  });
});

describe('a gateway', () => {
  test('refuses a wrong admin key', async () => {
    const { code, stderr } = await run(['keys', 'create', 'x', '--url', gateway.url, '--key', 'wrong']);
    expect([code, stderr]).toEqual([2, expect.stringContaining('the key is not the admin key')]);
  });

  test('usage by key shows the names of keys', async () => {
    const args = ['--url', gateway.url, '--key', ADMIN_KEY];
    const { stdout: secret } = await run(['keys', 'create', 'named', ...args]);
    await converse(gateway.url, 'demo/hello', withKey(secret.trim()));
    await gateway.store.flush();
    const shown = await run(['usage', '--by', 'key', ...args]);
    expect(shown.stdout).toMatch(/^named +1 /m);
    const id = parseKeyId(secret.trim());
    expect(jsonLines(await run(['usage', '--by', 'key', '--json', ...args]))).toContainEqual(
      expect.objectContaining({ group: id, key_name: 'named' }),
    );
    const csv = await run(['usage', '--by', 'key', '--csv', ...args]);
    expect(csv.stdout.split('\r\n')[0]).toMatch(/,cost_usd,key_name$/);
    expect(csv.stdout).toMatch(new RegExp(`^key,${id},.*,named\r$`, 'm'));
  });
});
