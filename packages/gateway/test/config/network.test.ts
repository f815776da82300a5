import { describe, expect, test } from 'vitest';
import { SettingFiles } from '../../src/config/files.ts';
import { chooseNetwork, DIRECT, findProxyFault, isExcluded, type Network } from '../../src/config/network.ts';
import { type Env, Secret } from '../../src/config/secrets.ts';
import { stateOf } from './world.ts';

const PROXY = 'http://proxy.example:3128';

function choose(origin: string, env: Env, proxy?: string): Network & { warnings: string[] } {
  const warnings: string[] = [];
  const context = { env, files: new SettingFiles('/'), warn: (message: string) => void warnings.push(message) };
  return { ...chooseNetwork(origin, proxy === undefined ? {} : { proxy: new Secret(proxy) }, context), warnings };
}

describe('the proxy of the environment', () => {
  test.each<[string, string, Env, string | undefined]>([
    ['https uses HTTPS_PROXY', 'https://api.example', { HTTPS_PROXY: PROXY, HTTP_PROXY: 'http://other:1' }, PROXY],
    ['http uses HTTP_PROXY', 'http://api.example', { HTTP_PROXY: PROXY, HTTPS_PROXY: 'http://other:1' }, PROXY],
    ['lower case is used first', 'https://api.example', { https_proxy: PROXY, HTTPS_PROXY: 'http://other:1' }, PROXY],
    ['a value without a scheme', 'https://api.example', { HTTPS_PROXY: 'proxy.example:3128' }, PROXY],
    ['a proxy with TLS', 'https://api.example', { HTTPS_PROXY: 'https://proxy.example' }, 'https://proxy.example'],
    ['an empty value', 'https://api.example', { HTTPS_PROXY: ' ' }, undefined],
    ['none', 'https://api.example', {}, undefined],
    ['HTTPS_PROXY is not for http', 'http://api.example', { HTTPS_PROXY: PROXY }, undefined],
    ['localhost is direct', 'https://localhost:1234', { HTTPS_PROXY: PROXY }, undefined],
    ['127.0.0.1 is direct', 'http://127.0.0.1:11434', { HTTP_PROXY: PROXY }, undefined],
    ['[::1] is direct', 'http://[::1]:11434', { HTTP_PROXY: PROXY }, undefined],
    ['NO_PROXY', 'https://api.example', { HTTPS_PROXY: PROXY, NO_PROXY: 'x, api.example' }, undefined],
    ['no_proxy', 'https://api.example', { HTTPS_PROXY: PROXY, no_proxy: '*' }, undefined],
  ])('%s', (_, origin, env, expected) => expect(choose(origin, env).proxy?.origin).toBe(expected));

  test('one that cannot be used is ignored with a warning that does not quote it', () => {
    const { proxy, warnings } = choose('https://api.example', { HTTPS_PROXY: 'socks5://user:secret@x:1080' });
    expect(proxy).toBeUndefined();
    expect(warnings).toEqual(['HTTPS_PROXY is not the http:// or https:// URL of a proxy and is ignored']);
  });

  test('proxy of the provider takes precedence, also for this machine, and direct means none', () => {
    const env = { HTTPS_PROXY: 'http://other:1', NO_PROXY: '*' };
    expect(choose('https://127.0.0.1', env, PROXY).proxy?.origin).toBe(PROXY);
    expect(choose('https://api.example', { HTTPS_PROXY: PROXY }, 'direct')).toMatchObject(DIRECT);
  });

  test('a password is sent as Basic, and is in neither the id nor the text of the network', () => {
    const network = choose('https://api.example', {}, 'http://us%40er:pass%2Fword-0123@proxy.example:3128');
    expect(network.proxy?.authorization?.reveal()).toBe(`Basic ${Buffer.from('us@er:pass/word-0123').toString('base64')}`);
    expect(network.proxy?.password?.reveal()).toBe('pass/word-0123');
    expect(JSON.stringify(network)).not.toMatch(/word-0123/);
    expect(network.id).not.toBe(choose('https://api.example', {}, 'http://us%40er:other@proxy.example:3128').id);
  });
});

