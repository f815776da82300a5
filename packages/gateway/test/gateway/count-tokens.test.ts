import type { ProtocolId } from '@sluice/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectRefused } from './check.ts';
import { errorOf, questionOf } from './dialects.ts';
import { Faultd } from './faultd.ts';
import { type Reply, whole } from './http.ts';
import { providersAt } from './pairs.ts';
import { RawClient, requestText } from './raw-client.ts';
import { type Started, startGateway } from './start.ts';

// Counts of tokens at upstreams that have no endpoint for them.

let faultd: Faultd;
let gateway: Started;

beforeAll(async () => {
  faultd = await Faultd.start();
  gateway = await startGateway({ config: { providers: providersAt(faultd), limits: { retries: 0 } } });
});

afterAll(async () => {
  await gateway.close();
  await faultd.stop();
});

const PATHS = {
  'anthropic-messages': () => '/v1/messages/count_tokens',
  'openai-responses': () => '/v1/responses/input_tokens',
  gemini: (model) => `/v1beta/models/${model}:countTokens`,
} as const satisfies Partial<Record<ProtocolId, (model: string) => string>>;

type Counting = keyof typeof PATHS;
const COUNTING = Object.keys(PATHS) as Counting[];

const FIELD = { 'anthropic-messages': 'input_tokens', 'openai-responses': 'input_tokens', gemini: 'totalTokens' } as const;

async function count(client: Counting, provider: string): Promise<Reply> {
  const model = `${provider}/m`;
  const question = questionOf(client, model, false);
  const connection = await RawClient.open(gateway.url);
  connection.send(requestText('POST', PATHS[client](model), question.headers, JSON.stringify(question.body)));
  const reply = await connection.reply();
  connection.leave();
  return reply;
}

const PAIRS = COUNTING.flatMap((client) =>
  COUNTING.flatMap((upstream) => ['pass', 'mend'].map((way) => [client, way, upstream] as const)),
);

describe.each(PAIRS)('%s client, %s-%s', (client, way, upstream) => {
  test.each([
    ['an error of its protocol', 404, errorOf(upstream, { code: 'NOT_FOUND', message: 'no such path', http_status: 404 }).body],
    ['a page', 404, '<html>Not Found</html>'],
    ['FastAPI', 404, '{"detail":"Not Found"}'],
    ['nothing', 404, ''],
    ['a text', 405, 'Method Not Allowed'],
    ['a text', 501, 'Not Implemented'],
  ])('an upstream without the endpoint (%s, %i) gets an estimate from the gateway', async (_, status, body) => {
    faultd.play([{ send: whole(status, body) }]);
    const reply = await count(client, `${way}-${upstream}`);
    expect(reply.status).toBe(200);
    expect(JSON.parse(reply.body.toString())[FIELD[client]]).toBeGreaterThan(3);
    expect(faultd.served).toHaveLength(1);
    const line = await gateway.ended(reply.headers['x-sluice-request-id']);
    expect(line).toMatchObject({ status: 200, ending: 'answered', provider: `${way}-${upstream}` });
    expect(gateway.log()).toContainEqual(
      expect.objectContaining({ request_id: line['request_id'], status, msg: 'upstream does not count tokens; estimated' }),
    );
  });

  test.each([400, 401, 403, 413, 429, 500, 502])('%i is an error', async (status) => {
    const { body } = errorOf(upstream, { code: 'INVALID_INPUT', message: 'refused', http_status: status });
    faultd.play([{ send: whole(status, body) }]);
    expectRefused(client, await count(client, `${way}-${upstream}`), status);
  });
});

test('only token counts are estimated; an unknown conversation path is an error', async () => {
  faultd.play([{ send: whole(404, '{"detail":"Not Found"}') }]);
  const reply = await fetch(`${gateway.url}/v1/responses`, {
    method: 'POST',
    body: JSON.stringify(questionOf('openai-responses', 'pass-openai-responses/m', false).body),
  });
  expect(reply.status).toBe(404);
});
