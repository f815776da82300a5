import { request } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually, type Started, startGateway } from '../gateway/start.ts';
import { PROTOCOLS, startUpstream, type Upstream } from './upstreams.ts';

// Background responses: whoever loses the connection reads on from the last event, and misses none.

const upstreams: Upstream[] = [];
let gateway: Started;

beforeAll(async () => {
  for (const protocol of PROTOCOLS) upstreams.push(await startUpstream(protocol));
  gateway = await startGateway({
    config: {
      providers: Object.fromEntries(
        upstreams.map(({ protocol, url }) => [`up-${protocol}`, { protocol, base_url: url, api_key: 'k' }]),
      ),
      responses: { max_bytes_per_key: '1MiB' },
    },
  });
});

beforeEach(() => {
  for (const upstream of upstreams) {
    upstream.next = {};
    upstream.hold.isOn = false;
  }
});

afterAll(async () => {
  for (const upstream of upstreams) upstream.hold.release();
  await gateway.close();
  for (const upstream of upstreams) upstream.close();
});

async function call(method: string, path: string, body?: object): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(gateway.url + path, {
    method,
    headers: { 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }; // asserted by the caller
}

const start = (model: string, more: object = {}) =>
  call('POST', '/v1/responses', { model, input: 'work', background: true, ...more });

/** Reads the stream of a response, up to this many bytes. */
function read(path: string, bytes = Number.POSITIVE_INFINITY): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = request(gateway.url + path, (response) => {
      let text = '';
      response.setEncoding('latin1');
      response.on('data', (chunk: string) => {
        text += chunk;
        if (text.length >= bytes) asked.destroy();
      });
      response.on('close', () => resolve(text.slice(0, bytes)));
    });
    asked.on('error', (error) => (asked.destroyed ? undefined : reject(error)));
    asked.end();
  });
}

/** The complete events of a stream. */
const listEvents = (text: string): string[] =>
  text
    .split('\n\n')
    .slice(0, -1)
    .filter((event) => event.includes('data:'));

const readSequence = (event: string): number => Number(/"sequence_number":(-?\d+)/.exec(event)?.[1]);

/** The nightly tests cut a connection at every byte, of more streams. */
const EVERY_BYTE = process.env['SLUICE_EVERY_BYTE'] === '1';

/** Bytes between two real cuts. */
const STEP = EVERY_BYTE ? 1 : 331;

const TEXTS = ['', 'x', 'Zwölf Boxkämpfer jagen Viktor', 'two\n\nparts \r\n of data: {"a":1}', '🐫 \u2028 \u0000 end'];

describe.each(PROTOCOLS)('a stream of %s', (protocol) => {
  test.each(EVERY_BYTE ? TEXTS : TEXTS.slice(3, 4))(
    'that is cut anywhere continues where it was cut: %j',
    async (text) => {
      const upstream = upstreams.find((one) => one.protocol === protocol);
      if (upstream) upstream.next = { text };
      const { body } = await start(`up-${protocol}/m`);
      const path = `/v1/responses/${String(body['id'])}?stream=true`;
      const whole = await read(path);
      const events = listEvents(whole);
      expect(events.map(readSequence)).toEqual(events.map((_, i) => i));
      expect(events.at(-1)).toContain('response.completed');
      const rests = new Map<number, string[]>();
      const readAfter = async (last: number): Promise<string[]> => {
        const known = rests.get(last) ?? listEvents(await read(last < 0 ? path : `${path}&starting_after=${last}`));
        rests.set(last, known);
        return known;
      };
      for (let cut = 0; cut <= whole.length; cut++) {
        // The connection is really cut at some of the bytes; the events before a cut are the same at all of them.
        const before = listEvents(cut % STEP === 0 ? await read(path, cut) : whole.slice(0, cut));
        const union = [...before, ...(await readAfter(readSequence(before.at(-1) ?? '"sequence_number":-1')))];
        if (union.join() !== events.join()) expect(union, `cut at ${cut}`).toEqual(events);
      }
    },
    600_000,
  );

  test('that is read while it runs is the same as afterwards', async () => {
    const upstream = upstreams.find((one) => one.protocol === protocol);
    const before = upstream?.got.length ?? 0;
    if (upstream) upstream.hold.isOn = true;
    const { body } = await start(`up-${protocol}/m`);
    const path = `/v1/responses/${String(body['id'])}?stream=true`;
    const early = [read(path), read(path)];
    await eventually(() => upstream && upstream.got.length > before);
    upstream?.hold.release();
    const late = read(path);
    const [one, two, three] = await Promise.all([...early, late]);
    expect(listEvents(one ?? '')).toEqual(listEvents(three ?? ''));
    expect(two).toBe(one);
  });
});

