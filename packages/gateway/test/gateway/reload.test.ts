import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { ConfigError } from '../../src/config/problems.ts';
import { type Running, run } from '../../src/server/run.ts';
import { Gateway } from '../../src/server/server.ts';
import { expectAnswered, expectRefused } from './check.ts';
import { cutAfter } from './dialects.ts';
import { Faultd } from './faultd.ts';
import { chunk, LAST_CHUNK, streamHead } from './http.ts';
import { modelOf, PAIRS, type Pair, providersAt } from './pairs.ts';
import { RawClient } from './raw-client.ts';
import { good } from './scripts.ts';
import { ask, askText, eventually } from './start.ts';

// A file that changes while streams run: they keep the state that they began with; what cannot be used is refused, and the log says why.

let first: Faultd;
let second: Faultd;
let running: Running;
let folder: string;
/** Standard error, in lines. */
let lines: string[];

beforeAll(async () => {
  first = await Faultd.start();
  second = await Faultd.start();
});

afterAll(async () => {
  await first.stop();
  await second.stop();
});

/** Short waits; the defaults are for editors and slow disks. */
const WATCH = { stableMs: 5, quietMs: 5 };

const write = (config: object | string): void =>
  writeFileSync(join(folder, 'sluice.json'), typeof config === 'string' ? config : JSON.stringify(config), { mode: 0o600 });

const at = (upstream: Faultd, more: object = {}): object => ({ listen: { port: 0 }, providers: providersAt(upstream), ...more });

beforeEach(async () => {
  lines = [];
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    lines.push(String(text));
    return true;
  });
  folder = mkdtempSync(join(tmpdir(), 'sluice-reload-'));
  write(at(first));
  running = await run({ config: join(folder, 'sluice.json'), folder, env: {}, listen: {}, watch: WATCH });
});

