import { inspect } from 'node:util';
import { openaiChatCodec } from '@sluice/core/openai-chat/codec';
import { describe, expect, test } from 'vitest';
import { unlock } from '../../src/config/providers.ts';
import { type Env, SecretRegistry } from '../../src/config/secrets.ts';
import { stateOf } from './world.ts';

interface Row {
  name: string;
  yaml?: string;
  env?: Env;
  /** The providers but the demo, as far as they matter. */
  has: Record<string, Expected>;
  warns?: string[];
}

interface Expected {
  url?: string;
  key?: string | undefined;
  from?: string | undefined;
  protocol?: string;
  repair?: boolean;
  passthrough?: string;
  official?: boolean;
  auth?: string;
  api_version?: string;
  path?: string;
  profile?: string;
}

const ROWS: Row[] = [
  { name: 'nothing', has: {} },
  {
    name: 'a key in the environment',
    env: { OPENAI_API_KEY: 'k1' },
    has: {
      openai: {
        url: 'https://api.openai.com/v1',
        key: 'k1',
        from: 'OPENAI_API_KEY',
        protocol: 'openai-chat',
        official: true,
        repair: false,
        passthrough: 'known',
      },
      'openai-responses': { key: 'k1', protocol: 'openai-responses', official: true, repair: false, profile: 'openai' },
    },
  },
  { name: 'an empty variable', env: { OPENAI_API_KEY: '', GROQ_API_KEY: '  ' }, has: {} },
  {
    name: 'the first name that is set wins',
    env: { GOOGLE_GENERATIVE_AI_API_KEY: 'c', GOOGLE_API_KEY: 'b', GEMINI_API_KEY: 'a' },
    has: { google: { key: 'a', from: 'GEMINI_API_KEY', url: 'https://generativelanguage.googleapis.com/v1beta' } },
  },
  { name: 'another name', env: { GOOGLE_API_KEY: 'b' }, has: { google: { key: 'b', from: 'GOOGLE_API_KEY' } } },
  { name: 'a key of Anthropic', env: { ANTHROPIC_API_KEY: 'k' }, has: { anthropic: { key: 'k', auth: undefined as never } } },
  { name: 'a token of Anthropic', env: { ANTHROPIC_AUTH_TOKEN: 't' }, has: { anthropic: { key: 't', auth: 'bearer' } } },
  {
    name: 'key and address in the environment are a pair',
    env: { OPENAI_API_KEY: 'k', OPENAI_BASE_URL: 'http://10.0.0.1:8000/v1' },
    has: {
      openai: { url: 'http://10.0.0.1:8000/v1', key: 'k', official: false, repair: true },
      'openai-responses': { url: 'http://10.0.0.1:8000/v1', official: false },
    },
  },
  {
    name: 'the address of an SDK without a version',
    env: { ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: 'https://api.deepseek.com/anthropic' },
    has: { anthropic: { url: 'https://api.deepseek.com/anthropic/v1', official: false, repair: true } },
  },
  {
    name: 'a shell that is set up for clients of the gateway',
    env: {
      ANTHROPIC_API_KEY: 'k',
      ANTHROPIC_BASE_URL: 'http://127.0.0.1:4141',
      OPENAI_API_KEY: 'k',
      OPENAI_BASE_URL: 'http://localhost:4141/v1',
    },
    has: {
      openai: { url: 'https://api.openai.com/v1', official: true },
      'openai-responses': { official: true },
      anthropic: { url: 'https://api.anthropic.com/v1', official: true },
    },
    warns: ['OPENAI_BASE_URL points to the gateway itself', 'ANTHROPIC_BASE_URL points to the gateway itself'],
  },
  {
    name: 'the same, with an entry in the file',
    yaml: 'providers: { anthropic: {} }',
    env: { ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: 'http://127.0.0.1:4141' },
    has: { anthropic: { url: 'https://api.anthropic.com/v1', official: true } },
    warns: ['ANTHROPIC_BASE_URL points to the gateway itself'],
  },
  {
    name: 'nonsense in the environment',
    env: { OPENAI_API_KEY: 'two words', GROQ_API_KEY: 'k', ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: 'api.example.com' },
    has: { groq: { key: 'k' } },
    warns: [
      'OPENAI_API_KEY must be printable ASCII without spaces; provider "openai" is skipped',
      'OPENAI_API_KEY must be printable ASCII without spaces; provider "openai-responses" is skipped',
      'ANTHROPIC_BASE_URL must be a URL starting with http:// or https://; provider "anthropic" is skipped',
    ],
  },
  {
    name: 'two protocols, one key',
    env: { DEEPSEEK_API_KEY: 'k' },
    has: {
      deepseek: { url: 'https://api.deepseek.com/v1', repair: true, profile: 'deepseek' },
      'deepseek-anthropic': { url: 'https://api.deepseek.com/anthropic/v1', auth: 'bearer', profile: 'deepseek' },
    },
  },
  {
    name: 'endpoints below the host',
    env: { PERPLEXITY_API_KEY: 'k' },
    has: { perplexity: { url: 'https://api.perplexity.ai', path: '' } },
  },
  {
    name: 'a server on this machine',
    env: { OLLAMA_HOST: '0.0.0.0' },
    has: { ollama: { url: 'http://127.0.0.1:11434/v1', key: undefined } },
  },
  { name: 'a key without an address', env: { VLLM_API_KEY: 'k' }, has: {} },
  {
    name: 'an address and a key of such a server',
    env: { VLLM_API_KEY: 'k', VLLM_BASE_URL: 'gpu:8000/v1' },
    has: { vllm: { url: 'http://gpu:8000/v1', key: 'k' } },
  },
  {
    name: 'such a server, mentioned',
    yaml: 'providers:\n  ollama:\n',
    has: { ollama: { url: 'http://127.0.0.1:11434/v1', repair: true } },
  },
  {
    name: 'a local server at the address of the gateway',
    env: { VLLM_BASE_URL: 'localhost:4141' },
    has: {},
    warns: ['VLLM_BASE_URL points to the gateway itself'],
  },
  { name: 'GITHUB_TOKEN is not used', env: { GITHUB_TOKEN: 'k' }, has: {} },
  {
    name: 'Azure with its v1 API',
    env: { AZURE_OPENAI_API_KEY: 'k', AZURE_OPENAI_ENDPOINT: 'https://res.openai.azure.com/' },
    has: {
      azure: { url: 'https://res.openai.azure.com/openai/v1', auth: 'api-key' },
      'azure-responses': { url: 'https://res.openai.azure.com/openai/v1' },
    },
  },
  {
    name: 'Azure with a dated version',
    env: { AZURE_API_KEY: 'k', AZURE_RESOURCE_NAME: 'res', OPENAI_API_VERSION: '2024-10-21' },
    has: { azure: { url: 'https://res.openai.azure.com', api_version: '2024-10-21' }, 'azure-responses': {} },
  },
  { name: 'Azure without a resource', env: { AZURE_API_KEY: 'k' }, has: {} },
  {
    name: 'Azure with a resource that is none',
    env: { AZURE_API_KEY: 'k', AZURE_RESOURCE_NAME: 'evil.example/' },
    has: {},
    warns: [
      'AZURE_RESOURCE_NAME is not a valid resource name; provider "azure" is skipped',
      'provider "azure-responses" is skipped',
    ],
  },
  {
    name: 'Azure in the file',
    yaml: 'providers: { azure: { base_url: https://res.openai.azure.com, api_version: "2024-10-21" } }',
    env: { AZURE_API_KEY: 'k' },
    has: { azure: { key: 'k', api_version: '2024-10-21' }, 'azure-responses': { key: 'k', api_version: '2024-10-21' } },
  },

  {
    name: 'a custom provider',
    yaml: 'providers: { mine: { protocol: gemini, base_url: https://gemini.example, auth: bearer } }',
    has: {
      mine: {
        url: 'https://gemini.example/v1beta',
        protocol: 'gemini',
        key: undefined,
        repair: true,
        auth: 'bearer',
        profile: 'mine',
      },
    },
  },
  {
    name: 'a provider that extends a known one',
    yaml: 'providers: { fast: { extends: groq, api_key: "abc" } }',
    has: { fast: { url: 'https://api.groq.com/openai/v1', key: 'abc', from: 'file', profile: 'groq' } },
  },
  {
    name: 'a provider that extends an official one at its address',
    yaml: 'providers: { work: { extends: openai, api_key: "abc" } }',
    has: { work: { official: true, repair: false } },
  },
  {
    name: 'repair where it would not be',
    yaml: 'providers: { anthropic: { repair: true, api_key: x } }',
    has: { anthropic: { official: true, repair: true } },
  },
  {
    name: 'no repair where it would be',
    yaml: 'providers: { groq: { repair: false, api_key: x } }',
    has: { groq: { official: false, repair: false } },
  },
  {
    name: 'passthrough is known by default, and holds for all rows of a vendor when set',
    yaml: 'providers: { openai: { passthrough: off }, work: { extends: groq, api_key: x, passthrough: all } }',
    env: { OPENAI_API_KEY: 'k', GROQ_API_KEY: 'k' },
    has: {
      openai: { passthrough: 'off' },
      'openai-responses': { passthrough: 'off' },
      groq: { passthrough: 'known' },
      work: { passthrough: 'all' },
    },
  },
  {
    name: 'the key of the environment is not sent elsewhere',
    yaml: 'providers: { openai: { base_url: https://proxy.example/v1 } }',
    env: { OPENAI_API_KEY: 'k' },
    has: {
      openai: { url: 'https://proxy.example/v1', key: undefined, official: false },
      'openai-responses': { url: 'https://proxy.example/v1', key: undefined },
    },
    warns: [`OPENAI_API_KEY is not sent to this address; to allow it, set api_key: \${OPENAI_API_KEY}`],
  },
  {
    name: 'unless the file sets it',
    yaml: `providers: { openai: { base_url: https://proxy.example/v1, api_key: \${OPENAI_API_KEY} } }`,
    env: { OPENAI_API_KEY: 'k' },
    has: { openai: { key: 'k', from: 'file' }, 'openai-responses': { key: 'k' } },
  },
  {
    name: 'a key of the file is not sent to an address of the environment',
    yaml: 'providers: { openai: { api_key: "abc" }, work: { extends: openai, api_key: "def" }, lmstudio: { api_key: "ghi" } }',
    env: { OPENAI_BASE_URL: 'http://10.0.0.1/v1', LMSTUDIO_BASE_URL: 'http://10.0.0.2/v1' },
    has: {
      openai: { url: 'https://api.openai.com/v1', key: 'abc', official: true },
      'openai-responses': { url: 'https://api.openai.com/v1', key: 'abc' },
      work: { url: 'https://api.openai.com/v1', key: 'def' },
      lmstudio: { url: 'http://10.0.0.2/v1', key: 'ghi' },
    },
  },
  {
    name: 'a header instead of a key',
    yaml: 'providers: { groq: { headers: { Authorization: "Bearer x" } } }',
    env: { GROQ_API_KEY: 'k' },
    has: { groq: { key: undefined } },
  },
  {
    name: 'switched off',
    yaml: 'providers: { openai: false }',
    env: { OPENAI_API_KEY: 'k', GROQ_API_KEY: 'k' },
    has: { groq: {} },
  },
  {
    name: 'settings of a vendor apply to all its rows',
    yaml: 'providers: { openai: { api_key: "abc", idle_timeout: 9m } }',
    env: { OPENAI_API_KEY: 'k' },
    has: { openai: { key: 'abc' }, 'openai-responses': { key: 'abc', official: true } },
  },
  {
    name: 'but not to a row with another base URL',
    yaml: 'providers: { deepseek: { base_url: https://proxy.example/v1, api_key: "abc" } }',
    has: { deepseek: { key: 'abc' } },
  },
  {
    name: 'the row of the vendor with the requested protocol',
    yaml: 'providers: { deepseek: { protocol: anthropic, api_key: "abc" } }',
    has: { deepseek: { url: 'https://api.deepseek.com/anthropic/v1', protocol: 'anthropic-messages' }, 'deepseek-anthropic': {} },
  },
  {
    name: 'a custom path',
    yaml: 'providers: { mine: { protocol: anthropic, base_url: https://x.example/api/, path: "" } }',
    has: { mine: { url: 'https://x.example/api/', path: '' } },
  },
];

