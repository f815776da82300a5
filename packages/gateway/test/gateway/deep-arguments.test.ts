import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DEEP, streamOf as deepStream, requestText, responseText } from '../../../../test/deep-arguments.ts';
import { expectBrokenOff, expectRefused } from './check.ts';
import { questionOf } from './dialects.ts';
import { Faultd } from './faultd.ts';
import { type Reply, whole } from './http.ts';
import { modelOf, PAIRS, type Pair, providersAt, waysOf } from './pairs.ts';
import { RawClient, requestText as rawRequest } from './raw-client.ts';
import { good, streamOf } from './scripts.ts';
import { ask, type Started, startGateway } from './start.ts';

let faultd: Faultd;
let gateway: Started;

beforeAll(async () => {
  faultd = await Faultd.start();
  gateway = await startGateway({ config: { providers: providersAt(faultd), limits: { retries_per_provider: 0 } } });
});

afterAll(async () => {
  await gateway.close();
  await faultd.stop();
});

const NESTED = /nested more than \d+ levels/;

async function send(pair: Pair, stream: boolean, body: string): Promise<Reply> {
  const { path, headers } = questionOf(pair.client, modelOf(pair), stream);
  const client = await RawClient.open(gateway.url);
  try {
    return await client
      .send(rawRequest('POST', path, headers, body.replace('"model":"m"', `"model":"${modelOf(pair)}"`)))
      .reply();
  } finally {
    client.leave();
  }
}

const WAYS = waysOf(PAIRS);
const askWith = ({ pair, stream }: (typeof WAYS)[number]): Promise<Reply> =>
  ask(gateway.url, { client: pair.client, model: modelOf(pair), stream });

describe.each(Object.entries(DEEP))('arguments nested 50,000 %s deep', (_, args) => {
  /** A request that is sent as it came is read by the upstream alone, unless the body itself is nested. */
  const isTextOnly = ({ client, upstream }: Pair): boolean =>
    client === upstream && (client === 'openai-chat' || client === 'openai-responses');

  test.each(WAYS.filter(({ pair }) => !isTextOnly(pair)))(
    'in a request are rejected with 400: $name',
    async ({ pair, stream }) => {
      faultd.play(good(pair, stream));
      const reply = await send(pair, stream, requestText(pair.client, args, stream));
      expectRefused(pair.client, reply, 400, NESTED);
      expect(faultd.served).toHaveLength(0);
    },
  );

  test.each(WAYS.filter(({ pair }) => isTextOnly(pair)))(
    'in a passed-through request are forwarded unchanged: $name',
    async ({ pair, stream }) => {
      faultd.play(good(pair, stream));
      const reply = await send(pair, stream, requestText(pair.client, args, stream));
      expect(reply.status).toBe(200);
      expect(faultd.served[0]?.body).toContain(JSON.stringify(args));
    },
  );

  test.each(WAYS.filter(({ stream }) => !stream))('in a response are 502: $name', async (way) => {
    faultd.play([{ send: whole(200, responseText(way.pair.upstream, args)) }]);
    expectRefused(way.pair.client, await askWith(way), 502, NESTED);
  });

  test.each(WAYS.filter(({ stream }) => stream))('in a stream end it with an error: $name', async (way) => {
    faultd.play(streamOf(deepStream(way.pair.upstream, args)));
    const reply = await askWith(way);
    if (reply.status === 200) expectBrokenOff(way.pair.client, reply, '', NESTED);
    else expectRefused(way.pair.client, reply, 502, NESTED);
  });

  test.each(WAYS)('in an error body do not change its status: $name', async (way) => {
    faultd.play([{ send: whole(422, `{"error":${args}}`) }]);
    const reply = await askWith(way);
    expectRefused(way.pair.client, reply, 422);
  });
});
