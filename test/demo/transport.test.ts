import type { ProtocolId } from '@sluice/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { run } from '../../packages/gateway/src/server/run.ts';
import { DemoTransport } from '../../packages/gateway/src/upstream/demo.ts';
import type { Call, Line, Receiver } from '../../packages/gateway/src/upstream/dialer.ts';
import { questionOf, readStream, readWhole } from '../../packages/gateway/test/gateway/dialects.ts';
import { RawClient } from '../../packages/gateway/test/gateway/raw-client.ts';
import { ask, askText, eventually, type Started, startGateway } from '../../packages/gateway/test/gateway/start.ts';

const PROTOCOLS: readonly ProtocolId[] = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'];

/** Resources of this process that the system waits for, by their kind. */
const active = (kind: string): number => process.getActiveResourcesInfo().filter((name) => name === kind).length;

/** Lets everything happen that needs no time. */
async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** Hears one response. `onData` may pause the line or hang up. */
class Listener implements Receiver {
  readonly heard: string[] = [];
  head: { status: number; headers: Record<string, string> } | undefined;
  error: Error | undefined;
  line: Line | undefined;
  readonly #onData: (line: Line) => void;

  constructor(onData: (line: Line) => void = () => undefined) {
    this.#onData = onData;
  }

  get text(): string {
    return this.heard.filter((event) => event !== 'end' && event !== 'fail').join('');
  }

  get isOver(): boolean {
    return ['end', 'fail'].includes(this.heard.at(-1) ?? '');
  }

  start(status: number, headers: Record<string, string>): void {
    this.head = { status, headers };
  }

  data(chunk: Uint8Array): void {
    this.heard.push(Buffer.from(chunk).toString());
    if (this.line) this.#onData(this.line);
  }

  end(): void {
    this.heard.push('end');
  }

  fail(error: Error): void {
    this.error = error;
    this.heard.push('fail');
  }
}

function dial(model: string, listener: Listener, stream = true): Listener {
  const { path, headers, body } = questionOf('openai-chat', model, stream);
  const url = `http://demo.invalid${path}`;
  const request = { method: 'POST', headers, body: JSON.stringify(body) };
  const call: Call = { url, origin: 'http://demo.invalid', ...request, connectMs: 1000, repeat: 'never' };
  listener.line = new DemoTransport(0).dial(call, listener);
  return listener;
}

const hear = async (model: string): Promise<Listener> => {
  const listener = dial(model, new Listener());
  await eventually(() => listener.isOver);
  return listener;
};

test('a gateway with the demo model listens on one port', async () => {
  const before = active('TCPServerWrap');
  const gateway = await run({ folder: import.meta.dirname, env: {}, listen: { port: 0 }, log: 'silent' });
  const reply = await ask(gateway.url, { client: 'openai-chat', model: 'demo/hello', stream: false });
  expect(reply.status).toBe(200);
  expect(active('TCPServerWrap') - before).toBe(1);
  await gateway.close(0);
  await eventually(() => active('TCPServerWrap') === before);
});

describe('through the gateway', () => {
  let gateway: Started;
  beforeAll(async () => {
    gateway = await startGateway({ config: { limits: { drain: '1s' } } });
  });
  afterAll(() => gateway.close());

  test.each(PROTOCOLS)('%s: a stream and a whole response have the same text', async (client) => {
    const streamed = readStream(client, (await ask(gateway.url, { client, model: 'demo/hello', stream: true })).body);
    const whole = readWhole(client, (await ask(gateway.url, { client, model: 'demo/hello', stream: false })).body);
    expect(streamed).toMatchObject({ complete: true, error: null });
    expect(whole.content).toMatchObject([{ type: 'text', text: streamed.text }]);
  });

  test.each(PROTOCOLS)('%s: an unsupported fault gets 400', async (client) => {
    const reply = await ask(gateway.url, { client, model: 'demo/hello!cuut=3', stream: true });
    expect(reply.status).toBe(400);
    expect(reply.body.toString()).toContain('did you mean');
  });

  test.each(PROTOCOLS)('%s: a reset in the middle of the stream ends in an error', async (client) => {
    const reply = await ask(gateway.url, { client, model: 'demo/hello!reset=900', stream: true });
    const { complete, error } = readStream(client, reply.body);
    expect(complete && error === null && reply.status === 200).toBe(false);
  });

  test.each(PROTOCOLS)('%s: a client that disconnects during a stream leaves no resources', async (client) => {
    const timers = active('Timeout');
    const left = await RawClient.open(gateway.url);
    left.send(askText({ client, model: 'demo/hello!stall=2500', stream: true }));
    await left.sees('This');
    expect(gateway.services.streams.count).toBe(1);
    left.leave();
    await eventually(() => gateway.services.streams.count === 0);
    await eventually(() => active('Timeout') <= timers);
    expect(gateway.log().at(-1)).toMatchObject({ ending: 'client_aborted' });
  });
});

