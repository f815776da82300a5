import OpenAI from 'openai';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually, type Started, startGateway } from '../gateway/start.ts';
import { PROTOCOLS, startUpstream, type Upstream } from './upstreams.ts';

// The official SDK is the judge: state works with every upstream as it does with OpenAI.

describe.each(PROTOCOLS)('an upstream of %s', (protocol) => {
  let upstream: Upstream;
  let gateway: Started;
  let client: OpenAI;

  beforeEach(async () => {
    upstream = await startUpstream(protocol);
    gateway = await startGateway({ config: { providers: { up: { protocol, base_url: upstream.url, api_key: 'k' } } } });
    client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 });
  });

  afterEach(async () => {
    upstream.hold.release();
    await gateway.close();
    upstream.close();
  });

  const ask = (input: OpenAI.Responses.ResponseInput | string, more: object = {}) =>
    client.responses.create({ model: 'up/m', input, ...more }) as Promise<OpenAI.Responses.Response>;

  test('previous_response_id continues the whole conversation', async () => {
    const first = await ask('question one');
    const second = await ask('question two', { previous_response_id: first.id });
    const third = await ask('question three', { previous_response_id: second.id });
    expect(third.previous_response_id).toBe(second.id);
    expect(third.output_text).toBe(`answer 3 of ${protocol}`);
    for (const text of ['question one', `answer 1 of ${protocol}`, 'question two', `answer 2 of ${protocol}`, 'question three'])
      expect(upstream.got[2]).toContain(text);
    expect(upstream.got[2]).not.toContain('previous_response_id');
  });

  test('streams continue each other, and branches do not mix', async () => {
    const streamed = async (input: string, previous?: string): Promise<OpenAI.Responses.Response> => {
      const stream = client.responses.stream({ model: 'up/m', input, ...(previous && { previous_response_id: previous }) });
      return stream.finalResponse();
    };
    const first = await streamed('root');
    const left = await streamed('left', first.id);
    await streamed('right', first.id);
    expect(upstream.got[2]).toContain('root');
    expect(upstream.got[2]).not.toContain('left');
    await streamed('left again', left.id);
    expect(upstream.got[3]).toContain('left again');
    expect(upstream.got[3]).not.toContain('right');
  });

  test.skipIf(protocol === 'openai-responses')('conversations do not mix when the upstream repeats its ids', async () => {
    upstream.next = { id: 'same' };
    const first = await ask('my name is Ann');
    const second = await ask('my name is Bob');
    expect(first.id).not.toBe(second.id);
    expect(first.output[0]?.id).not.toBe(second.output[0]?.id);
    await ask('who am I?', { previous_response_id: first.id });
    await ask([
      { type: 'item_reference', id: first.output[0]?.id ?? '' },
      { role: 'user', content: 'and now?' },
    ]);
    expect(upstream.got[2]).toContain('my name is Ann');
    expect(upstream.got[2]).not.toContain('Bob');
    expect(upstream.got[3]).toContain(`answer 1 of ${protocol}`);
    expect(upstream.got[3]).not.toContain(`answer 2 of ${protocol}`);
  });

  test('item references are replaced, with calls and their outputs', async () => {
    upstream.next = { call: { name: 'look', id: 'call_1' } };
    const tools = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} }, strict: false }];
    const first = await ask('use the tool', { tools });
    upstream.next = {};
    const references = first.output.map(({ id }) => ({ type: 'item_reference' as const, id: id ?? '' }));
    const callId = first.output.find((item) => item.type === 'function_call')?.call_id ?? '';
    const second = await ask(
      [
        { role: 'user', content: 'use the tool' },
        ...references,
        { type: 'function_call_output', call_id: callId, output: 'seen' },
      ],
      { tools },
    );
    expect(second.status).toBe('completed');
    expect(upstream.got[1]).toContain('look');
    expect(upstream.got[1]).toContain('seen');
    expect(upstream.got[1]).not.toContain('item_reference');
  });

  test('a stored response is retrieved, listed and deleted', async () => {
    const made = await ask(
      [
        { role: 'user', content: 'first' },
        { role: 'user', content: 'second' },
      ],
      { metadata: { a: 'b' } },
    );
    expect(await client.responses.retrieve(made.id)).toMatchObject({ id: made.id, status: 'completed', output: made.output });
    const page = await client.responses.inputItems.list(made.id, { limit: 1, order: 'asc' });
    expect(page.data).toMatchObject([{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'first' }] }]);
    const texts: unknown[] = [];
    for await (const item of page) texts.push('content' in item && item.content);
    expect(texts).toMatchObject([[{ text: 'first' }], [{ text: 'second' }]]);
    await client.responses.delete(made.id);
    const other = await startGateway({
      config: { auth: { keys: ['a-key-1', 'a-key-2'] }, providers: { up: { protocol, base_url: upstream.url } } },
    });
    const stranger = new OpenAI({ baseURL: `${other.url}/v1`, apiKey: 'a-key-1', maxRetries: 0 });
    await expect(stranger.responses.delete('resp_x')).rejects.toThrow("Response with id 'resp_x' not found.");
    await other.close();
  });

  test('store: false keeps nothing', async () => {
    const made = await ask('secret', { store: false });
    const more = ask('more', { previous_response_id: made.id });
    // A server of this protocol may know ids that the gateway does not.
    if (protocol === 'openai-responses') await expect(more).resolves.toMatchObject({ status: 'completed' });
    else
      await expect(more).rejects.toMatchObject({
        status: 400,
        code: 'previous_response_not_found',
        param: 'previous_response_id',
        type: 'invalid_request_error',
      });
    expect(gateway.kept?.size).toBe(protocol === 'openai-responses' ? 1 : 0);
  });

  test('a conversation grows with its responses', async () => {
    const conversation = await client.conversations.create({ items: [{ type: 'message', role: 'user', content: 'before' }] });
    const first = await ask('one', { conversation: conversation.id });
    expect(first.conversation).toEqual({ id: conversation.id });
    await ask('two', { conversation: { id: conversation.id } });
    for (const text of ['before', 'one', `answer 1 of ${protocol}`, 'two']) expect(upstream.got[1]).toContain(text);
    const items = [];
    for await (const item of client.conversations.items.list(conversation.id, { order: 'asc', limit: 2 })) items.push(item);
    expect(items).toHaveLength(5);
    const removed = items[0];
    await client.conversations.items.delete(removed?.id ?? '', { conversation_id: conversation.id });
    await client.conversations.items.create(conversation.id, { items: [{ type: 'message', role: 'user', content: 'added' }] });
    await ask('three', { conversation: conversation.id });
    expect(upstream.got[2]).not.toContain('before');
    expect(upstream.got[2]).toContain('added');
    expect((await client.conversations.update(conversation.id, { metadata: { k: 'v' } })).metadata).toEqual({ k: 'v' });
    expect(await client.conversations.retrieve(conversation.id)).toMatchObject({ object: 'conversation', metadata: { k: 'v' } });
    expect(await client.conversations.delete(conversation.id)).toMatchObject({ deleted: true });
  });

  test('a background response is polled, and its stream is resumed', async () => {
    upstream.next = { text: 'one two three four' };
    upstream.hold.isOn = true;
    const queued = await ask('work', { background: true });
    expect(queued.status).toBe('queued');
    if (protocol !== 'gemini')
      await eventually(async () => (await client.responses.retrieve(queued.id)).status === 'in_progress');
    await eventually(() => upstream.got.length === 1);
    upstream.hold.release();
    const ended = await untilEnded(client, queued.id);
    expect(ended).toMatchObject({ id: queued.id, status: 'completed', background: true, output_text: 'one two three four' });
    const all: OpenAI.Responses.ResponseStreamEvent[] = [];
    for await (const event of await client.responses.retrieve(queued.id, { stream: true })) all.push(event);
    expect(all.map((event) => event.sequence_number)).toEqual(all.map((_, i) => i));
    for (const after of all.keys()) {
      const rest = [];
      for await (const event of await client.responses.retrieve(queued.id, { stream: true, starting_after: after }))
        rest.push(event);
      expect(rest).toEqual(all.slice(after + 1));
    }
    const next = await ask('continue', { previous_response_id: queued.id, background: false });
    expect(next.status).toBe('completed');
    expect(upstream.got[1]).toContain('one two three four');
  });

  test('a background response is cancelled', async () => {
    upstream.hold.isOn = true;
    const queued = await ask('work', { background: true });
    await eventually(() => upstream.got.length === 1);
    expect(await client.responses.cancel(queued.id)).toMatchObject({ id: queued.id, status: 'cancelled' });
    expect((await client.responses.retrieve(queued.id)).status).toBe('cancelled');
    upstream.hold.isOn = false;
    const made = await ask('now');
    await expect(client.responses.cancel(made.id)).rejects.toThrow('Cannot cancel a synchronous response.');
  });
});

const untilEnded = (client: OpenAI, id: string): Promise<OpenAI.Responses.Response> =>
  eventually(async () => {
    const response = await client.responses.retrieve(id);
    return response.status !== 'queued' && response.status !== 'in_progress' && response;
  });
