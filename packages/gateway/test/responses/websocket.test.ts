import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually, type Started, startGateway } from '../gateway/start.ts';
import { TestClock } from '../gateway/test-clock.ts';
import { PROTOCOLS, startUpstream, type Upstream } from './upstreams.ts';
import { Client, isLast, listTypes, type Refused, readId } from './websocket-client.ts';

// Responses over WebSocket: the frames of the official protocol, for every upstream. Each message is an exchange like one over HTTP.

const upstreams: Upstream[] = [];
let gateway: Started;
let client: Client;

beforeAll(async () => {
  for (const protocol of PROTOCOLS) upstreams.push(await startUpstream(protocol));
  gateway = await startGateway({ config: { providers: listProviders() } });
});

beforeEach(async () => {
  for (const upstream of upstreams) {
    upstream.next = {};
    upstream.hold.isOn = false;
  }
  client?.socket.terminate();
  client = await Client.open(gateway.url);
});

afterAll(async () => {
  client.socket.terminate();
  await gateway.close();
  for (const upstream of upstreams) upstream.close();
});

const listProviders = (): object =>
  Object.fromEntries(upstreams.map(({ protocol, url }) => [`up-${protocol}`, { protocol, base_url: url, api_key: 'k' }]));

const find = (protocol: string): Upstream => upstreams.find((upstream) => upstream.protocol === protocol) as Upstream; // all are started

const CHAT = 'up-openai-chat/m';

describe.each(PROTOCOLS)('an upstream of %s', (protocol) => {
  const model = `up-${protocol}/m`;

  test.each([true, false])('continues a conversation with store: %s', async (store) => {
    const { got } = find(protocol);
    const first = await client.turn({ model, store, input: 'my name is Ada' });
    const second = await client.turn({ model, store, input: 'and my name?', previous_response_id: readId(first) });
    await client.turn({ model, store, input: 'once more', previous_response_id: readId(second) });
    const last = got.at(-1) ?? '';
    for (const text of ['my name is Ada', 'and my name?', 'once more', `of ${protocol}`]) expect(last).toContain(text);
  });

  test('sends the events of the HTTP stream', async () => {
    find(protocol).next.text = 'the same answer';
    const body = { model, input: 'x' };
    const response = await fetch(`${gateway.url}/v1/responses`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...body, stream: true }),
    });
    const events = [...(await response.text()).matchAll(/^data: (\{.*)$/gm)].map(([, data = '']) => JSON.parse(data));
    const frames = await client.turn(body);
    expect(frames.map(strip)).toEqual(events.map(strip));
  });
});

/** Ids and times differ from response to response. */
const strip = (event: unknown): unknown =>
  JSON.parse(
    JSON.stringify(event, (key, value: unknown) => (/^(id|item_id|created_at|completed_at)$/.test(key) ? undefined : value)),
  );

test('a conversation changes its upstream on the socket', async () => {
  let previous: string | undefined;
  for (const protocol of PROTOCOLS)
    previous = readId(
      await client.turn({ model: `up-${protocol}/m`, store: false, input: `to ${protocol}`, previous_response_id: previous }),
    );
  const last = find('openai-responses').got.at(-1) ?? '';
  for (const protocol of PROTOCOLS) expect(last).toContain(`to ${protocol}`);
  expect(last).not.toContain('previous_response_id');
});

