import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { ConfigError, createGateway } from '../src/index.ts';

const folder = mkdtempSync(join(tmpdir(), 'sluice-embed-'));
afterAll(() => rmSync(folder, { recursive: true }));

function configFile(text: string): string {
  const file = join(folder, 'sluice.yaml');
  writeFileSync(file, text);
  return file;
}

const QUIET = { env: {}, port: 0, log: 'silent' } as const;

describe('createGateway', () => {
  test('listens, responds and closes', async () => {
    const gateway = createGateway(QUIET);
    expect(gateway.url).toBeUndefined();
    const url = await gateway.listen();
    expect(gateway.url).toBe(url);
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'demo/hello', messages: [{ role: 'user', content: 'hi' }] }),
    });
    expect(await response.json()).toMatchObject({ object: 'chat.completion' });
    await gateway.close();
    expect(gateway.url).toBeUndefined();
    await expect(fetch(url)).rejects.toThrow();
  });

  test('keeps its URL when listen() is called again, and can listen after it was closed', async () => {
    const gateway = createGateway(QUIET);
    const [first, second] = await Promise.all([gateway.listen(), gateway.listen()]);
    expect(second).toBe(first);
    await gateway.close();
    await gateway.listen();
    expect((await fetch(`${gateway.url}/health/ready`)).status).toBe(200);
    await gateway.close();
  });

  test('closes a gateway that is about to listen, and one that never did', async () => {
    const gateway = createGateway(QUIET);
    const listening = gateway.listen();
    await gateway.close();
    await expect(fetch(await listening)).rejects.toThrow();
    await expect(createGateway(QUIET).close()).resolves.toBeUndefined();
  });

  test('rejects an invalid configuration with a ConfigError, and starts once it is right', async () => {
    const gateway = createGateway({ ...QUIET, config: configFile('listn: {}\n') });
    await expect(gateway.listen()).rejects.toThrow(ConfigError);
    configFile('listen: { host: 127.0.0.1 }\n');
    expect(await gateway.listen()).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    await gateway.close();
  });
});
