import type { ProtocolId } from '@sluice/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectAnswered, expectBrokenOff, expectRefused } from './check.ts';
import { cutAfter, errorFrames, framesOf, readStream, TEXT } from './dialects.ts';
import { Faultd } from './faultd.ts';
import { chunk, LAST_CHUNK, parseReply, streamHead } from './http.ts';
import { modelOf, modelsWithSpare, PAIRS, type Pair, providersAt, sparedModelOf } from './pairs.ts';
import { RawClient } from './raw-client.ts';
import { good } from './scripts.ts';
import { ask, askText, type Started, startGateway } from './start.ts';

// The status is held until there is something to say; then, or when the client would lose patience, the stream opens and shows that it lives.

let first: Faultd;
let second: Faultd;
let gateway: Started;

const HOLD_MS = 120;

beforeAll(async () => {
  first = await Faultd.start();
  second = await Faultd.start();
  gateway = await startGateway({
    config: {
      providers: providersAt(first, second),
      models: modelsWithSpare(),
      limits: { hold: `${HOLD_MS}ms`, heartbeat: '40ms', first_event_timeout: '500ms', retries_per_provider: 0 },
    },
  });
});

afterAll(async () => {
  await gateway.close();
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
const silent = [{ send: streamHead() }, { wait: HOLD_MS + 120 }];

describe.each(PAIRS)('$name', (pair) => {
  const beat = BEATS[pair.client];

  test('a silent stream opens and beats, and Gemini’s is only held', async () => {
    first.play([...silent, { send: chunk(framesOf(pair.upstream).join('')) }, { send: LAST_CHUNK }]);
    const client = await RawClient.open(gateway.url);
    client.send(askText(asking(pair)));
    await new Promise((resolve) => setTimeout(resolve, HOLD_MS + 90));
    const early = parseReply(client.received);
    if (beat) expect(early?.body.toString()).toMatch(beat);
    else expect(early).toBeUndefined();
    const reply = await client.reply();
    expect(reply.headers['content-type']).toBe('text/event-stream; charset=utf-8');
    expectAnswered(pair, true, reply);
    client.leave();
  });

  test('another may still answer behind the beats', async () => {
    first.play([...silent, { reset: true }]);
    second.play(good(pair, true));
    const reply = await ask(gateway.url, asking(pair, sparedModelOf(pair)));
    if (beat) expect(reply.body.toString()).toMatch(beat);
    expectAnswered(pair, true, reply);
  });

  test('an error behind the beats is told in the stream, or as a status where it was held', async () => {
    first.play([
      ...silent,
      { send: chunk(errorFrames(pair.upstream, { code: 'OVERLOADED', message: 'too busy' })) },
      { send: LAST_CHUNK },
    ]);
    const reply = await ask(gateway.url, asking(pair));
    if (beat) expectBrokenOff(pair.client, reply, '', 'too busy');
    else expectRefused(pair.client, reply, reply.status, 'too busy');
  });

  test('silence behind the beats, too', async () => {
    first.play([{ send: streamHead() }, { hang: true }]);
    const reply = await ask(gateway.url, asking(pair));
    if (beat) expectBrokenOff(pair.client, reply, '', 'fell silent');
    else expectRefused(pair.client, reply, 504, 'fell silent');
  });

  test('a stream that pauses is kept alive between its frames', async () => {
    const { before, after } = cutAfter(pair.upstream, 'two');
    first.play([
      { send: streamHead() },
      { send: chunk(before.join('')) },
      { wait: 150 },
      { send: chunk(after.join('')) },
      { send: LAST_CHUNK },
    ]);
    const reply = await ask(gateway.url, asking(pair));
    expect(readStream(pair.client, reply.body)).toMatchObject({ text: TEXT, complete: true, error: null });
    expect(/ping/.test(reply.body.toString())).toBe(beat !== undefined);
  });
});

test('a client of Gemini that wants a list gets JSON, also of an error', async () => {
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
