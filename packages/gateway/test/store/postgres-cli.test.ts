import { execFile } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { needs } from '../../../../test/needs/needs.ts';
import { openStore } from '../../src/store/index.ts';
import { createAddress, createFolder } from './ledger-fixture.ts';
import { assertBuilt } from './processes.ts';

const SLUICE = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));

beforeAll(assertBuilt);

interface Output {
  code: number;
  text: string;
}

/** Runs a command in a folder. */
const run = (folder: string, env: Record<string, string>, ...args: string[]): Promise<Output> =>
  new Promise((resolve) => {
    execFile(
      process.execPath,
      [SLUICE, ...args],
      { cwd: folder, env: { PATH: '', HOME: folder, ...env } },
      (error, stdout, stderr) => resolve({ code: typeof error?.code === 'number' ? error.code : 0, text: `${stdout}${stderr}` }),
    );
  });

describe('commands with a PostgreSQL store', needs('postgres'), () => {
  test('keys, usage, log and audit use the database of the configuration, and never print its password', async () => {
    const folder = createFolder();
    const url = (await createAddress()).replace('test@', 'test:secret-word@');
    const env = { SLUICE_STORE: url };
    const config = { store: 'env:SLUICE_STORE', auth: { pepper_file: join(folder, 'pepper') } };
    writeFileSync(join(folder, 'sluice.yaml'), JSON.stringify(config));
    const created = await run(folder, env, 'keys', 'create', 'alice');
    expect(created).toMatchObject({ code: 0, text: expect.stringContaining('sluice_') });
    expect(existsSync(join(folder, 'pepper'))).toBe(true);
    const store = await openStore({ folder: null, url });
    const { id, ts } = store.createId();
    await store.openExchange({ id, ts, key_id: 'k', model_requested: 'some-model' });
    await store.settleExchange({ id, ts, ending: 'answered', input_tokens: 5, http_status: 200 });
    await store.close();
    const outputs = await Promise.all([
      run(folder, env, 'keys', 'list'),
      run(folder, env, 'audit'),
      run(folder, env, 'log', '--json'),
      run(folder, env, 'usage'),
    ]);
    expect(outputs.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
    expect(outputs[0]?.text).toContain('alice');
    expect(outputs[1]?.text).toContain('key.create');
    expect(outputs[2]?.text).toContain('some-model');
    expect([created, ...outputs].map(({ text }) => text).join()).not.toContain('secret-word');
    expect(await run(folder, env, 'backup', 'x.db')).toMatchObject({ code: 2, text: expect.stringContaining('pg_dump') });
  });

  test('migrate copies a folder, and an error has no password', async () => {
    const folder = createFolder();
    const url = await createAddress();
    const store = await openStore({ folder: join(folder, 'data'), ballastBytes: 0 });
    await store.openExchange({ ...store.createId() });
    await store.close();
    const copied = await run(
      folder,
      { SLUICE_STORE: url },
      'migrate',
      '--to',
      'env:SLUICE_STORE',
      '--data',
      join(folder, 'data'),
    );
    expect(copied).toMatchObject({ code: 0, text: expect.stringContaining('Both have the same 0 keys, 1 exchanges') });
    const away = 'postgres://user:secret-word@127.0.0.1:1/d';
    const failed = await run(folder, {}, 'migrate', '--to', away, '--data', join(folder, 'data'));
    expect(failed).toMatchObject({ code: 1, text: expect.stringContaining('ECONNREFUSED') });
    expect(failed.text).not.toContain('secret-word');
    expect(await run(folder, {}, 'migrate')).toMatchObject({ code: 2, text: expect.stringContaining('name the database') });
  });
});