test('the client of a background stream may leave; the response continues', async () => {
  const response = await fetch(`${gateway.url}/v1/responses`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'up-openai-chat/m', input: 'work', background: true, stream: true }),
  });
  const reader = response.body?.getReader();
  const first = new TextDecoder().decode((await reader?.read())?.value);
  await reader?.cancel();
  const id = /"id":"(resp_[0-9a-f]+)"/.exec(first)?.[1] ?? '';
  expect(listEvents(await read(`/v1/responses/${id}?stream=true`)).at(-1)).toContain('response.completed');
});

test('an upstream that fails makes a failed response, in the object and in the stream', async () => {
  const { status, body } = await start('up-openai-chat/m', { model: 'nobody/knows' });
  expect({ status, state: body['status'] }).toEqual({ status: 200, state: 'queued' });
  const path = `/v1/responses/${String(body['id'])}`;
  const events = listEvents(await read(`${path}?stream=true`));
  expect(events.at(-1)).toContain('response.failed');
  expect((await call('GET', path)).body).toMatchObject({ status: 'failed', error: { code: 'server_error' } });
});

test('background needs store', async () => {
  expect(await start('up-openai-chat/m', { store: false })).toMatchObject({
    status: 400,
    body: { error: { param: 'background' } },
  });
});

test('events that exceed the limit of the key end the response', async () => {
  const upstream = upstreams[0];
  if (upstream) upstream.next = { text: 'word '.repeat(6000) };
  const { body } = await start('up-openai-chat/m');
  const events = listEvents(await read(`/v1/responses/${String(body['id'])}?stream=true`));
  expect(events.at(-1)).toMatch(/response\.failed.*max_bytes_per_key/s);
  expect(gateway.kept?.bytesOf('')).toBeLessThan(2 * 1024 * 1024);
});

describe('compaction', () => {
  test.each(['openai-chat', 'anthropic-messages', 'gemini'])(
    'of a conversation with %s is a summary that only the gateway reads',
    async (protocol) => {
      const upstream = upstreams.find((one) => one.protocol === protocol);
      if (upstream) upstream.next = { text: 'the user likes tea' };
      const input = [
        { role: 'user', content: 'I like tea' },
        { role: 'assistant', content: 'noted' },
      ];
      const { status, body } = await call('POST', '/v1/responses/compact', { model: `up-${protocol}/m`, input });
      expect({ status, object: body['object'] }).toEqual({ status: 200, object: 'response.compaction' });
      expect(upstream?.got.at(-1)).toContain('I like tea');
      expect(JSON.stringify(body)).not.toContain('tea');
      await call('POST', '/v1/responses', {
        model: `up-${protocol}/m`,
        input: [...(body['output'] as object[]), { role: 'user', content: 'so?' }],
      });
      expect(upstream?.got.at(-1)).toContain('the user likes tea');
    },
  );
});

test('references to reasoning of another vendor are restored, as the AI SDK sends them', async () => {
  const upstream = upstreams.find(({ protocol }) => protocol === 'anthropic-messages');
  if (upstream) upstream.next = { signature: 'SIGNED', call: { name: 'look', id: 'toolu_1' } };
  const tools = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }];
  const common = { model: 'up-anthropic-messages/claude-x', tools, reasoning: { effort: 'low', summary: 'auto' } };
  const first = await call('POST', '/v1/responses', { ...common, input: [{ role: 'user', content: 'look' }] });
  const output = first.body['output'] as { type: string; id: string; call_id?: string }[];
  expect(output.map(({ type }) => type)).toEqual(['reasoning', 'function_call']);
  expect(JSON.stringify(output)).not.toContain('SIGNED');
  const references = output.map(({ id }) => ({ type: 'item_reference', id }));
  const result = { type: 'function_call_output', call_id: output[1]?.call_id, output: 'seen' };
  await call('POST', '/v1/responses', { ...common, input: [{ role: 'user', content: 'look' }, ...references, result] });
  const sent = JSON.parse(upstream?.got.at(-1) ?? '') as { messages: { content: { type: string }[] }[] };
  expect(sent.messages[1]?.content).toMatchObject([
    { type: 'thinking', thinking: 'hm', signature: 'SIGNED' },
    { type: 'tool_use', id: 'toolu_1' },
  ]);
});