describe('messages that are refused, on a connection that stays open', () => {
  const MODEL = { model: CHAT, input: 'x' };
  test.each<[name: string, message: unknown, error: object]>([
    ['no JSON', '{', { status: 400, error: { code: 'invalid_message' } }],
    ['a list', '[]', { status: 400, error: { code: 'invalid_message' } }],
    ['nesting', `{"a":${'['.repeat(5000)}${']'.repeat(5000)}}`, { status: 400, error: { code: 'invalid_message' } }],
    ['no type', MODEL, { status: 400, error: { param: 'type' } }],
    ['an unknown type', { type: 'response.cancel' }, { status: 400, error: { param: 'type' } }],
    ['background', { type: 'response.create', ...MODEL, background: true }, { status: 400, error: { param: 'background' } }],
    ['no model', { type: 'response.create', input: 'x' }, { status: 400 }],
    ['an unknown model', { type: 'response.create', model: 'nobody/x', input: 'x' }, { status: 404 }],
    ['no input', { type: 'response.create', model: CHAT, input: 7 }, { status: 400 }],
    [
      'an unknown response',
      { type: 'response.create', ...MODEL, previous_response_id: 'resp_abc' },
      { status: 400, error: { code: 'previous_response_not_found', param: 'previous_response_id' } },
    ],
    [
      'an unknown response on a lane',
      { type: 'response.create', stream_id: 'main', ...MODEL, previous_response_id: 'resp_abc' },
      { status: 400, stream_id: 'main', error: { code: 'previous_response_not_found' } },
    ],
    ...['', 'a b', 'ä', 'x'.repeat(257), 7, {}].map((id): [string, unknown, object] => [
      `the lane ${JSON.stringify(id).slice(0, 10)}`,
      { type: 'response.create', stream_id: id, ...MODEL },
      { status: 400, error: { code: 'invalid_stream_id', param: 'stream_id' } },
    ]),
  ])('%s', async (_name, message, error) => {
    const next = client.nextError();
    client.send(message);
    expect(await next).toMatchObject({ type: 'error', ...error });
    expect(listTypes(await client.turn(MODEL)).at(-1)).toBe('response.completed');
  });

  test('steering returns its input', async () => {
    client.send({ type: 'response.steer', previous_response_id: 'resp_1', input: 'stop' });
    expect(await eventually(() => client.frames[0])).toMatchObject({
      type: 'response.steer.failed',
      steer: { previous_response_id: 'resp_1', input: 'stop' },
      error: { code: 'steering_not_supported' },
    });
  });

  test('confirmations of Codex are ignored', async () => {
    client.send({ type: 'response.processed', response_id: 'resp_1' });
    expect(listTypes(await client.turn(MODEL))).not.toContain('error');
  });
});

describe('messages that end the connection', () => {
  test('binary', async () => {
    client.socket.send(Buffer.from('{}'));
    expect(await eventually(() => client.closed)).toBe(1003);
  });

  test('larger than limits.request_bytes', async () => {
    const small = await startGateway({ config: { providers: listProviders(), limits: { request_bytes: '1KiB' } } });
    const other = await Client.open(small.url);
    other.send('x'.repeat(2000));
    expect(await eventually(() => other.closed)).toBe(1009);
    await small.close();
  });
});

describe('lanes', () => {
  test('run at the same time, and every event names its lane', async () => {
    const [chat, claude] = [find('openai-chat'), find('anthropic-messages')];
    chat.hold.isOn = true;
    const before = chat.got.length;
    client.create({ stream_id: 'slow', model: CHAT, input: 'x' });
    await eventually(() => chat.got.length > before);
    const frames = await client.turn({ stream_id: 'fast', model: 'up-anthropic-messages/m', input: 'y' });
    expect(frames.filter((frame) => frame['stream_id'] === 'fast').map(({ type }) => type)).toContain('response.completed');
    chat.hold.release();
    await eventually(() => client.frames.filter(isLast).length === 2);
    expect(new Set(client.frames.map((frame) => frame['stream_id']))).toEqual(new Set(['slow', 'fast']));
    expect(claude.got.at(-1)).toContain('y');
  });

  test('run one message after the other', async () => {
    const chat = find('openai-chat');
    chat.hold.isOn = true;
    const before = chat.got.length;
    client.create({ model: CHAT, input: 'one' });
    client.create({ model: CHAT, input: 'two' });
    await eventually(() => chat.got.length === before + 1);
    await fetch(`${gateway.url}/health/live`);
    expect(chat.got.length).toBe(before + 1);
    chat.hold.isOn = false;
    chat.hold.release();
    await eventually(() => client.frames.filter(isLast).length === 2);
    expect(chat.got.slice(before).map((body) => /one|two/.exec(body)?.[0])).toEqual(['one', 'two']);
  });

  test('fork from another lane', async () => {
    const first = await client.turn({ stream_id: 'a', model: CHAT, store: false, input: 'the start' });
    await client.turn({ stream_id: 'b', model: CHAT, store: false, input: 'a fork', previous_response_id: readId(first) });
    expect(find('openai-chat').got.at(-1)).toContain('the start');
  });

  test('have 32 names at most', async () => {
    for (let i = 0; i < 32; i++) await client.turn({ stream_id: `lane.${i}`, model: CHAT, input: 'x', generate: false });
    const [refused] = await client.turn({ stream_id: 'lane.32', model: CHAT, input: 'x' });
    expect(refused).toMatchObject({ status: 400, stream_id: 'lane.32', error: { code: 'websocket_stream_limit_reached' } });
    expect(listTypes(await client.turn({ stream_id: 'lane.0', model: CHAT, input: 'x' })).at(-1)).toBe('response.completed');
  });

  test('queue 32 messages at most', async () => {
    const chat = find('openai-chat');
    chat.hold.isOn = true;
    const next = client.nextError();
    for (let i = 0; i < 34; i++) client.create({ model: CHAT, input: 'x' });
    expect(await next).toMatchObject({ status: 429 });
    expect(client.frames.filter(({ type }) => type === 'error')).toHaveLength(1);
  });
});

