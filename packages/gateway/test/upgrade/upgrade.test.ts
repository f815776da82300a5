import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROOT } from '../../../../scripts/build/packages.js';
import { copyPepper, pickSums, readSums, unpackDatabase, unpackFolder } from '../../../../scripts/upgrade/folder.js';
import { ADMIN_KEY, Program } from '../../../../scripts/upgrade/program.js';
import { PROBE, post } from '../../../../scripts/upgrade/scenario.js';
import { readSettings } from '../../../../scripts/upgrade/settings.js';
import { MIGRATIONS } from '../../src/store/schema.ts';
import { jsonLines, run } from '../fake-io.ts';
import { assertBuilt } from '../store/processes.ts';

// Configurations and data folders of earlier versions, written by these (fixtures/upgrade/README.md), start with today's gateway.

interface Sums {
  readonly group: string;
  readonly cost_micros: number;
}

interface Expected {
  readonly commit: string;
  readonly settings: Readonly<Record<string, unknown>>;
  /** Of the data folder; absent for a version without one. */
  readonly last_start?: string;
  readonly schema: number;
  readonly sums: { readonly model: Sums[]; readonly key: Sums[]; readonly day: Sums[] };
  readonly keys: { readonly name: string; readonly budget: string[]; readonly last_used_at: string | null }[];
  readonly secrets: { readonly name: string; readonly secret: string; readonly isAccepted: boolean }[];
  readonly responses: { readonly id: string; readonly by: string }[];
}

const FOLDER = join(ROOT, 'fixtures/upgrade');

const FIXTURES = readdirSync(FOLDER, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => ({
    name,
    fixture: join(FOLDER, name),
    expected: JSON.parse(readFileSync(join(FOLDER, name, 'expected.json'), 'utf8')) as Expected, // written by the script
  }));

const WITH_DATA = FIXTURES.filter(({ expected }) => expected.last_start !== undefined);

beforeAll(assertBuilt);

/** A copy that others cannot read: it contains keys. */
function copyConfig(fixture: string, folder: string): string {
  const file = join(folder, 'sluice.yaml');
  copyFileSync(join(fixture, 'sluice.yaml'), file);
  chmodSync(file, 0o600);
  return file;
}

/** Settings whose meaning has changed since a version. Those of a release are described in docs/install.md. */
const CHANGED: Readonly<Record<string, readonly string[]>> = {
  // Its default was another one for some commits, and in no release.
  'schema-4': ['modelInAnswer'],
};

describe.each(FIXTURES)('the configuration of $name', ({ name, fixture, expected }) => {
  test('means the same', async () => {
    const now: Record<string, unknown> = await readSettings(ROOT, join(fixture, 'sluice.yaml'));
    const changed = Object.keys(expected.settings).filter((path) => now[path] !== expected.settings[path]);
    expect(changed).toEqual(CHANGED[name] ?? []);
  });
});

describe.each(FIXTURES.filter((one) => !WITH_DATA.includes(one)))('the configuration of $name', ({ fixture, expected }) => {
  test('starts a gateway, which has no data folder of that version', async () => {
    const home = mkdtempSync(join(tmpdir(), 'sluice-upgrade-'));
    const config = copyConfig(fixture, home);
    const { url, stop } = await new Program({ home, now: '2026-11-18T10:00:00Z' }).serve('--config', config, '--data', 'data');
    const keys = Object.entries(expected.settings).flatMap(([path, value]) => (path.startsWith('keys.') ? [String(value)] : []));
    const read = async (key: string) => (await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })).status;
    try {
      expect(await Promise.all([...keys, 'unknown-key-0123456789'].map(read))).toEqual([...keys.map(() => 200), 401]);
    } finally {
      await stop();
      rmSync(home, { recursive: true, force: true });
    }
  });
});

test('every earlier version of the schema has a data folder', () => {
  const versions = WITH_DATA.map(({ expected }) => expected.schema);
  expect(versions).toEqual(expect.arrayContaining(MIGRATIONS.slice(1).map((_, i) => i + 1)));
});

const NEXT_DAY_MS = 24 * 3600 * 1000;

