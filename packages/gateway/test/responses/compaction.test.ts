import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { run } from '../../src/server/run.ts';
import { type Started, startGateway } from '../gateway/start.ts';
import { startUpstream, type Upstream } from './upstreams.ts';

// A client replaces its conversation by its compaction: there is one, and it can be used, or the client gets an error.

interface Reply {
  status: number;
  output?: { type: string; encrypted_content?: string }[];
  error?: { message: string; param?: string } | null;
}

async function post(url: string, path: string, body: object): Promise<Reply> {
  const response = await fetch(`${url}/v1/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${KEY}` },
    body: JSON.stringify({ model: 'up/m', ...body }),
  });
  return { ...((await response.json()) as Reply), status: response.status }; // asserted by the caller
}

const KEY = 'key-of-the-client';

const CONVERSATION = [
  { role: 'user', content: 'I am Ada. The plan is X.' },
  { role: 'assistant', content: 'Noted.' },
];

const QUESTION = { role: 'user', content: 'What is the plan?' };

const SUMMARY = 'The user is Ada; the plan is X.';

let upstream: Upstream;

beforeAll(async () => {
  upstream = await startUpstream('openai-chat');
});

beforeEach(() => {
  upstream.next = { text: SUMMARY };
  upstream.got.length = 0;
});

afterAll(() => upstream.close());

describe('a compaction, after a restart', () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-compaction-'));
  });

  afterEach(() => rm(folder, { recursive: true }));

  const start = async (responses: object = {}, data = join(folder, 'data')) => {
    const config = join(folder, 'sluice.json');
    const providers = { up: { protocol: 'openai-chat', base_url: upstream.url, api_key: 'k' } };
    await writeFile(config, JSON.stringify({ auth: { keys: [KEY] }, providers, responses }));
    return run({ config, folder, env: {}, listen: { host: '127.0.0.1', port: 0 }, log: 'silent', data });
  };

  test('opens on a gateway that never had a stored client key', async () => {
    const first = await start();
    const { output = [] } = await post(first.url, 'responses/compact', { input: CONVERSATION });
    await first.close(0);
    const file = join(folder, 'data', 'capsules.key');
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const second = await start();
    const next = await post(second.url, 'responses', { input: [...output, QUESTION] });
    await second.close(0);
    expect(next.status).toBe(200);
    expect(upstream.got.at(-1)).toContain(SUMMARY);
    expect(JSON.stringify(output)).not.toContain(await readFile(file, 'utf8'));
  });

  test('opens after the first stored client key, which brings a pepper', async () => {
    const first = await start();
    const { output = [] } = await post(first.url, 'responses/compact', { input: CONVERSATION });
    await first.keys.create('eve', {}, 'cli');
    await first.close(0);
    const second = await start();
    const next = await post(second.url, 'responses', { input: [...output, QUESTION] });
    const again = await post(second.url, 'responses/compact', { input: CONVERSATION });
    await second.close(0);
    expect(next.status).toBe(200);
    expect(again.output?.[0]?.encrypted_content).not.toBe(output[0]?.encrypted_content);
  });

  test('that cannot be opened is refused, whether responses are kept or not', async () => {
    const first = await start();
    const { output = [] } = await post(first.url, 'responses/compact', { input: CONVERSATION });
    await first.close(0);
    for (const responses of [{}, { store: 'off' }]) {
      const other = await start(responses, join(folder, 'other'));
      const next = await post(other.url, 'responses', { input: [...output, QUESTION] });
      await other.close(0);
      expect(next).toMatchObject({ status: 400, error: { message: expect.stringMatching(/compaction/) } });
    }
    expect(upstream.got).toHaveLength(1);
  });

  test('with a damaged key file, the gateway does not start', async () => {
    await (await start()).close(0);
    await writeFile(join(folder, 'data', 'capsules.key'), 'damaged');
    await expect(start()).rejects.toThrow(/capsules\.key" is damaged.*delete it/);
  });
});

describe('a conversation', () => {
  let gateway: Started;

  beforeAll(async () => {
    const up = { protocol: 'openai-chat', base_url: upstream.url, api_key: 'k' };
    gateway = await startGateway({ config: { providers: { up } } });
  });

  afterAll(() => gateway.close());

  test.each([
    ['is empty', { text: ' \n' }, 'the summary is empty'],
    ['is a call', { call: { name: 'f', id: 'call_1' } }, 'the summary is empty'],
    ['was cut off', { text: 'The user asked to', finish: 'length' }, 'the summary is incomplete'],
    ['was filtered', { text: '', finish: 'content_filter' }, 'the summary is incomplete'],
    ['is a refusal', { text: '', refusal: 'I cannot do that' }, 'the model refused'],
  ])('is not replaced by a summary that %s', async (_, next, fact) => {
    upstream.next = next;
    const reply = await post(gateway.url, 'responses/compact', { input: CONVERSATION });
    expect(reply).toMatchObject({ status: 502, error: { message: expect.stringContaining(fact) } });
    expect(reply.error?.message).toContain('provider "up"');
    expect(reply.output).toBeUndefined();
  });

  test('with calls is summarized with their tools, which are not called', async () => {
    const tools = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }];
    const call = { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}' };
    const input = [...CONVERSATION, call, { type: 'function_call_output', call_id: 'c1', output: 'seen' }];
    expect((await post(gateway.url, 'responses/compact', { input, tools })).status).toBe(200);
    expect(JSON.parse(upstream.got.at(-1) ?? '')).toMatchObject({ tools: [{ function: { name: 'look' } }], tool_choice: 'none' });
  });

  test('of a client that leaves while it waits for admission is not summarized', async () => {
    let release: () => void = () => undefined;
    const waiting = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { responses } = gateway.services;
    if (!responses) throw new Error('no responses are kept');
    const original = responses.serve.bind(responses);
    let reached: () => void = () => undefined;
    const isReached = new Promise<void>((resolve) => {
      reached = resolve;
    });
    responses.serve = (request, services) =>
      original(
        {
          ...request,
          admitModel: async (...given) => {
            reached();
            await waiting;
            return request.admitModel(...given);
          },
        },
        services,
      );
    const leaving = new AbortController();
    const body = JSON.stringify({ model: 'up/m', input: CONVERSATION });
    const headers = { 'content-type': 'application/json' };
    const left = fetch(`${gateway.url}/v1/responses/compact`, { method: 'POST', headers, body, signal: leaving.signal });
    await isReached;
    leaving.abort();
    await expect(left).rejects.toThrow();
    await expect.poll(() => gateway.services.streams.underWay.some(({ isGone }) => isGone)).toBe(true);
    release();
    await expect.poll(() => gateway.services.streams.count).toBe(0);
    responses.serve = original;
    expect(upstream.got).toEqual([]);
  });
});

test('a compaction of a provider is not dropped for an upstream of another protocol', async () => {
  const up = { protocol: 'openai-chat', base_url: upstream.url, api_key: 'k' };
  for (const store of ['memory', 'off']) {
    const gateway = await startGateway({ config: { providers: { up }, responses: { store } } });
    const input = [{ type: 'compaction', id: 'cmp_1', encrypted_content: 'gAAAA' }, QUESTION];
    const reply = await post(gateway.url, 'responses', { input });
    await gateway.close();
    expect(reply).toMatchObject({ status: 400, error: { message: expect.stringContaining('compaction') } });
  }
  expect(upstream.got).toEqual([]);
});