describe('what a connection keeps', () => {
  test('a response that is not stored belongs to its connection', async () => {
    const other = await Client.open(gateway.url);
    const request = { model: CHAT, store: false, input: 'x' };
    const id = readId(await client.turn(request));
    const [refused] = await other.turn({ ...request, previous_response_id: id });
    expect(refused).toMatchObject({ status: 400, error: { code: 'previous_response_not_found' } });
    expect(gateway.kept?.find('response', id, '')).toBeUndefined();
    other.socket.close();
  });

  test('a stored response is continued on another connection, and over HTTP', async () => {
    const other = await Client.open(gateway.url);
    const id = readId(await client.turn({ model: CHAT, input: 'stored text' }));
    await other.turn({ model: CHAT, input: 'x', previous_response_id: id });
    expect(find('openai-chat').got.at(-1)).toContain('stored text');
    expect((await fetch(`${gateway.url}/v1/responses/${id}`)).status).toBe(200);
    other.socket.close();
  });

  test('what continues a response that is not stored is not stored', async () => {
    const first = await client.turn({ model: CHAT, store: false, input: 'private' });
    const second = await client.turn({ model: CHAT, store: true, input: 'x', previous_response_id: readId(first) });
    expect(second.at(-1)).toMatchObject({ response: { store: false } });
    expect(gateway.kept?.find('response', readId(second), '')).toBeUndefined();
  });

  test('a result without its call is refused, and the connection keeps what it continued no longer', async () => {
    const chat = find('openai-chat');
    const id = readId(await client.turn({ model: CHAT, store: false, input: 'a word' }));
    const sent = chat.got.length;
    const result = { type: 'function_call_output', call_id: 'call_missing', output: '{}' };
    const request = { model: CHAT, store: false, previous_response_id: id };
    const [refused] = await client.turn({ ...request, input: [result] });
    const message = 'No tool call found for function call output with call_id call_missing.';
    expect(refused).toMatchObject({ type: 'error', status: 400, error: { message, param: 'input' } });
    const [forgotten] = await client.turn({ ...request, input: 'once more' });
    expect(forgotten).toMatchObject({ status: 400, error: { code: 'previous_response_not_found' } });
    expect(chat.got).toHaveLength(sent);
  });

  test('one response of each lane, and nothing after the end', async () => {
    const size = gateway.kept?.size ?? 0;
    let previous: string | undefined;
    for (let i = 0; i < 5; i++)
      previous = readId(await client.turn({ model: CHAT, store: false, input: `turn ${i}`, previous_response_id: previous }));
    expect(gateway.kept?.size).toBe(size + 1);
    client.socket.close();
    await eventually(() => gateway.kept?.size === size);
  });

  test('generate: false keeps the input without an upstream', async () => {
    const chat = find('openai-chat');
    const before = chat.got.length;
    const warm = await client.turn({ model: CHAT, store: false, instructions: 'be brief', input: 'warm text', generate: false });
    expect(listTypes(warm)).toEqual(['response.created', 'response.in_progress', 'response.completed']);
    expect(warm.at(-1)).toMatchObject({ response: { output: [], usage: { total_tokens: 0 } } });
    expect(chat.got.length).toBe(before);
    await client.turn({ model: CHAT, store: false, input: 'go', previous_response_id: readId(warm) });
    expect(chat.got.at(-1)).toContain('warm text');
    expect(chat.got.at(-1)).not.toContain('generate');
  });
});

describe('who may connect', () => {
  let locked: Started;

  beforeAll(async () => {
    const keys = [{ key: 'client-key-0123456789', name: 'a', rpm: 2 }];
    locked = await startGateway({ config: { providers: listProviders(), auth: { keys } } });
  });

  afterAll(() => locked.close());

  test.each<[name: string, headers: Record<string, string>, status: number]>([
    ['no key', {}, 401],
    ['a wrong key', { authorization: 'Bearer x' }, 401],
    ['a web page of another origin', { authorization: 'Bearer client-key-0123456789', origin: 'https://evil.example' }, 403],
    ['a cross-site page', { authorization: 'Bearer client-key-0123456789', 'sec-fetch-site': 'cross-site' }, 403],
  ])('%s is refused over HTTP', async (_name, headers, status) => {
    const refused = await Client.open(locked.url, headers).catch((error: Refused) => error);
    expect(refused).toMatchObject({ status });
    expect(JSON.parse((refused as Refused).body)).toMatchObject({ error: { message: expect.any(String) } });
  });

  test('another host without keys is refused', async () => {
    const refused = await Client.open(gateway.url, { host: 'evil.example' }).catch((error: Refused) => error);
    expect(refused).toMatchObject({ status: 403 });
  });

  test('the rates of a key count messages', async () => {
    const own = await Client.open(locked.url, { authorization: 'Bearer client-key-0123456789' });
    const request = { model: CHAT, input: 'x' };
    expect(listTypes(await own.turn(request)).at(-1)).toBe('response.completed');
    expect(listTypes(await own.turn(request)).at(-1)).toBe('response.completed');
    const [refused] = await own.turn(request);
    expect(refused).toMatchObject({ type: 'error', status: 429, headers: { 'retry-after': expect.any(String) } });
    own.socket.close();
  });
});