afterEach(async () => {
  await running.close(0);
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

const log = (): Record<string, unknown>[] => lines.map((line) => JSON.parse(line));
const logged = (message: string): Promise<Record<string, unknown>> => eventually(() => log().find(({ msg }) => msg === message));

const asking = (pair: Pair, stream: boolean) => ({ client: pair.client, model: modelOf(pair), stream });

const READ = 'configuration reloaded';
const REFUSED = 'configuration rejected; keeping the previous one';

test.each(PAIRS)('a stream keeps the upstream, the key and the model it began with: $name', async (pair) => {
  const { before, after } = cutAfter(pair.upstream, 'two');
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  first.play([
    { send: streamHead() },
    { send: chunk(before.join('')) },
    { run: () => released },
    { send: chunk(after.join('')) },
    { send: LAST_CHUNK },
  ]);
  const client = await RawClient.open(running.url);
  client.send(askText(asking(pair, true)));
  await client.sees('two');

  write(at(second));
  await running.reload();
  await logged(READ);
  // Whoever comes now is answered by the new one, in streams and in whole answers.
  for (const stream of [true, false]) {
    second.play(good(pair, stream));
    expectAnswered(pair, stream, await ask(running.url, asking(pair, stream)));
    expect(second.served).toHaveLength(1);
  }
  // Even its removal does not touch what runs.
  write({ listen: { port: 0 }, providers: { another: { protocol: 'openai-chat', base_url: second.url } } });
  await running.reload();
  expectRefused(pair.client, await ask(running.url, asking(pair, false)), 404);

  release();
  expectAnswered(pair, true, await client.reply());
  expect(first.served).toHaveLength(1);
  client.leave();
});

describe('an invalid file', () => {
  test.each([
    ['is half written', JSON.stringify({ providers: {} }).slice(0, -3), /sluice\.json:1:/],
    ['is empty', '', /has no settings/],
    ['has only a comment', '# nothing', /has no settings/],
    ['is an empty map', '{}', /has no settings/],
    ['has no provider any more', { listen: { port: 0 } }, /would remove the last provider/],
    ['has an unknown setting', { listn: {} }, /did you mean "listen"/],
    ['lets strangers in', { listen: { host: '0.0.0.0' } }, /is reachable from other machines/],
    ['wants a variable that is not set', '{ "auth": { "keys": ["$' + '{NOBODY_SET_IT}"] } }', /NOBODY_SET_IT is not set/],
  ])('that %s is rejected with the reason, and the previous configuration stays', async (_, config, reason) => {
    write(config);
    await running.reload();
    const line = await logged(REFUSED);
    expect(line).toMatchObject({ level: 'error', reason: expect.stringMatching(reason) });
    expect(log().some(({ msg }) => msg === READ)).toBe(false);
    const pair = PAIRS[4] as Pair;
    first.play(good(pair, true));
    expectAnswered(pair, true, await ask(running.url, asking(pair, true)));
  });

  test('shows no secret in the log', async () => {
    write('{ "auth": { "keys": ["sk-proj-canary0123456789abcdef" } }');
    await running.reload();
    await logged(REFUSED);
    expect(lines.join('')).not.toContain('canary0123456789');
  });
});

test('a changed file is reloaded automatically', async () => {
  write(at(second));
  await logged(READ);
});

describe('settings that a reload cannot change', () => {
  test('listen, limits and log keep their values with a warning', async () => {
    write(at(first, { listen: { port: 1 }, limits: { messages: 1 }, log: { level: 'debug' } }));
    await running.reload();
    expect(await logged('changes in these sections take effect after a restart')).toMatchObject({
      level: 'warn',
      sections: ['listen', 'limits', 'log'],
    });
    const pair = PAIRS[0] as Pair;
    first.play(good(pair, false));
    const messages = [1, 2].map(() => ({ role: 'user', content: 'hi' }));
    expectAnswered(pair, false, await ask(running.url, { ...asking(pair, false), body: { messages } }));
  });

  test('unchanged settings cause no warning', async () => {
    write(at(second));
    await running.reload();
    await logged(READ);
    expect(log().filter(({ level }) => level === 'warn')).toEqual([]);
  });
});

test('warnings of the new file are logged', async () => {
  write(at(first, { models: { fast: ['mend-openai-chat/m', 'openai/gpt-5'] } }));
  await running.reload();
  expect(await logged('configuration warning')).toMatchObject({
    level: 'warn',
    reason: expect.stringContaining('openai/gpt-5 is skipped: provider "openai" needs OPENAI_API_KEY'),
  });
});

test('a removed client key is rejected at once', async () => {
  const headers = { 'x-api-key': 'a-client-key-0123456789' };
  const pair = PAIRS[4] as Pair;
  write(at(first, { auth: { keys: ['a-client-key-0123456789'] } }));
  await running.reload();
  first.play(good(pair, false));
  expectAnswered(pair, false, await ask(running.url, { ...asking(pair, false), headers }));
  expectRefused(pair.client, await ask(running.url, asking(pair, false)), 401);
  write(at(first, { auth: { keys: ['another-client-key-0123456789'] } }));
  await running.reload();
  expectRefused(pair.client, await ask(running.url, { ...asking(pair, false), headers }), 401);
});

describe('a reload and the client keys', () => {
  const CLIENT_KEY = 'a-client-key-0123456789';
  const auth = { keys: [CLIENT_KEY] };
  const pair = PAIRS[4] as Pair;

  test('a reload that removes all client keys is rejected, and clients still need one', async () => {
    write(at(first, { auth }));
    await running.reload();
    await logged(READ);
    write(at(first));
    await running.reload();
    expect(await logged(REFUSED)).toMatchObject({ reason: expect.stringContaining('would remove all client keys') });
    expectRefused(pair.client, await ask(running.url, asking(pair, false)), 401);
  });

  test('a reload with reset: true removes all client keys with a warning', async () => {
    write(at(first, { auth }));
    await running.reload();
    write(at(first, { reset: true }));
    await running.reload();
    expect(await logged('configuration warning')).toMatchObject({ reason: expect.stringContaining('"reset: true"') });
    first.play(good(pair, false));
    expectAnswered(pair, false, await ask(running.url, asking(pair, false)));
  });

  test('a gateway that is bound to a public address keeps its client keys, also with reset: true', async () => {
    vi.spyOn(Gateway.prototype, 'listen').mockResolvedValue('http://[::]:1');
    write(at(first, { auth }));
    const exposed = await run({ config: join(folder, 'sluice.json'), folder, env: {}, listen: {}, watch: WATCH });
    lines.length = 0;
    write(at(first, { reset: true }));
    await exposed.reload();
    expect(await logged(REFUSED)).toMatchObject({ reason: expect.stringContaining('the bound address :: is reachable') });
    await exposed.close(0);
  });

  test('a host name that resolves to a public address needs client keys at start', async () => {
    vi.spyOn(Gateway.prototype, 'listen').mockResolvedValue('http://192.0.2.1:1');
    const started = run({ folder, env: {}, listen: { host: 'localhost' } });
    await expect(started).rejects.toThrow(ConfigError);
    await expect(started).rejects.toThrow('192.0.2.1 is reachable from other machines');
  });
});

describe('responses while the file changes', () => {
  const REQUESTS = 200;
  const upstreams: { name: string; server: Server; url: string }[] = [];

  /** Responds with its own name, the model, and the text of the request. */
  async function startUpstream(name: string): Promise<void> {
    const server = createServer(async (request, response) => {
      let text = '';
      for await (const piece of request) text += String(piece);
      const { model, messages, stream } = JSON.parse(text);
      const content = [name, model, messages[0].content].join('|');
      const choice = { index: 0, finish_reason: 'stop', [stream ? 'delta' : 'message']: { role: 'assistant', content } };
      const body = JSON.stringify({ id: 'c', created: 1, model, choices: [choice] });
      if (stream) response.writeHead(200, { 'content-type': 'text/event-stream' }).end(`data: ${body}\n\ndata: [DONE]\n\n`);
      else response.writeHead(200, { 'content-type': 'application/json' }).end(body);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo; // a TCP server has one
    upstreams.push({ name, server, url: `http://127.0.0.1:${port}/v1` });
  }

  beforeAll(async () => {
    await startUpstream('a');
    await startUpstream('b');
  });

  afterAll(() => {
    for (const { server } of upstreams) server.close();
  });

  const version = (number: number): string => {
    const providers = upstreams.map(({ name, url }) => `  ${name}: { protocol: openai-chat, base_url: "${url}" }\n`).join('');
    return `listen: { port: 0 }\nproviders:\n${providers}models:\n  alias: ${number % 2 === 0 ? 'a' : 'b'}/model-${number}\n`;
  };

  test('every response comes from a configuration in force, while the file changes', async () => {
    const broken = ['', '# a comment\n', '---\n', 'null\n', '{}\n', version(0).slice(0, 30), 'listen: { port: 0 }\n'];
    let written = 0;
    let seen = 0;
    let isOver = false;
    const file = join(folder, 'sluice.yaml');
    writeFileSync(file, version(0), { mode: 0o600 });
    const changing = await run({ config: file, folder, env: { OPENAI_API_KEY: 'unused' }, listen: {}, watch: WATCH });

    const keepWriting = async (): Promise<void> => {
      for (let round = 0; !isOver; round++) {
        writeFileSync(file, broken[round % broken.length] ?? '');
        await changing.reload();
        written++;
        writeFileSync(file, version(written));
        await changing.reload();
      }
    };
    const request = async (number: number): Promise<void> => {
      const oldest = seen;
      const stream = number % 2 === 1;
      const response = await fetch(`${changing.url}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify({ model: 'alias', stream, messages: [{ role: 'user', content: `request ${number}` }] }),
      });
      const text = await response.text();
      const [, name, found = ''] = /"([ab])\|model-(\d+)\|request (\d+)"/.exec(text) ?? [];
      expect(text).toContain(`"${name}|model-${found}|request ${number}"`);
      expect(name).toBe(Number(found) % 2 === 0 ? 'a' : 'b');
      expect(Number(found)).toBeGreaterThanOrEqual(oldest);
      expect(Number(found)).toBeLessThanOrEqual(written);
      seen = Math.max(seen, Number(found));
    };
    const keepRequesting = async (worker: number): Promise<void> => {
      for (let i = worker; i < REQUESTS; i += 4) await request(i);
    };

    const writing = keepWriting();
    try {
      await Promise.all([0, 1, 2, 3].map(keepRequesting));
    } finally {
      isOver = true;
      await writing;
      await changing.close(0);
    }
    expect(seen).toBeGreaterThan(0);
    const messages = log().map(({ msg }) => msg);
    expect(messages).toContain(READ);
    expect(messages).toContain(REFUSED);
  });
});
