import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { SecretRegistry } from '../../src/config/secrets.ts';
import { LiveConfig } from '../../src/config/watch.ts';

const watch = vi.hoisted(() =>
  vi.fn(() => {
    throw new Error('ENOSPC: no watching here');
  }),
);

vi.mock('node:fs', async (original) => ({ ...(await original<typeof import('node:fs')>()), watch }));

test('the file is polled where it cannot be watched', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-'));
  const file = join(folder, 'sluice.yaml');
  await writeFile(file, 'listen: { port: 1 }');
  const refused = vi.fn();
  const options = {
    file,
    env: {},
    secrets: new SecretRegistry(),
    onReload: vi.fn(),
    onRefused: refused,
    quietMs: 5,
    pollMs: 20,
    stableMs: 5,
  };
  const config = await LiveConfig.open(options);
  expect(watch).toHaveBeenCalled();
  await writeFile(file, 'listen: { port: 2 }');
  await vi.waitFor(() => expect(config.current.listen.port).toBe(2), { timeout: 30_000 });
  await writeFile(`${file}.tmp`, 'listen: { port: 3 }');
  await rename(`${file}.tmp`, file);
  await vi.waitFor(() => expect(config.current.listen.port).toBe(3), { timeout: 30_000 });
  await writeFile(file, 'bad: 1');
  await vi.waitFor(() => expect(refused).toHaveBeenCalledTimes(1), { timeout: 30_000 });
  expect(config.current.listen.port).toBe(3);
  config.close();
  await rm(folder, { recursive: true });
});
