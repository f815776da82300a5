import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ConfigError } from '../../src/config/problems.ts';
import { SecretRegistry } from '../../src/config/secrets.ts';
import { MAX_VALIDATED_LENGTH, validateConfig } from '../../src/config/validate.ts';
import { readConfig } from '../../src/config/watch.ts';

const PROVIDER = 'protocol: openai-chat, base_url: "http://127.0.0.1:9/v1"';

describe('a pasted configuration', () => {
  test.each([
    ['log: { level: debug }', []],
    [`providers: { a: { ${PROVIDER}, api_key: env:NOT_SET } }`, []],
    [`providers: { a: { ${PROVIDER}, api_key: "\${NOT_SET}", proxy: "\${PROXY}", ca: /no/such/file } }`, []],
    [`providers: { a: { ${PROVIDER}, api_key: file:/no/such/file } }`, []],
    [`listen: { port: "\${PORT}" }`, []],
    [`{ listen: { port: "\${PORT}" }, reset: "\${RESET}" }`, []],
    [`log: { level: "\${LEVEL}" }`, ['log.level']],
    [`auth: { keys: ["\${ALICE}", "\${BOB}"] }`, []],
  ])('%s is valid; references are not resolved', (text, unchecked) => {
    expect(validateConfig(text, [])).toMatchObject({ valid: true, unchecked });
  });

  test('has the problems of `sluice config check`, with lines and columns', async () => {
    const text = 'log:\n  level: loud\nlimits:\n  stream: 5\nproviders:\n  a: { protocol: nope }\n';
    const folder = mkdtempSync(join(tmpdir(), 'sluice-validate-'));
    const file = join(folder, 'sluice.yaml');
    writeFileSync(file, text);
    const error = await readConfig(file, { env: {}, secrets: new SecretRegistry(), storedKeys: () => 'unknown' }).catch(
      (reason: unknown) => reason,
    );
    rmSync(folder, { recursive: true });
    if (!(error instanceof ConfigError)) throw new Error('the file must be rejected');
    const expected = error.problems.map(({ message, place }) => [message, place?.line, place?.column]);
    expect(expected.length).toBeGreaterThan(1);
    const { valid, problems } = validateConfig(text, []);
    expect([valid, problems.map(({ message, line, column }) => [message, line, column])]).toEqual([false, expected]);
  });

  test('a provider without a key is a problem, unless the gateway has its variable', () => {
    const text = '{ providers: { groq: {} }, models: { fast: groq/llama } }';
    expect(validateConfig(text, []).problems[0]?.message).toContain('has no API key; set GROQ_API_KEY');
    expect(validateConfig(text, ['GROQ_API_KEY'])).toMatchObject({ valid: true, providers: ['groq'], models: ['fast'] });
  });

  test.each([
    ['', 'no settings'],
    ['a: [', 'line'],
    ['{'.repeat(1000), 'nested'],
    [`${'a: &a [x, x]\n'}${Array.from({ length: 30 }, (_, i) => `b${i}: &b${i} [*a, *a]`).join('\n')}`, ''],
  ])('text that is no configuration is a problem, not an error (%#)', (text, message) => {
    const { valid, problems } = validateConfig(text, []);
    expect(valid).toBe(false);
    expect(JSON.stringify(problems)).toContain(message);
  });

  test('quotes no secret', () => {
    const text = `providers: { a: { ${PROVIDER}, api_key: [sk-canary0123456789] } }\nsk-canary0123456789: 1`;
    const result = validateConfig(text, []);
    expect(result.valid).toBe(false);
    expect(JSON.stringify(result)).not.toContain('canary');
  });

  test('lists a hundred problems at most, and counts the rest', () => {
    const text = Array.from({ length: 150 }, (_, i) => `x${i}: 1`).join('\n');
    const { problems, omitted } = validateConfig(text, []);
    expect([problems.length, omitted]).toEqual([100, 50]);
    expect(text.length).toBeLessThan(MAX_VALIDATED_LENGTH);
  });
});