describe('NO_PROXY', () => {
  test.each([
    ['*', 'a.example', '443'],
    ['example', 'a.example', '443'],
    ['.example', 'a.example', '443'],
    ['*.example', 'b.a.example', '443'],
    ['EXAMPLE', 'A.Example', '443'],
    ['x y,a.example', 'a.example', '443'],
    ['a.example:443', 'a.example', '443'],
    ['10.0.0.1', '10.0.0.1', '80'],
    ['10.0.0.0/8', '10.1.2.3', '80'],
    ['10.0.0.1:80', '10.0.0.1', '80'],
    ['fd00::/8', '[fd00::1]', '80'],
    ['[fd00::1]:80', '[fd00::1]', '80'],
    ['fd00::1', '[fd00::1]', '80'],
  ])('%s names %s:%s', (list, host, port) => expect(isExcluded(list, host, port)).toBe(true));

  test.each([
    ['', 'a.example', '443'],
    [',, ,', 'a.example', '443'],
    ['.', 'a.example', '443'],
    ['ample', 'a.example', '443'],
    ['a.example', 'example', '443'],
    ['a.example:80', 'a.example', '443'],
    ['10.0.0.0/8', '11.0.0.1', '80'],
    ['10.0.0.0/99', '10.0.0.1', '80'],
    ['10.0.0.0/x', '10.0.0.1', '80'],
    ['0.0.1', '10.0.0.1', '80'],
    ['::ffff', '[fd00::1]', '80'],
    ['[', 'a.example', '443'],
  ])('%j does not name %s:%s', (list, host, port) => expect(isExcluded(list, host, port)).toBe(false));
});

describe('settings of a provider', () => {
  const yaml = (line: string): string =>
    `providers:\n  x:\n    protocol: openai-chat\n    base_url: https://x.example/v1\n    ${line}\n`;

  test.each([
    ['proxy: ftp://proxy.example', 'providers.x.proxy: must be a URL starting with http:// or https://, or direct'],
    ['proxy: http://proxy.example/path', 'providers.x.proxy: must be scheme, host and port only'],
    ['proxy: http://u:secret-word@proxy.example/?x', 'providers.x.proxy: must be scheme, host and port only'],
    ['proxy: ""', 'providers.x.proxy: must be a URL'],
    ['ca: /nowhere/ca.pem', 'providers.x.ca: /nowhere/ca.pem cannot be read (ENOENT)'],
    ['ca: /etc/hostname', 'providers.x.ca: /etc/hostname must contain certificates in PEM'],
    ['ca: /', 'providers.x.ca: / must be a file of at most 1024 KiB'],
  ])('%s is rejected', (line, message) => {
    const attempt = (): unknown => stateOf({ yaml: yaml(line) });
    expect(attempt).toThrow(message);
    expect(attempt).not.toThrow('secret-word');
  });

  test('a known provider takes the proxy of its vendor entry', () => {
    const state = stateOf({ yaml: `providers: { openai: { api_key: x, proxy: "${PROXY}" } }` });
    expect(state.providerFor('openai')?.network.proxy?.origin).toBe(PROXY);
    expect(state.providerFor('openai-responses')?.network.proxy?.origin).toBe(PROXY);
    expect(state.providerFor('demo')?.network).toBe(DIRECT);
  });

  test('a provider of the environment uses the proxy of the environment', () => {
    const state = stateOf({ env: { OPENAI_API_KEY: 'x', HTTPS_PROXY: PROXY } });
    expect(state.providerFor('openai')?.network.proxy?.origin).toBe(PROXY);
  });
});

test.each(['http://proxy', 'https://proxy:3128/', 'http://u:p@10.0.0.1:1'])('%s is the address of a proxy', (text) =>
  expect(findProxyFault(text)).toBeUndefined(),
);
