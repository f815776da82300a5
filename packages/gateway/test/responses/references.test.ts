import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Started, startGateway } from '../gateway/start.ts';
import { PROTOCOLS, startUpstream, type Upstream } from './upstreams.ts';

// A small request can refer to a lot: what is sent for it is bounded, and what it refers to is not removed by its own response.

const LIMIT = 1024 * 1024;

interface Reply {
  status: number;
  id: string;
  tools?: unknown;
  output?: { id: string }[];
  error?: { message: string; code: string | null } | null;
}

const upstreams: Upstream[] = [];
let gateway: Started;

beforeAll(async () => {
  for (const protocol of PROTOCOLS) upstreams.push(await startUpstream(protocol));
  gateway = await startGateway({
    config: {
      providers: Object.fromEntries(
        upstreams.map(({ protocol, url }) => [protocol, { protocol, base_url: url, api_key: 'k', passthrough: 'off' }]),
      ),
      limits: { request_bytes: '1MiB' },
      responses: { max_bytes_per_key: '4MiB' },
    },
  });
});

afterAll(async () => {
  await gateway.close();
  for (const upstream of upstreams) upstream.close();
});

beforeEach(() => {
  for (const upstream of upstreams) upstream.got.length = 0;
});

async function post(body: object, path = 'responses'): Promise<Reply> {
  const response = await fetch(`${gateway.url}/v1/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { ...((await response.json()) as Reply), status: response.status }; // asserted by the caller
}

const measure = (body: object): number =>
  gateway.services.responses?.measure(body, { id: '' } as Parameters<typeof measureOf>[1], undefined) ?? 0; // only the id is read

declare const measureOf: NonNullable<typeof gateway.services.responses>['measure'];

const item = (id: string, size: number): object => ({ type: 'message', id, role: 'user', content: 'A'.repeat(size) });

const refer = (id: string, count: number): object[] => Array.from({ length: count }, () => ({ type: 'item_reference', id }));

const listSent = (): string[] => upstreams.flatMap(({ got }) => got);

describe.each(PROTOCOLS)('with %s', (protocol) => {
  const model = `${protocol}/m`;
  const other = `${protocol === 'openai-responses' ? 'openai-chat' : 'openai-responses'}/m`;

  test('an item that is named many times is refused before it is sent', async () => {
    // The provider that keeps an item may get its id.
    await post({ model: other, input: [item('msg_big', LIMIT / 4)] });
    const fits = { model, store: false, input: refer('msg_big', 3) };
    expect((await post(fits)).status).toBe(200);
    expect(measure(fits)).toBeGreaterThan(3 * (LIMIT / 4));
    expect(measure(fits)).toBeLessThan(LIMIT);
    const sent = listSent().length;
    const bomb = { model, store: false, input: refer('msg_big', 5) };
    const refused = await post(bomb);
    expect(refused).toMatchObject({ status: 400, error: { message: expect.stringContaining('limits.request_bytes') } });
    expect(listSent()).toHaveLength(sent);
    expect(measure(bomb)).toBeGreaterThan(LIMIT);
  });

  test('references in the turns before count as well', async () => {
    await post({ model: other, input: [item('msg_turn', 1000)] });
    const first = await post({ model: other, input: refer('msg_turn', 100) });
    // The same id names a larger item from now on.
    await post({ model: other, input: [item('msg_turn', LIMIT / 8)] });
    const sent = listSent().length;
    const next = { model, store: false, input: 'x', previous_response_id: first.id };
    expect(await post(next)).toMatchObject({ status: 400, error: { message: expect.stringContaining('limits.request_bytes') } });
    expect(listSent()).toHaveLength(sent);
    expect(measure(next)).toBeGreaterThan(100 * (LIMIT / 8));
  });
});

test('items that were deleted from a conversation do not count', async () => {
  const items = [item('msg_1', LIMIT * 0.4), item('msg_2', LIMIT * 0.4)];
  const { id } = await post({ items: items.slice(0, 1) }, 'conversations');
  await post({ items: items.slice(1) }, `conversations/${id}/items`);
  await post({ items: [item('msg_3', LIMIT * 0.4)] }, `conversations/${id}/items`);
  const next = { model: 'openai-chat/m', input: 'x', conversation: id, store: false };
  expect((await post(next)).status).toBe(400);
  await fetch(`${gateway.url}/v1/conversations/${id}/items/msg_2`, { method: 'DELETE' });
  expect((await post(next)).status).toBe(200);
});

test('a conversation with large tools keeps all its responses, and other conversations', async () => {
  const tools = Array.from({ length: 40 }, (_, i) => ({
    type: 'function',
    name: `tool_${i}`,
    description: 'x'.repeat(2000),
    parameters: { type: 'object', properties: {} },
  }));
  const other = await post({ model: 'anthropic-messages/m', input: 'another conversation' });
  const before = gateway.kept?.bytesOf('') ?? 0;
  const ids: string[] = [];
  for (let turn = 0; turn < 80; turn++) {
    const { status, id } = await post({ model: 'openai-chat/m', tools, input: `turn ${turn}`, previous_response_id: ids.at(-1) });
    expect(status).toBe(200);
    ids.push(id);
  }
  const read = async (id: string): Promise<Reply> => (await fetch(`${gateway.url}/v1/responses/${id}`)).json() as Promise<Reply>; // asserted below
  for (const id of [other.id, ids[0], ids[40], ids[79]]) expect((await read(id ?? '')).id).toBe(id);
  expect((await read(ids[40] ?? '')).tools).toMatchObject([{ name: 'tool_0' }, ...Array(39).fill({ type: 'function' })]);
  expect((gateway.kept?.bytesOf('') ?? 0) - before).toBeLessThan(LIMIT / 2);
});

test('a conversation that would push out itself gets the documented error, and stays', async () => {
  const small = await startGateway({
    config: {
      providers: { up: { protocol: 'openai-chat', base_url: upstreams[0]?.url, api_key: 'k' } },
      responses: { max_bytes_per_key: '200KiB' },
    },
  });
  const send = async (previous: string | undefined): Promise<Reply> => {
    const body = { model: 'up/m', input: 'y'.repeat(30 * 1024), previous_response_id: previous };
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${small.url}/v1/responses`, { method: 'POST', headers, body: JSON.stringify(body) });
    return { ...((await response.json()) as Reply), status: response.status }; // asserted below
  };
  let last = await send(undefined);
  const ids: string[] = [];
  while (last.status === 200 && ids.length < 20) {
    ids.push(last.id);
    last = await send(last.id);
  }
  expect(last).toMatchObject({ status: 400, error: { message: expect.stringContaining('half of responses.max_bytes_per_key') } });
  expect(ids.length).toBeGreaterThan(2);
  for (const id of ids) expect((await fetch(`${small.url}/v1/responses/${id}`)).status).toBe(200);
  await small.close();
});
