import type { ProtocolId } from '@sluice/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { takeTurns } from '../../../../test/wait.ts';
import { cutAfter, framesOf, USAGE } from '../gateway/dialects.ts';
import type { Script } from '../gateway/faultd.ts';
import { chunk, head, streamHead, whole } from '../gateway/http.ts';
import { modelOf, PAIRS, type Pair, waysOf } from '../gateway/pairs.ts';
import { RawClient, requestText } from '../gateway/raw-client.ts';
import { askText, eventually } from '../gateway/start.ts';
import { expectFields, expectRow, Rig } from './rig.ts';

// A request whose client leaves has one row, one row an attempt, and what its upstream reported or what it can be estimated by.

let rig: Rig;
let draining: Rig;

beforeAll(async () => {
  rig = await Rig.start();
  const providers = (rows: Record<string, object>): Record<string, object> =>
    Object.fromEntries(Object.entries(rows).map(([id, row]) => [id, { ...row, on_disconnect: 'drain' }]));
  draining = await Rig.start({ providers });
});

afterAll(async () => {
  await rig.expectRollups();
  await rig.stop();
  await draining.expectRollups();
  await draining.stop();
});

const ABORTED = { status: 499, ending: 'client_aborted' } as const;

const send = async ({ client, ...pair }: Pair, stream: boolean, to = rig): Promise<RawClient> => {
  const raw = await RawClient.open(to.gateway.url);
  raw.send(askText({ client, model: modelOf({ client, ...pair }), stream }));
  return raw;
};

/** Everything is cleaned up: the connection to the upstream is closed. */
const expectHungUp = (): Promise<unknown> => eventually(() => rig.first.served.every(({ isClosed }) => isClosed));

test('before the body is complete', async () => {
  const client = await RawClient.open(rig.gateway.url);
  client.send(requestText('POST', '/v1/chat/completions', { 'content-length': '1000' }, '{"model":').slice(0, -1));
  await eventually(() => rig.gateway.services.streams.count === 1);
  client.reset();
  const row = await rig.takeRow();
  expectRow(row, [], { ...ABORTED, attempts: [] });
  expectFields(row.exchange, 'exchange', { endpoint: 'chat', client_protocol: 'openai-chat', model: null });
});

describe.each(waysOf(PAIRS))('$name', ({ pair, stream }) => {
  test('before the headers', async () => {
    rig.first.play([{ hang: true }]);
    const client = await send(pair, stream);
    await eventually(() => rig.first.served.length === 1);
    client.reset();
    expectRow(await rig.takeRow(), [], {
      ...ABORTED,
      attempts: [{ ending: 'client_aborted', status: null, possiblyBilled: true }],
    });
    await expectHungUp();
  });

  test('after the headers', async () => {
    const script: Script = [
      { send: stream ? streamHead() : head(200, { 'content-type': 'application/json', 'content-length': '999' }) },
      { hang: true },
    ];
    rig.first.play(script);
    const client = await send(pair, stream);
    await eventually(() => (rig.first.served[0]?.sent ?? 0) > 0);
    // Until the gateway, which is in this process, has read the headers.
    await takeTurns();
    client.reset();
    expectRow(await rig.takeRow(), [], {
      ...ABORTED,
      attempts: [{ ending: 'client_aborted', status: 200, possiblyBilled: true }],
    });
    await expectHungUp();
  });

  test('during a pause before a retry', async () => {
    rig.first.play([rig.note('first', { status: 429 }), { send: whole(429, '{}', { 'retry-after': '5' }) }]);
    const client = await send(pair, stream);
    await eventually(() => rig.gateway.lines.findLast((line) => line.includes('attempt failed') && line.includes(pair.upstream)));
    await eventually(() => rig.first.served[0]?.isDone);
    await takeTurns();
    client.reset();
    expectRow(await rig.takeRow(), rig.takeLog(), { ...ABORTED, attempts: [{ ending: 'upstream_error' }] });
  });
});

const INPUT = 1234;

/** A chunk of a stream with the usage so far in it, as servers report it before the end; Responses reports it at the end alone. */
const withUsage = {
  'openai-chat': (payload, output) => ({
    ...payload,
    usage: { prompt_tokens: INPUT, completion_tokens: output, total_tokens: INPUT + output },
  }),
  'anthropic-messages': (payload, output) =>
    payload['type'] === 'message_start'
      ? { ...payload, message: { ...Object(payload['message']), usage: { input_tokens: INPUT, output_tokens: output } } }
      : payload,
  'openai-responses': undefined,
  gemini: (payload, output) => ({
    ...payload,
    usageMetadata: { promptTokenCount: INPUT, candidatesTokenCount: output, totalTokenCount: INPUT + output },
  }),
} as const satisfies Record<ProtocolId, ((payload: Record<string, unknown>, output: number) => object) | undefined>;

const report = (protocol: ProtocolId, frames: string, output: number): string =>
  frames.replace(/^data: (\{.*\})/gm, (_, data) => `data: ${JSON.stringify(withUsage[protocol]?.(JSON.parse(data), output))}`);