describe('a call', () => {
  test('gets its response asynchronously', async () => {
    const listener = dial('hello', new Listener());
    expect(listener).toMatchObject({ head: undefined, heard: [] });
    await eventually(() => listener.isOver);
    expect(listener).toMatchObject({ head: { status: 200, headers: { 'content-type': 'text/event-stream' } } });
    expect(listener.text).toContain('[DONE]');
  });

  test('waits while its receiver is paused', async () => {
    const listener = dial('hello', new Listener((line) => line.pause()));
    for (let chunks = 1; chunks < 4; chunks++) {
      await eventually(() => listener.heard.length === chunks);
      await turns(20);
      expect(listener.heard).toHaveLength(chunks);
      listener.line?.resume();
    }
  });

  test('does not end while its receiver is paused', async () => {
    const listener = dial('hello', new Listener((line) => line.pause()), false);
    await eventually(() => listener.heard.length === 1);
    await turns(20);
    expect(listener.isOver).toBe(false);
    listener.line?.resume();
    await eventually(() => listener.isOver);
  });

  test.each([
    ['a stream', 'hello', true],
    ['a stream that stalls', 'hello!stall=1', true],
    ['a whole response', 'hello', false],
  ])('that is cancelled during %s delivers nothing more', async (_, model, stream) => {
    const listener = dial(model, new Listener((line) => line.hangUp()), stream);
    await eventually(() => listener.heard.length > 0);
    await turns(20);
    expect(listener.heard).toHaveLength(1);
    expect(listener.isOver).toBe(false);
  });

  test('that is cancelled at once delivers nothing', async () => {
    const listener = dial('hello', new Listener());
    listener.line?.hangUp();
    await turns(20);
    expect(listener).toMatchObject({ head: undefined, heard: [] });
  });

  test('that is cancelled while a piece is due leaves no timer', async () => {
    const listener = dial('hello!slow=600000', new Listener());
    await eventually(() => listener.head);
    await turns(5);
    const timers = active('Timeout');
    listener.line?.hangUp();
    expect(active('Timeout')).toBe(timers - 1);
  });
});

describe('faults in the name of the model', () => {
  test.each(['hello!cut=40', 'hello!cut=40,slow=1'])('%s ends early', async (model) => {
    const { text, heard } = await hear(model);
    expect(text).toHaveLength(40);
    expect(heard.at(-1)).toBe('end');
  });

  test('reset fails the connection', async () => {
    const { error, text } = await hear('hello!reset=40');
    expect(text).toHaveLength(40);
    expect(error).toMatchObject({ code: 'ECONNRESET' });
  });

  test('dialects can be combined', async () => {
    const { text } = await hear('no-done!sse/crlf');
    expect(text).toContain('\r\n\r\n');
    expect(text).not.toContain('[DONE]');
  });

  test.each([
    ['hello!cuut=3', 'did you mean'],
    ['hello!status=429', 'sluice replay'],
  ])('%s is rejected', async (model, message) => {
    const { head, text } = await hear(model);
    expect(head?.status).toBe(400);
    expect(text).toContain(message);
  });
});
