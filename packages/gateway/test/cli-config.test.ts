import { describe, expect, test } from 'vitest';
import { loadConfig } from '../src/config/load.ts';
import { resolveConfig } from '../src/config/resolve.ts';
import { SecretRegistry } from '../src/config/secrets.ts';
import { PROVIDER_IDS } from '../src/providers/lookup.ts';
import { PROVIDERS } from '../src/providers/table.ts';
import { jsonLines, run, systemError } from './fake-io.ts';

const resolve = (text: string, env: Record<string, string>) =>
  resolveConfig(loadConfig('sluice.yaml', text, env), { env, secrets: new SecretRegistry() });

describe('sluice init', () => {
  const KEY = 'sk-canary-0123456789abcdef';

  test.each<[string, Record<string, string>]>([
    ['no key', {}],
    ['one key', { OPENAI_API_KEY: KEY }],
    ['the second name of a key', { GOOGLE_API_KEY: KEY }],
    ['a token', { ANTHROPIC_AUTH_TOKEN: KEY }],
    ['another address', { OPENAI_API_KEY: KEY, OPENAI_BASE_URL: 'https://proxy.example/v1' }],
    ['a local server', { OLLAMA_HOST: '127.0.0.1:11434' }],
    ['a resource', { AZURE_OPENAI_API_KEY: KEY, AZURE_RESOURCE_NAME: 'mine' }],
    ['every key', Object.fromEntries(PROVIDER_IDS.flatMap((id) => PROVIDERS[id].key_env.slice(0, 1).map((name) => [name, KEY])))],
  ])('%s: the file means what the environment means, and holds no key', async (_, env) => {
    const { code, files, stdout, stderr } = await run(['init'], { env });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const text = files['sluice.yaml'] ?? '';
    expect(text + stdout).not.toContain(KEY);
    const describeAll = (config: string) =>
      [...resolve(config, env).providers.values()]
        .map(({ id, provider, key }) => ({ id, provider, key: key?.reveal() }))
        .toSorted((a, b) => (a.id < b.id ? -1 : 1));
    expect(describeAll(text)).toEqual(describeAll('reset: true'));
  });

  test('names the keys that cannot be used, without printing them', async () => {
    const { code, stdout, stderr } = await run(['init'], { env: { OPENAI_API_KEY: 'two words-0123456789' } });
    expect(code).toBe(0);
    expect(stdout).toContain('no provider key was found');
    expect(stderr).toMatch(/^sluice: OPENAI_API_KEY must be printable ASCII/);
    expect(stdout + stderr).not.toContain('0123456789');
  });

  test('prints the providers and the next steps', async () => {
    const { stdout } = await run(['init', 'gateway.yaml'], { env: { OPENAI_API_KEY: KEY } });
    expect(stdout).toContain('Wrote gateway.yaml: openai (OPENAI_API_KEY)\n');
    for (const line of ['sluice config check gateway.yaml', 'sluice serve --config gateway.yaml', 'sluice run claude'])
      expect(stdout).toContain(line);
  });

  test.each([
    ['an existing file', 'mine: true\n'],
    ['a file that cannot be read', systemError('EACCES')],
  ])('keeps %s', async (_, source) => {
    const { code, files, stderr } = await run(['init'], { files: { 'sluice.yaml': source } });
    expect({ code, files }).toEqual({ code: 2, files: {} });
    expect(stderr).toContain('sluice.yaml exists; use --force to overwrite it');
  });

  test('--force overwrites it', async () => {
    const { code, files } = await run(['init', '--force'], { files: { 'sluice.yaml': 'mine: true\n' } });
    expect(code).toBe(0);
    expect(Object.keys(files)).toEqual(['sluice.yaml']);
  });
});

describe('sluice config check', () => {
  const check = (text: string, env: Record<string, string> = {}, ...more: string[]) =>
    run(['config', 'check', 'c.yaml', ...more], { files: { 'c.yaml': text }, env });

  test('a valid file', async () => {
    const { code, stdout, stderr } = await check('models: { fast: openai/gpt-5 }\n', { OPENAI_API_KEY: 'sk-1' });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toBe('c.yaml: valid; 2 providers (openai, openai-responses); 1 model (fast)\n');
  });

  test('a warning has its place and is not a failure', async () => {
    const { code, stdout } = await check('reset: true\n');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^c\.yaml:1:8: warning: /);
    expect(stdout).toContain('valid; no providers, so the demo model responds\n');
  });

  const BAD = `listen:\n  prt: 1\nproviders:\n  openai:\n    api_key: \${NOT_SET}\n    base_url: 5\n`;

  test('problems have file, line, column, path and the line itself', async () => {
    const { code, stdout } = await check(BAD);
    expect(code).toBe(1);
    expect(stdout).toContain('c.yaml:2:3: listen: unknown key "prt"; did you mean "port"?\n');
    expect(stdout).toContain('c.yaml:5:14: providers.openai.api_key: ');
    expect(stdout).toContain(
      'c.yaml:6:15: providers.openai.base_url: must be text: base URL without the endpoint, for example https://',
    );
    expect(stdout).toMatch(/\n3 problems\n$/);
  });

  test('--json has the same problems as data', async () => {
    const outcome = await check(BAD, {}, '--json');
    expect(outcome.code).toBe(1);
    expect(jsonLines(outcome)).toEqual([
      {
        file: 'c.yaml',
        valid: false,
        problems: [
          { severity: 'error', path: ['listen'], line: 2, column: 3, message: 'unknown key "prt"; did you mean "port"?' },
          {
            severity: 'error',
            path: ['providers', 'openai', 'api_key'],
            line: 5,
            column: 14,
            message: expect.stringContaining('NOT_SET'),
          },
          {
            severity: 'error',
            path: ['providers', 'openai', 'base_url'],
            line: 6,
            column: 15,
            message: expect.stringMatching(/^must be text: base URL/),
          },
        ],
        providers: [],
        models: [],
      },
    ]);
  });

  test('no key of the file or of the environment is printed', async () => {
    const key = 'sk-canary-0123456789abcdef';
    for (const more of [[], ['--json']]) {
      const text = `auth: { keys: ["${key}"] }\nproviders:\n  x: { api_key: ${key}, base_url: "${key}" }\n`;
      const { stdout, stderr } = await check(text, { OPENAI_API_KEY: key }, ...more);
      expect(stdout + stderr).not.toContain(key);
    }
  });

  test('a certificate that cannot be read is an error', async () => {
    const { code, stdout } = await check('listen: { tls: { cert: /nowhere/cert.pem, key: /nowhere/key.pem } }\n');
    expect(code).toBe(1);
    expect(stdout).toContain('listen.tls.cert: /nowhere/cert.pem cannot be read (ENOENT)');
  });

  test.each([
    [['config'], 'name an action: config check'],
    [['config', 'chek'], 'unknown action "chek"; did you mean "check"?'],
    [['config', 'check', 'a', 'b'], 'only one file'],
    [['config', 'check', 'gone.yaml'], 'gone.yaml: no such file'],
    [['config', 'check'], 'this folder has no sluice.yaml'],
  ])('%j cannot be done', async (argv, words) => {
    const { code, stdout, stderr } = await run(argv);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(words);
  });
});
