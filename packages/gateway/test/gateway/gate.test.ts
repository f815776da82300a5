import type { ProtocolId } from '@sluice/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectAnswered, expectBrokenOff, expectRefused } from './check.ts';
import { cutAfter, errorFrames, framesOf, readStream, TEXT } from './dialects.ts';
import { Faultd, type Script } from './faultd.ts';
import { chunk, LAST_CHUNK, type Reply, streamHead } from './http.ts';
import { modelOf, modelsWithSpare, PAIRS, type Pair, providersAt, sparedModelOf } from './pairs.ts';
import { RawClient } from './raw-client.ts';
import { good } from './scripts.ts';
import { ask, askText, type Started, startGateway } from './start.ts';
import { TestClock } from './test-clock.ts';

// The status is held until there is something to say; then, or when the client would lose patience, the stream opens and shows that it lives.

const clock = new TestClock();
let first: Faultd;
let second: Faultd;
let gateway: Started;
/** The same, with all the time in the world for a first event. */
let patient: Started;

const HOLD_MS = 60;
const BEAT_MS = 40;

beforeAll(async () => {
  first = await Faultd.start();
  second = await Faultd.start();
  const limits = { hold: `${HOLD_MS}ms`, heartbeat: `${BEAT_MS}ms`, retries_per_provider: 0 };
  const config = { providers: providersAt(first, second), models: modelsWithSpare() };
  gateway = await startGateway({ clock, config: { ...config, limits: { ...limits, first_event_timeout: '1s' } } });
  patient = await startGateway({ clock, config: { ...config, limits } });
});

afterAll(async () => {
  await gateway.close();
  await patient.close();
  await first.stop();
  await second.stop();
});

const BEATS: Record<ProtocolId, RegExp | undefined> = {
  'openai-chat': /^: ping\n\n/,
  'anthropic-messages': /^event: ping\ndata: \{"type": "ping"\}\n\n/,
  'openai-responses': /^: ping\n\n/,
  gemini: undefined,
};

const asking = (pair: Pair, model = modelOf(pair)) => ({ client: pair.client, model, stream: true });

/** An upstream that says nothing until the time of the first beat has come. */
async function askBehindBeats(pair: Pair, model: string, said: Script, then: Script): Promise<Reply> {
  let speak: () => void = () => undefined;
  const spoken = new Promise<void>((resolve) => (speak = resolve));
  first.play([{ send: streamHead() }, ...said, { run: () => spoken }, ...then]);
  const client = await RawClient.open(patient.url);
  client.send(askText(asking(pair, model)));
  const hasBeats = BEATS[pair.client] !== undefined;
  if (said.length === 0) {
    await clock.advance(HOLD_MS - 1);
    expect(client.received).toHaveLength(0);
    await clock.advance(1);
    expect(client.received.length > 0).toBe(hasBeats);
  } else await client.sees('two');
  const before = client.received.length;
  await clock.advance(BEAT_MS - 1);
  expect(client.received).toHaveLength(before);
  await clock.advance(1);
  expect(client.received.subarray(before).includes('ping')).toBe(hasBeats);
  speak();
  const reply = await client.reply();
  client.leave();
  return reply;
}

describe.each(PAIRS)('$name', (pair) => {
  const beat = BEATS[pair.client];

  test('a silent stream opens and sends heartbeats; a Gemini stream is held', async () => {
    const frames = chunk(framesOf(pair.upstream).join(''));
    const reply = await askBehindBeats(pair, modelOf(pair), [], [{ send: frames }, { send: LAST_CHUNK }]);
    expect(reply.headers['content-type']).toBe('text/event-stream; charset=utf-8');
    if (beat) expect(reply.body.toString()).toMatch(beat);
    expectAnswered(pair, true, reply);
  });

  test('another upstream may still respond after heartbeats', async () => {
    second.play(good(pair, true));
    const reply = await askBehindBeats(pair, sparedModelOf(pair), [], [{ reset: true }]);
    if (beat) expect(reply.body.toString()).toMatch(beat);
    expectAnswered(pair, true, reply);
  });

  test('an error after heartbeats is sent in the stream, or as a status if the stream was held', async () => {
    const error = chunk(errorFrames(pair.upstream, { code: 'OVERLOADED', message: 'too busy' }));
    const reply = await askBehindBeats(pair, modelOf(pair), [], [{ send: error }, { send: LAST_CHUNK }]);
    if (beat) expectBrokenOff(pair.client, reply, '', 'too busy');
    else expectRefused(pair.client, reply, reply.status, 'too busy');
  });

  test('a timeout after heartbeats is sent in the stream', async () => {
    first.play([{ send: streamHead() }, { hang: true }]);
    const reply = await clock.after(1000, ask(gateway.url, asking(pair)));
    if (beat) expectBrokenOff(pair.client, reply, '', 'sent no event within 1 s');
    else expectRefused(pair.client, reply, 504, 'sent no event within 1 s');
  });

  test('a paused stream gets heartbeats between its frames', async () => {
    const { before, after } = cutAfter(pair.upstream, 'two');
    const reply = await askBehindBeats(
      pair,
      modelOf(pair),
      [{ send: chunk(before.join('')) }],
      [{ send: chunk(after.join('')) }, { send: LAST_CHUNK }],
    );
    expect(readStream(pair.client, reply.body)).toMatchObject({ text: TEXT, complete: true, error: null });
    expect(/ping/.test(reply.body.toString())).toBe(beat !== undefined);
  });
});

test('a Gemini client without alt=sse gets a JSON array, also for an error', async () => {
  const path = '/v1beta/models/mend-openai-chat/m:streamGenerateContent';
  const body = JSON.stringify({ contents: [{ parts: [{ text: 'hi' }] }] });
  const { before } = cutAfter('openai-chat', 'two');
  for (const frames of [framesOf('openai-chat'), before]) {
    first.play([{ send: streamHead() }, { send: chunk(frames.join('')) }, { send: LAST_CHUNK }]);
    const reply = await fetch(gateway.url + path, { method: 'POST', body });
    expect(reply.headers.get('content-type')).toBe('application/json; charset=utf-8');
    const list = JSON.parse(await reply.text());
    expect('error' in list.at(-1)).toBe(frames === before);
  }
});
