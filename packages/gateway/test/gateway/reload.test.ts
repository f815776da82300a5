import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Running, run } from '../../src/server/run.ts';
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

const write = (config: object | string): void =>
  writeFileSync(join(folder, 'sluice.json'), typeof config === 'string' ? config : JSON.stringify(config));

const at = (upstream: Faultd, more: object = {}): object => ({ listen: { port: 0 }, providers: providersAt(upstream), ...more });

beforeEach(async () => {
  lines = [];
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    lines.push(String(text));
    return true;
  });
  folder = mkdtempSync(join(tmpdir(), 'sluice-reload-'));
  write(at(first));
  running = await run({ config: join(folder, 'sluice.json'), folder, env: {}, listen: {} });
});

afterEach(async () => {
  await running.close(0);
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

const log = (): Record<string, unknown>[] => lines.map((line) => JSON.parse(line));
const logged = (message: string): Promise<Record<string, unknown>> => eventually(() => log().find(({ msg }) => msg === message));

const asking = (pair: Pair, stream: boolean) => ({ client: pair.client, model: modelOf(pair), stream });

const READ = 'the configuration was read again';
const REFUSED = 'the configuration was refused; the one before holds';

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

describe('a file that cannot be used', () => {
  test.each([
    ['is half written', JSON.stringify({ providers: {} }).slice(0, -3), /sluice\.json:1:/],
    ['is empty', '', /is empty/],
    ['has an unknown setting', { listn: {} }, /did you mean "listen"/],
    ['lets strangers in', { listen: { host: '0.0.0.0' } }, /can be reached from elsewhere/],
    ['wants a variable that is not set', '{ "auth": { "keys": ["$' + '{NOBODY_SET_IT}"] } }', /NOBODY_SET_IT is not set/],
  ])('because it %s is refused with its reason, and the one before holds', async (_, config, reason) => {
    write(config);
    await running.reload();
    const line = await logged(REFUSED);
    expect(line).toMatchObject({ level: 'error', reason: expect.stringMatching(reason) });
    expect(log().some(({ msg }) => msg === READ)).toBe(false);
    const pair = PAIRS[4] as Pair;
    first.play(good(pair, true));
    expectAnswered(pair, true, await ask(running.url, asking(pair, true)));
  });

  test('shows no secret of it', async () => {
    write('{ "auth": { "keys": ["sk-proj-canary0123456789abcdef" } }');
    await running.reload();
    await logged(REFUSED);
    expect(lines.join('')).not.toContain('canary0123456789');
  });
});

test('a file that changed is read without being told to', async () => {
  write(at(second));
  await logged(READ);
});

describe('what a reload cannot do', () => {
  test('is warned of: the socket, the limits and the log stay', async () => {
    write(at(first, { listen: { port: 1 }, limits: { messages: 1 }, log: { level: 'debug' } }));
    await running.reload();
    expect(await logged('what these sections say holds when the gateway is started anew')).toMatchObject({
      level: 'warn',
      sections: ['listen', 'limits', 'log'],
    });
    const pair = PAIRS[0] as Pair;
    first.play(good(pair, false));
    const messages = [1, 2].map(() => ({ role: 'user', content: 'hi' }));
    expectAnswered(pair, false, await ask(running.url, { ...asking(pair, false), body: { messages } }));
  });

  test('is not warned of when nothing of it changed', async () => {
    write(at(second));
    await running.reload();
    await logged(READ);
    expect(log().filter(({ level }) => level === 'warn')).toEqual([]);
  });
});

test('what is doubtful about the new file is said', async () => {
  write(at(first, { models: { fast: ['mend-openai-chat/m', 'openai/gpt-5'] } }));
  await running.reload();
  expect(await logged('the configuration is doubtful')).toMatchObject({
    level: 'warn',
    reason: expect.stringContaining('openai/gpt-5 is left out: openai needs OPENAI_API_KEY'),
  });
});

test('a client key that was taken out lets nobody in, at once', async () => {
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
