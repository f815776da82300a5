import { describe, expect, test } from 'vitest';
import { looksSecret } from '../../src/config/stored-secrets.ts';
import { findSharedProblems } from '../../src/config/validate.ts';

const SECRET = 'plainsecret-0123456789';

/** A document with these settings of a provider. */
const provider = (settings: string, url = 'https://h.example/v1'): string =>
  `providers:\n  up: { protocol: openai-chat, base_url: "${url}", ${settings} }\n`;

const find = (text: string): string[] => findSharedProblems('shared.yaml', text, undefined).map(({ message }) => message);

/** A key by reference. */
const KEY = `api_key: "\${K}"`;

const MAY_BE = /^is a secret, or may be one/;

describe('a document for all nodes must not have', () => {
  test.each([
    ['a key', `api_key: ${SECRET}`],
    ['a short key', 'api_key: abc123'],
    ['a key with a reference in it', `api_key: "plain-\${K}"`],
    ['one of several keys', `api_keys: ["\${K}", abc123]`],
    ['any header', `api_key: "\${K}", headers: { x-corp-auth: ${SECRET} }`],
    ['a short header', `api_key: "\${K}", headers: { x-corp: abc }`],
    ['a header with a reference in it', `api_key: "\${K}", headers: { x-corp: "abc-\${K}" }`],
    ['a password of a proxy with a reference in it', `api_key: "\${K}", proxy: "http://u:plain\${K}@p:1"`],
  ])('%s', (_, settings) => {
    expect(find(provider(settings))).toContainEqual(expect.stringMatching(MAY_BE));
  });

  test('a token in the path of an address', () => {
    const url = 'https://h.example/v1/0123456789abcdefghijklmnop/v1';
    expect(find(provider(KEY, url))).toContainEqual(expect.stringMatching(MAY_BE));
  });

  test.each([
    ['a password in a comment', `# password: ${SECRET}`],
    ['a password in a comment behind a setting', `models: {} # old password=${SECRET}`],
  ])('%s', (_, line) => {
    expect(looksSecret(line)).toBe(true);
    const text = provider(KEY) + line;
    expect(find(`${text}\n`)).toContainEqual(expect.stringContaining('looks like a secret'));
  });
});

describe('a document for all nodes may have', () => {
  test.each([
    ['references', `api_key: "\${K}"`],
    ['other references', `api_key: env:K, headers: { x-a: file:/run/secrets/a, x-b: "\${B}" }`],
    ['a scheme before a reference', `api_key: none, headers: { authorization: "Bearer \${TOKEN}" }`],
    ['a placeholder', 'api_key: ollama'],
    ['headers that are public', `api_key: "\${K}", headers: { HTTP-Referer: "https://app.example", anthropic-beta: tools-2024 }`],
    ['a proxy without a password', `api_key: "\${K}", proxy: "http://p:1"`],
    ['a proxy with a reference', `api_key: "\${K}", proxy: "http://u:\${P}@p:1"`],
  ])('%s', (_, settings) => {
    expect(find(provider(settings))).toEqual([]);
  });

  test.each([
    'https://h.example/openai/deployments/gpt-4o-mini-2024-07-18',
    'https://h.example/accounts/123e4567-e89b-12d3-a456-426614174000/ai/v1',
    `https://h.example/accounts/\${ACCOUNT_ID_OF_THE_TEAM_1234}/ai/v1`,
    'https://resource-group-of-the-team.openai.azure.com/v1',
  ])('the address %s', (url) => {
    expect(find(provider(KEY, url))).toEqual([]);
  });

  test.each(['# the key is in the vault', '# token: renewed monthly', '# api_key: env:GROQ_KEY_2', 'models: {} # fast'])(
    'the comment %j',
    (line) => {
      expect(looksSecret(line)).toBe(false);
    },
  );

  test('a long line takes no longer than its length', () => {
    expect(looksSecret(`#${'password'.repeat(100_000)}`)).toBe(false);
    expect(looksSecret('#'.repeat(500_000))).toBe(false);
  });
});