describe.each(PAIRS)('$name', (pair) => {
  const { upstream } = pair;

  test('in the stream, without reported usage: estimated', async () => {
    rig.first.play([{ send: streamHead() }, { send: chunk(cutAfter(upstream, 'three').before.join('')) }, { hang: true }]);
    const client = await send(pair, true);
    await client.sees('three');
    client.reset();
    const row = await rig.takeRow();
    const usage = { input_tokens: row.exchange.input_tokens ?? 0, output_tokens: Math.ceil('One two three'.length / 4) };
    expectRow(row, [], {
      ...ABORTED,
      attempts: [{ ending: 'client_aborted', status: 200, usage, provenance: 'estimated', possiblyBilled: true }],
    });
    expect(usage.input_tokens).toBeGreaterThan(0);
    expect(row.exchange.model_answered).toBe('m');
    await expectHungUp();
  });

  test.skipIf(withUsage[upstream] === undefined)('in the stream, with usage so far: as reported', async () => {
    const frames = report(upstream, cutAfter(upstream, 'three').before.join(''), 3);
    rig.first.play([{ send: streamHead() }, { send: chunk(frames) }, { hang: true }]);
    const client = await send(pair, true);
    await client.sees('three');
    client.reset();
    expectRow(await rig.takeRow(), [], {
      ...ABORTED,
      attempts: [{ ending: 'client_aborted', status: 200, usage: { input_tokens: INPUT, output_tokens: 3 } }],
    });
  });

  test.skipIf(upstream !== 'anthropic-messages')(
    'in the stream, with a report from before its content: output is estimated',
    async () => {
      const long = 'word '.repeat(100);
      const frames = report(upstream, cutAfter(upstream, 'three').before.join(''), 1).replaceAll('three', `three ${long}`);
      rig.first.play([{ send: streamHead() }, { send: chunk(frames) }, { hang: true }]);
      const client = await send(pair, true);
      await client.sees('three');
      client.reset();
      const row = await rig.takeRow();
      expectFields(row.exchange, 'exchange', { input_tokens: INPUT, provenance: 'estimated', ending: 'client_aborted' });
      expect(row.exchange.output_tokens).toBe(
        Math.min(pair.client === 'anthropic-messages' ? 99 : Infinity, Math.ceil(`One two three ${long}`.length / 4)),
      );
    },
  );

  test('between the last content and the end', async () => {
    rig.first.play([{ send: streamHead() }, { send: chunk(cutAfter(upstream, 'five').before.join('')) }, { hang: true }]);
    const client = await send(pair, true);
    await client.sees('five');
    client.reset();
    const row = await rig.takeRow();
    expectFields(row.exchange, 'exchange', { http_status: 499, ending: 'client_aborted', attempts: 1, state: 'settled' });
    expectFields(row.attempts[0], 'attempt', { state: 'settled', ending: 'client_aborted', possibly_billed: true });
  });

  test('in the stream, drained: the usage of the whole response', async () => {
    let go = (): void => undefined;
    const left = new Promise<void>((resolve) => {
      go = resolve;
    });
    const { before, after } = cutAfter(upstream, 'three');
    draining.first.play([
      draining.note('first', { status: 200, usage: USAGE }),
      { send: streamHead() },
      { send: chunk(before.join('')) },
      { run: () => left },
      { send: chunk(after.join('')) },
      { send: '0\r\n\r\n' },
    ]);
    const client = await send(pair, true, draining);
    await client.sees('three');
    const [connection] = draining.gateway.services.streams.underWay;
    client.reset();
    await eventually(() => connection?.isGone);
    go();
    expectRow(await draining.takeRow(), draining.takeLog(), { ...ABORTED, attempts: [{ ending: 'client_aborted' }] });
  });
});

test('bytes that are passed on', async () => {
  rig.first.play([{ hang: true }]);
  const client = await RawClient.open(rig.gateway.url);
  client.send(requestText('POST', '/v1/moderations', {}, '{"model":"pass-openai-chat/m","input":"x"}'));
  await eventually(() => rig.first.served.length === 1);
  client.reset();
  expectRow(await rig.takeRow(), [], {
    ...ABORTED,
    attempts: [{ ending: 'client_aborted', status: null, possiblyBilled: true }],
  });
});

test.each(PAIRS)('after any number of bytes there is one row, and nothing stays open: $name', async (pair) => {
  const length = framesOf(pair.upstream).join('').length;
  const steps = 8;
  for (let step = 0; step <= steps; step++) {
    rig.first.play([
      { send: streamHead() },
      {
        split: framesOf(pair.upstream)
          .map((frame) => chunk(frame).toString('latin1'))
          .join(''),
        size: 200,
      },
      { send: '0\r\n\r\n' },
    ]);
    const client = await send(pair, true);
    const least = Math.max(1, Math.floor((length * step) / steps));
    await eventually(() => client.received.length >= least || client.received.includes('0\r\n\r\n'));
    client.reset();
    const { exchange, attempts } = await rig.takeRow();
    expect([exchange.state, ...attempts.map(({ state }) => state)]).toEqual(Array(attempts.length + 1).fill('settled'));
    expect(['answered', 'client_aborted']).toContain(exchange.ending);
    expect(attempts.length).toBe(rig.first.served.length);
    // The end that a client has seen is recorded with exact usage.
    if (exchange.ending === 'answered') expectFields(exchange, 'exchange', { ...USAGE, provenance: 'reported' });
  }
});
