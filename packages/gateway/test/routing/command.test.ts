import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import { run } from '../fake-io.ts';

const CONFIG = `
providers:
  a: { protocol: openai-chat, base_url: https://a.example/v1, api_keys: [secret-key-of-a-1, secret-key-of-a-2] }
  b: { protocol: anthropic-messages, base_url: https://b.example, api_key: k }
prices:
  "a/*": { input: 1, output: 5 }
  b/x: { input: 0.5, output: 0.5 }
models:
  list: [a/x, b/x]
  pool: [{ target: b/x, weight: 3 }, b/y]
  cheap: { strategy: cheapest, targets: [a/x, b/y, b/x] }
  quick: { strategy: fastest, targets: [b/x, b/y] }
rules:
  - { name: long, when: { input_tokens_above: 100 }, use: cheap }
  - { name: team, when: { header: { x-team: red }, tag: t=1 }, use: pool }
`;

const LONG = JSON.stringify({
  model: 'list',
  max_tokens: 5,
  system: 'word '.repeat(300),
  messages: [{ role: 'user', content: 'x' }],
});
const SESSION = JSON.stringify({ model: 'pool', messages: [{ role: 'user', content: 'x' }], prompt_cache_key: 's' });
const WORLD = { files: { 'c.yaml': CONFIG, 'long.json': LONG, 'session.json': SESSION, 'bad.json': '{' } };

/** Nothing listens there. */
const UNUSED = 'http://127.0.0.1:1';

interface Row {
  argv: string[];
  code: number;
  stdout?: (string | RegExp)[];
  stderr?: string;
}

const ROWS: Row[] = [
  { argv: ['list'], code: 0, stdout: [/^a\/x \(key 1\)\na\/x \(key 2\)\nb\/x\n$/] },
  {
    argv: ['list', '--explain'],
    code: 0,
    stdout: [
      'list: no rule matches',
      /1\. +a\/x \(key 1\) .*\$2\.00 +gets 50 % of the requests/,
      /3\. +b\/x .*\$0\.50 +tried when all before have failed/,
      'affinity: a conversation stays with its target for 300 s',
    ],
  },
  { argv: ['pool', '--explain'], code: 0, stdout: [/1\. +b\/x .*gets 75 %/, /2\. +b\/y .*price unknown +gets 25 %/] },
  { argv: ['quick', '--explain'], code: 0, stdout: ['shortest time to the first token'] },
  {
    argv: ['--request', 'long.json', '--explain'],
    code: 0,
    stdout: [
      'list: rule "long" uses cheap',
      /1\. +b\/x/,
      /2\. +a\/x \(key 1\)/,
      /4\. +b\/y +price unknown +last: its price is unknown/,
    ],
  },
  { argv: ['a/x', '--request', 'long.json', '--explain'], code: 0, stdout: ['a/x: no rule matches'] },
  { argv: ['list', '--header', 'X-Team: red', '--tag', 't=1', '--explain'], code: 0, stdout: ['rule "team" uses pool'] },
  { argv: ['list', '--header', 'X-Team: red', '--explain'], code: 0, stdout: ['no rule matches'] },
  { argv: ['--request', 'session.json', '--explain'], code: 0, stdout: ['by the session of the request'] },
  { argv: ['b/x', '--explain'], code: 0, stdout: ['tried first', 'affinity: not needed'] },
  { argv: ['pol'], code: 1, stderr: 'did you mean "pool"?' },
  { argv: [], code: 2, stderr: 'name a MODEL' },
  { argv: ['a', 'b'], code: 2, stderr: 'name one model' },
  { argv: ['list', '--request', 'bad.json'], code: 2, stderr: 'is not JSON' },
  { argv: ['list', '--header', 'x'], code: 2, stderr: '--header must be "name: value"' },
  { argv: ['list', '--from', 'x'], code: 2, stderr: '--from must be one of' },
  { argv: ['list', '--url', UNUSED], code: 2, stderr: 'no gateway responds' },
];

describe('sluice route', () => {
  test('needs no key of a provider', async () => {
    const text = `providers: { mine: { protocol: openai-chat, base_url: "http://127.0.0.1:1/v1", api_key: env:NO_KEY, headers: { x-a: "a \${NO_TOKEN}" } } }`;
    const result = await run(['route', 'mine/x', '--config', 'c.yaml'], { files: { 'c.yaml': text } });
    expect(result).toMatchObject({ code: 0, stdout: 'mine/x\n' });
    for (const [setting, name] of [
      ['api_key', 'NO_KEY'],
      ['headers.x-a', 'NO_TOKEN'],
    ])
      expect(result.stderr).toContain(`providers.mine.${setting}: the environment variable ${name} is not set`);
  });

  test('needs the other variables', async () => {
    const text = 'listen: { host: env:NO_HOST }\nmodels: { a: demo/hello }';
    const result = await run(['route', 'a', '--config', 'c.yaml'], { files: { 'c.yaml': text } });
    expect(result).toMatchObject({ code: 2, stderr: expect.stringContaining('NO_HOST is not set; set it') });
  });

  test.each(ROWS)('$argv', async ({ argv, code, stdout = [], stderr = '' }) => {
    const result = await run(['route', ...argv, '--config', 'c.yaml'], WORLD);
    expect(result).toMatchObject({ code, stderr: expect.stringContaining(stderr) });
    for (const part of stdout) expect(result.stdout).toMatch(part);
    expect(result.stdout + result.stderr).not.toContain('secret-key');
  });

  test('shows pauses of a running gateway', async () => {
    const paused = [{ model: 'x', endpoint: 'key 2', remaining_ms: 2500, failures: 5, reason: 'down' }];
    const server = createServer((request, response) => {
      const isAdmin = request.url?.startsWith('/admin/v1/providers');
      response.setHeader('x-sluice-request-id', 'r');
      response.end(isAdmin ? JSON.stringify({ providers: [{ id: 'a', paused }] }) : 'live');
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // it listens
    const result = await run(['route', 'list', '--explain', '--config', 'c.yaml', '--url', url], WORLD);
    const json = await run(['route', 'list', '--json', '--config', 'c.yaml', '--url', url], WORLD);
    server.closeAllConnections();
    server.close();
    expect(result.stdout).toMatch(/a\/x \(key 1\) +up /);
    expect(result.stdout).toMatch(/a\/x \(key 2\) +paused .*paused: tried again in 3 s/);
    expect(JSON.parse(json.stdout).candidates).toMatchObject([
      { target: 'a/x (key 1)', tier: 0, strategy: 'weighted', share: 0.5, price: 2, health: 'up', paused_ms: null },
      { target: 'a/x (key 2)', health: 'paused', paused_ms: 2500 },
      { target: 'b/x', tier: 1, strategy: 'order', protocol: 'anthropic-messages' },
    ]);
  });
});
