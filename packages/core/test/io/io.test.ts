import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { pace } from '../../../../test/wait.ts';
import { accumulate, type CanonicalStreamEvent, readEvents, type StreamSource } from '../../src/index.ts';
import { accumulate as accumulateWith } from '../../src/io/index.ts';
import { openaiChat } from '../../src/protocols/openai-chat/index.ts';

const BODY = `data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"Grü"}}]}\n\ndata: {"choices":[{"index":0,"delta":{"content":"ße"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n`;
const bytes = new TextEncoder().encode(BODY);
const pieces = [bytes.subarray(0, 66), bytes.subarray(66, 67), bytes.subarray(67)];

async function* slowly<T>(items: T[]): AsyncGenerator<T> {
  for (const item of items) {
    await new Promise((resolve) => setImmediate(resolve));
    yield item;
  }
}

const SOURCES: [string, () => StreamSource][] = [
  ['a string', () => BODY],
  ['bytes', () => bytes],
  ['a list of chunks', () => pieces],
  ['a list of strings', () => [...BODY]],
  ['an async iterable', () => slowly(pieces)],
  ['a node stream', () => Readable.from(pieces)],
  ['a web stream', () => new Blob(pieces).stream()],
  ['an ArrayBuffer', () => bytes.slice().buffer],
  ['a Response', () => new Response(BODY)],
  ['the body of a Response', () => new Response(BODY).body],
];

test.each(SOURCES)('accumulate reads %s', async (_, source) => {
  expect(await accumulate(source(), { protocol: 'openai' })).toMatchObject({
    protocol: 'openai-chat',
    text: 'Grüße',
    complete: true,
    error: null,
  });
});

test.each(SOURCES)('readEvents reads %s', async (_, source) => {
  const events: CanonicalStreamEvent[] = [];
  for await (const event of readEvents(source(), { protocol: openaiChat })) events.push(event);
  expect(events.map(({ type }) => type)).toEqual([
    'message_start',
    'content_block_start',
    'content_block_delta',
    'content_block_delta',
    'content_block_stop',
    'message_delta',
    'message_stop',
  ]);
});

test('the protocol is told from the stream when it is not named', async () => {
  expect((await accumulate(BODY)).protocol).toBe('openai-chat');
});

test('the same with one protocol only, for small bundles', async () => {
  expect(await accumulateWith(BODY, { protocol: openaiChat })).toMatchObject({ text: 'Grüße' });
});

test('an unknown protocol name is a TypeError with the known names and a suggestion', async () => {
  const message =
    'options.protocol: unknown protocol "open-ai"; known: openai-chat, anthropic-messages, openai-responses, gemini, openai, anthropic, responses (did you mean "openai"?)';
  // @ts-expect-error: not a protocol
  await expect(accumulate(BODY, { protocol: 'open-ai' })).rejects.toThrow(new TypeError(message));
  // @ts-expect-error: not a protocol
  expect(() => readEvents(BODY, { protocol: 'xyz' })).toThrow(/unknown protocol "xyz"; known: [\w, -]+$/);
});

test('events come while the source is still open', async () => {
  let finish = (): void => undefined;
  const open = new Promise<void>((resolve) => {
    finish = resolve;
  });
  async function* source(): AsyncGenerator<Uint8Array> {
    yield bytes.subarray(0, 90);
    await open;
    yield bytes.subarray(90);
  }
  const events = readEvents(source(), { protocol: 'openai-chat' });
  expect((await events.next()).value).toMatchObject({ type: 'message_start' });
  expect((await events.next()).value).toMatchObject({ type: 'content_block_start' });
  finish();
  let last: CanonicalStreamEvent | undefined;
  for await (const event of events) last = event;
  expect(last).toEqual({ type: 'message_stop' });
});

test('a slow reader slows the source', async () => {
  let pulled = 0;
  async function* source(): AsyncGenerator<Uint8Array> {
    for (;;) {
      pulled++;
      yield new TextEncoder().encode(`data: {"id":"c","choices":[{"index":0,"delta":{"content":"x"}}]}\n\n`);
    }
  }
  const events = readEvents(source(), { protocol: 'openai-chat' });
  for (let i = 0; i < 5; i++) await events.next();
  expect(pulled).toBeLessThan(6);
  await events.return();
});

describe('a source that breaks', () => {
  async function* broken(): AsyncGenerator<Uint8Array> {
    yield bytes.subarray(0, 100);
    throw new Error('socket hang up');
  }

  test('keeps what was read', async () => {
    const result = await accumulate(broken(), { protocol: 'openai-chat' });
    expect(result).toMatchObject({
      text: 'Grü',
      complete: false,
      finish_reason: 'error',
      error: { code: 'stream_error', message: 'reading the stream failed: socket hang up' },
    });
  });

  test('is an error event', async () => {
    const types: string[] = [];
    for await (const event of readEvents(broken(), { protocol: 'openai-chat' })) types.push(event.type);
    expect(types.slice(-2)).toEqual(['message_delta', 'error']);
  });
});

describe('an aborted signal', () => {
  const hanging = (onCancel: (reason: unknown) => void): ReadableStream<Uint8Array> =>
    new ReadableStream({ start: (controller) => controller.enqueue(bytes.subarray(0, 100)), cancel: onCancel });

  test.each(['accumulate', 'readEvents'])('ends %s with its reason and cancels the source', async (name) => {
    const abort = new AbortController();
    let cancelled: unknown;
    const source = hanging((reason) => {
      cancelled = reason;
    });
    const options = { protocol: 'openai-chat', signal: abort.signal } as const;
    const reading = name === 'accumulate' ? accumulate(source, options) : drain(readEvents(source, options));
    void pace(5).then(() => abort.abort(new Error('enough')));
    await expect(reading).rejects.toThrow('enough');
    expect(cancelled).toMatchObject({ message: 'enough' });
  });

  test('before the start reads nothing', async () => {
    await expect(accumulate(BODY, { signal: AbortSignal.abort(new Error('no')) })).rejects.toThrow('no');
  });
});

async function drain(events: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of events);
}