describe('the end of a connection', () => {
  test('a client that leaves cancels what runs for it', async () => {
    const chat = find('openai-chat');
    chat.hold.isOn = true;
    const before = gateway.log().length;
    client.create({ model: CHAT, input: 'x' });
    await eventually(() => client.frames.some(({ type }) => type === 'response.output_text.delta'));
    client.socket.terminate();
    const line = await eventually(() =>
      gateway
        .log()
        .slice(before)
        .find((entry) => entry['ending'] !== undefined),
    );
    expect(line).toMatchObject({ ending: 'client_aborted', status: 499 });
  });

  test('a shutdown lets running responses finish, refuses others and closes', async () => {
    const own = await startGateway({ config: { providers: listProviders() } });
    const [busy, idle] = [await Client.open(own.url), await Client.open(own.url)];
    const chat = find('openai-chat');
    chat.hold.isOn = true;
    busy.create({ model: CHAT, input: 'x' });
    await eventually(() => busy.frames.some(({ type }) => type === 'response.output_text.delta'));
    const closed = own.close(5000);
    expect(await eventually(() => idle.closed)).toBe(1001);
    const next = busy.nextError();
    busy.create({ stream_id: 'other', model: CHAT, input: 'y' });
    expect(await next).toMatchObject({ status: 503, stream_id: 'other' });
    chat.hold.release();
    expect(await eventually(() => busy.closed)).toBe(1001);
    expect(listTypes(busy.frames)).toContain('response.completed');
    await closed;
  });

  test('a shutdown that still accepts requests refuses new connections: another node takes them', async () => {
    const own = await startGateway({ config: { providers: listProviders() } });
    const idle = await Client.open(own.url);
    const closed = own.close(5000, 1000);
    await expect(Client.open(own.url)).rejects.toMatchObject({ status: 503, body: expect.stringContaining('is shutting down') });
    expect(idle.closed).toBeUndefined();
    expect(await eventually(() => idle.closed)).toBe(1001);
    await closed;
  });

  test('after 60 minutes the client gets the documented error', async () => {
    const clock = new TestClock();
    const own = await startGateway({ config: { providers: listProviders() }, clock });
    const old = await Client.open(own.url);
    await clock.jump(60 * 60_000 - 1);
    expect([old.frames, old.closed]).toEqual([[], undefined]);
    await clock.jump(1);
    expect(await eventually(() => old.frames[0])).toMatchObject({
      type: 'error',
      status: 400,
      error: { type: 'invalid_request_error', code: 'websocket_connection_limit_reached' },
    });
    expect(await eventually(() => old.closed)).toBe(1001);
    await own.close();
  });

  test('a client that reads nothing is closed, and its buffers stay small', async () => {
    const limits = { write_buffer: '64KiB', stall_timeout: '200ms' };
    const own = await startGateway({ config: { providers: listProviders(), limits } });
    find('openai-responses').next.text = `${'x'.repeat(10_000)} `.repeat(2000);
    const slow = await Client.open(own.url);
    slow.socket.pause();
    slow.create({ model: 'up-openai-responses/m', input: 'x' });
    const line = await eventually(() => own.log().find((entry) => entry['ending'] !== undefined));
    expect(line).toMatchObject({ ending: 'client_stalled' });
    slow.socket.terminate();
    await own.close();
  });

  test('pings get pongs, and a flood of pings is not kept', async () => {
    let pongs = 0;
    client.socket.on('pong', () => pongs++);
    for (let i = 0; i < 1000; i++) client.socket.ping();
    await eventually(() => pongs > 0);
    expect(listTypes(await client.turn({ model: CHAT, input: 'x' })).at(-1)).toBe('response.completed');
  });
});