describe.each(WITH_DATA)('the data folder of $name (schema $expected.schema)', ({ fixture, expected }) => {
  const home = mkdtempSync(join(tmpdir(), 'sluice-upgrade-'));
  afterAll(() => rmSync(home, { recursive: true, force: true }));
  const config = join(home, 'sluice.yaml');
  const data = join(home, 'data');
  const now = new Date(Date.parse(expected.last_start ?? '') + NEXT_DAY_MS).toISOString();
  const program = new Program({ home, now });

  beforeAll(() => {
    copyConfig(fixture, home);
    unpackFolder(fixture, data);
  });

  /** The sums until the day on which today's gateway starts. */
  const readUsage = async (...place: string[]): Promise<Record<string, Sums[]>> => {
    const period = ['--since', '2026-11-01', '--until', now.slice(0, 10)];
    const usage: Record<string, Sums[]> = {};
    for (const by of Object.keys(expected.sums)) {
      const outcome = await run(['usage', '--by', by, '--json', ...period, ...place], { hasDisk: true });
      expect(outcome.code, outcome.stderr).toBe(0);
      const rows: Sums[] = jsonLines(outcome).map(pickSums);
      usage[by] = rows.filter(({ group }) => by !== 'day' || group < now).sort((a, b) => (a.group < b.group ? -1 : 1));
    }
    return usage;
  };

  const start = () => program.serve('--config', config, '--data', data);

  test('is read by commands before a gateway has upgraded it, or their error names the next step', async () => {
    if (expected.schema === MIGRATIONS.length) return expect(await readUsage('--data', data)).toEqual(expected.sums);
    for (const command of [['usage'], ['log'], ['keys', 'list']]) {
      const { code, stderr } = await run([...command, '--json', '--data', data], { hasDisk: true });
      expect([code, stderr]).toEqual([2, expect.stringContaining(`schema ${expected.schema}; this one has`)]);
      expect(stderr).toContain('start the gateway with it once, which upgrades it');
    }
  });

  test.each(['first', 'second'])('keeps its sums, keys and responses at the %s start', async (which) => {
    const { url, stop } = await start();
    const place = ['--url', url, '--key', ADMIN_KEY];
    try {
      expect(await readUsage(...place)).toEqual(expected.sums);
      const listed = jsonLines(await run(['keys', 'list', '--all', '--json', ...place], { hasDisk: true }));
      const keys = listed.filter(({ name }) => expected.keys.some((key) => key.name === name));
      expect(keys).toHaveLength(expected.keys.length);
      for (const [i, { last_used_at, ...key }] of expected.keys.entries()) expect(keys[i]).toMatchObject(key);
      if (which === 'first') await expectBudgets(url);
      for (const { name, secret, isAccepted } of expected.secrets) {
        const { status } = await post(url, secret, PROBE);
        expect([name, status]).toEqual([name, isAccepted ? 200 : 401]);
      }
      await expectResponses(url);
    } finally {
      expect(await stop()).toMatchObject({ code: 0 });
    }
    expect(readSums(data).schema).toBe(MIGRATIONS.length);
  });

  /** The budget of a key counts what the old version recorded in this month. */
  async function expectBudgets(url: string): Promise<void> {
    const response = await fetch(`${url}/admin/v1/budgets`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } });
    const { budgets } = (await response.json()) as { budgets: { by: string; name: string; spent_micros: number }[] }; // the admin API
    const spent = expected.keys.flatMap(({ name, budget }) =>
      budget.length > 0 ? [[name, expected.sums.key.find(({ group }) => group === name)?.cost_micros]] : [],
    );
    expect(budgets.filter(({ by }) => by === 'key').map((one) => [one.name, one.spent_micros])).toEqual(spent);
  }

  /** Stored responses belong to the key that made them. */
  async function expectResponses(url: string): Promise<void> {
    for (const { id, by } of expected.responses)
      for (const { name, secret } of expected.secrets.filter((one) => one.isAccepted)) {
        const { status } = await fetch(`${url}/v1/responses/${id}`, { headers: { authorization: `Bearer ${secret}` } });
        expect([name, status]).toEqual([name, name === by ? 200 : 404]);
      }
  }

  test('captures can be inspected', async () => {
    const folder = join(data, 'captures');
    const captures = existsSync(folder) ? readdirSync(folder) : [];
    for (const id of captures) {
      const outcome = await run(['inspect', '--json', join(folder, id)], { hasDisk: true });
      expect(outcome.code, outcome.stderr).toBe(0);
    }
    expect(captures.length > 0).toBe(existsSync(join(fixture, 'data/captures')));
  });

  test('is restored from a backup of that version', async () => {
    const backup = join(home, 'backup.db');
    const restored = join(home, 'restored');
    unpackDatabase(fixture, backup);
    mkdirSync(restored);
    const outcome = await run(['restore', backup, '--data', restored], { hasDisk: true });
    expect(outcome.code, outcome.stderr).toBe(0);
    if (expected.keys.length > 0) copyPepper(fixture, restored);
    const { url, stop } = await program.serve('--config', config, '--data', restored);
    try {
      expect(await readUsage('--url', url, '--key', ADMIN_KEY)).toEqual(expected.sums);
      for (const { name, secret, isAccepted } of expected.secrets)
        expect([name, (await post(url, secret, PROBE)).status]).toEqual([name, isAccepted ? 200 : 401]);
    } finally {
      await stop();
    }
  });
});
