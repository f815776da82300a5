import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { SecretRegistry } from '../../src/config/secrets.ts';
import { readState } from '../../src/server/workers.ts';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-workers-'));
});

afterEach(() => rm(folder, { recursive: true }));

test.each([
  ['disk', /--workers 3: responses\.store: disk keeps responses in a file that one process writes; set responses\.store: memory/],
  ['memory', undefined],
  ['off', undefined],
])('with workers, responses.store: %s', async (store, refusal) => {
  const config = join(folder, 'sluice.json');
  const database = 'postgres://user@127.0.0.1:1/none';
  await writeFile(config, JSON.stringify({ store: database, responses: { store } }), { mode: 0o600 });
  const state = readState({ config, folder, count: 3 }, { env: {}, secrets: new SecretRegistry(), listen: {} });
  if (refusal) await expect(state).rejects.toThrow(refusal);
  else expect((await state).responses.store).toBe(store);
});
