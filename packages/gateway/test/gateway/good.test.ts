import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { framesOf, readStream, readWhole, TEXT, wholeOf } from './dialects.ts';
import { Faultd } from './faultd.ts';
import { chunk, LAST_CHUNK, streamHead, whole } from './http.ts';
import { modelOf, PAIRS, providersAt } from './pairs.ts';
import { ask, type Started, startGateway } from './start.ts';

let faultd: Faultd;
let gateway: Started;

beforeAll(async () => {
  faultd = await Faultd.start();
  gateway = await startGateway({ config: { providers: providersAt(faultd) } });
});

afterAll(async () => {
  await gateway.close();
  await faultd.stop();
});

describe.each(PAIRS)('$name', (pair) => {
  test('a stream', async () => {
    const frames = framesOf(pair.upstream);
    faultd.play([{ send: streamHead() }, ...frames.map((frame) => ({ send: chunk(frame) })), { send: LAST_CHUNK }]);
    const reply = await ask(gateway.url, { client: pair.client, model: modelOf(pair), stream: true });
    expect(reply).toMatchObject({ status: 200, isWhole: true, headers: { 'content-type': 'text/event-stream; charset=utf-8' } });
    expect(readStream(pair.client, reply.body)).toMatchObject({ text: TEXT, complete: true, error: null });
    if (pair.isPassing) expect(reply.body.toString()).toBe(frames.join(''));
    expect(await gateway.ended(reply.headers['x-sluice-request-id'])).toMatchObject({
      ending: 'answered',
      status: 200,
      output_tokens: 5,
    });
  });

  test('a whole response', async () => {
    const body = ` ${wholeOf(pair.upstream)}\n`;
    faultd.play([{ send: whole(200, body) }]);
    const reply = await ask(gateway.url, { client: pair.client, model: modelOf(pair), stream: false });
    expect(reply).toMatchObject({ status: 200, isWhole: true });
    expect(readWhole(pair.client, reply.body).content).toMatchObject([{ type: 'text', text: TEXT }]);
    if (pair.isPassing) expect(reply.body.toString()).toBe(body);
  });
});