describe('providers', () => {
  test.each(ROWS)('$name', ({ yaml, env, has, warns = [] }) => {
    const { providers, warnings } = stateOf({ yaml, env });
    expect([...providers.keys()].sort()).toEqual([...Object.keys(has), 'demo'].sort());
    for (const [id, expected] of Object.entries(has)) {
      const found = providers.get(id);
      if (!found) throw new Error(`no ${id}`);
      const { provider, key, keyFrom, repair, passthrough, official, profileId } = found;
      const { auth, api_version, path } = provider.adapter_config ?? {};
      const actual = {
        url: provider.base_url,
        protocol: provider.protocol,
        key: key?.reveal(),
        from: keyFrom,
        repair,
        passthrough,
        official,
        auth,
        api_version,
        path,
        profile: profileId,
      };
      expect(actual).toMatchObject(expected);
      expect(provider).not.toHaveProperty('api_key');
    }
    expect(warnings.map(({ message }) => message)).toEqual(warns.map((warning) => expect.stringContaining(warning)));
  });
});

test('the demo provider is always available', () => {
  expect(stateOf({}).providerFor('demo')).toMatchObject({ id: 'demo', isDemo: true });
  expect(stateOf({}).providerFor('openai')).toBeUndefined();
});

test('settings reach the core', () => {
  const yaml = `providers:
  mine:
    protocol: openai-chat
    base_url: https://x.example/v1
    api_key: the-key-itself
    headers: { X-Team: the-team-token }
    organization: org
    project: prj
    profile: { stream_usage: false }
    idle_timeout: 9m`;
  const secrets = new SecretRegistry();
  const mine = stateOf({ yaml, secrets }).providerFor('mine');
  if (!mine) throw new Error('no provider');
  expect(mine.provider.profile).toEqual({ stream_usage: false });
  expect(mine.times).toMatchObject({ betweenEventsMs: 540_000, connectMs: 5000 });
  expect(inspect(mine, { depth: 9 }) + JSON.stringify(mine)).not.toMatch(/the-key-itself|the-team-token/);
  expect(openaiChatCodec.buildHeaders(unlock(mine))).toMatchObject({
    authorization: 'Bearer the-key-itself',
    'x-team': 'the-team-token',
    'openai-organization': 'org',
    'openai-project': 'prj',
  });
  expect(secrets.redact('the-key-itself and the-team-token')).toBe('*** and ***');
});

