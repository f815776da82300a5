import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ClientConnection } from '../../src/exchange/client-connection.ts';
import { Streams } from '../../src/exchange/load.ts';
import { cutAfter, USAGE, wholeOf } from './dialects.ts';
import { Faultd } from './faultd.ts';
import { chunk, LAST_CHUNK, streamHead, whole } from './http.ts';
import { modelOf, PAIRS, providersAt } from './pairs.ts';
import { RawClient } from './raw-client.ts';
import { askText, eventually, type Started, startGateway } from './start.ts';

// docs/reliability.md, Clients: `on_disconnect: drain`, for operators who want the usage of responses whose client disconnected.

let faultd: Faultd;
let gateway: Started;

const draining = (): Record<string, object> =>
  Object.fromEntries(Object.entries(providersAt(faultd)).map(([id, row]) => [id, { ...row, on_disconnect: 'drain' }]));

/** Knows who asked last. */
class WatchedStreams extends Streams {
  last: ClientConnection | undefined;

  override enter(connection: ClientConnection): void {
    this.last = connection;
    super.enter(connection);
  }
}

const streams = new WatchedStreams(100);

beforeAll(async () => {
  faultd = await Faultd.start();
  gateway = await startGateway({ config: { providers: draining() }, services: (made) => ({ ...made, streams }) });
});

afterAll(async () => {
  await gateway.close();
  await faultd.stop();
});

/** A script waits for `until`; `go` lets it go on. */
function gate(): { until: { run: () => Promise<void> }; go: () => void } {
  let go: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    go = resolve;
  });
  return { until: { run: () => opened }, go: () => go() };
}

/** Returns when the gateway knows. */
async function leave(client: RawClient): Promise<void> {
  client.reset();
  await eventually(() => streams.last?.isGone);
}

async function expectCounted(): Promise<void> {
  await eventually(() => streams.count === 0);
  expect(gateway.log().findLast(({ msg }) => msg === 'answered')).toMatchObject({
    ending: 'client_aborted',
    status: 499,
    attempts: 1,
    ...USAGE,
  });
  expect(faultd.served).toHaveLength(1);
}

describe.each(PAIRS)('a client that disconnects: $name', (pair) => {
  const { before, after } = cutAfter(pair.upstream, 'two');
  const ask = (stream: boolean): string => askText({ client: pair.client, model: modelOf(pair), stream });

  test('in the middle of a stream, the upstream is read to its end', async () => {
    const { until, go } = gate();
    faultd.play([
      { send: streamHead() },
      { send: chunk(before.join('')) },
      until,
      { send: chunk(after.join('')) },
      { send: LAST_CHUNK },
    ]);
    const client = await RawClient.open(gateway.url);
    client.send(ask(true));
    await client.sees('two');
    await leave(client);
    expect(streams.count).toBe(1);
    go();
    await expectCounted();
  });

  test('before the first event, the upstream is read to its end', async () => {
    const { until, go } = gate();
    faultd.play([until, { send: streamHead() }, { send: chunk([...before, ...after].join('')) }, { send: LAST_CHUNK }]);
    const client = await RawClient.open(gateway.url);
    client.send(ask(true));
    await eventually(() => faultd.served[0]);
    await leave(client);
    go();
    await expectCounted();
  });

  test('after it stopped reading, the upstream is read to its end', async () => {
    const word = before.at(-1) ?? '';
    const flood = Array.from({ length: 40 }, () => ({ send: chunk(word.repeat(500)) }));
    faultd.play([
      { send: streamHead() },
      { send: chunk(before.slice(0, -1).join('')) },
      ...flood,
      { send: chunk(after.join('')) },
      { send: LAST_CHUNK },
    ]);
    const client = await RawClient.open(gateway.url);
    client.socket.pause();
    client.send(ask(true));
    await eventually(() => faultd.served[0]?.sent);
    await leave(client);
    await expectCounted();
  });

  test('before a whole response, the upstream is read to its end', async () => {
    const { until, go } = gate();
    faultd.play([until, { send: whole(200, wholeOf(pair.upstream)) }]);
    const client = await RawClient.open(gateway.url);
    client.send(ask(false));
    await eventually(() => faultd.served[0]);
    await leave(client);
    go();
    await expectCounted();
  });
});

test('a failed upstream is not retried after the client has left', async () => {
  const [pair] = PAIRS;
  if (!pair) throw new Error('there are pairs');
  for (const stream of [true, false]) {
    const { until, go } = gate();
    faultd.play([until, { send: whole(503, '{"error":{"message":"busy"}}') }]);
    const client = await RawClient.open(gateway.url);
    client.send(askText({ client: pair.client, model: modelOf(pair), stream }));
    await eventually(() => faultd.served[0]);
    await leave(client);
    go();
    await eventually(() => streams.count === 0);
    expect(gateway.log().findLast(({ msg }) => msg === 'answered')).toMatchObject({ ending: 'client_aborted', attempts: 1 });
    expect(faultd.served).toHaveLength(1);
  }
});

test('a gateway that stops does not wait for a drained response', async () => {
  const own = await startGateway({ config: { providers: draining() } });
  for (const stream of [true, false]) {
    faultd.play([{ hang: true }]);
    const client = await RawClient.open(own.url);
    client.send(askText({ client: 'openai-chat', model: 'pass-openai-chat/m', stream }));
    await eventually(() => faultd.served[0]);
    client.reset();
  }
  expect(own.services.streams.count).toBe(2);
  await own.close(50);
  expect(own.services.streams.count).toBe(0);
});