describe('client keys', () => {
  test.each<[string, string | undefined, Env, string[]]>([
    ['none', undefined, {}, []],
    ['of the file', 'auth: { keys: [a, b] }', {}, ['a', 'b']],
    ['of the environment', undefined, { SLUICE_KEYS: 'a, b,,' }, ['a', 'b']],
    ['the file wins', 'auth: { keys: [a] }', { SLUICE_KEYS: 'b' }, ['a']],
  ])('%s', (_, yaml, env, keys) => expect(stateOf({ yaml, env }).keys.map(({ key }) => key.reveal())).toEqual(keys));

  test.each(['127.0.0.1', 'localhost', '::1'])('%s needs no client key', (host) =>
    expect(stateOf({ listen: { host } }).listen.host).toBe(host),
  );

  test.each(['0.0.0.0', '::', '192.168.1.5', 'example.com'])(
    '%s needs a client key, also when set on the command line',
    (host) => {
      expect(() => stateOf({ listen: { host } })).toThrow(`listen.host: ${host} is reachable from other machines`);
      expect(() => stateOf({ listen: { host }, env: { SLUICE_KEYS: 'short' } })).toThrow('at least 16 characters');
      expect(stateOf({ listen: { host }, env: { SLUICE_KEYS: 'long-enough-to-be-a-key' } }).listen.host).toBe(host);
    },
  );
});

test('the command line overrides the file', () =>
  expect(stateOf({ yaml: 'listen: { port: 1 }', listen: { port: 2 } }).listen).toEqual({ host: '127.0.0.1', port: 2 }));
