import type { ProtocolId } from '@sluice/core';
import { embedText, rank } from '@sluice/lab/demo';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readStream, readWhole } from './dialects.ts';
import { ask, type Started, startGateway } from './start.ts';

// What answers when nothing is configured.

let gateway: Started;

beforeAll(async () => {
  gateway = await startGateway({ config: {} });
});

afterAll(() => gateway.close());

const PROTOCOLS: readonly ProtocolId[] = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'];

test.each(PROTOCOLS)('%s: streams and whole responses for any model name', async (client) => {
  for (const model of ['demo/echo', 'gpt-5', 'claude-sonnet-5']) {
    const streamed = readStream(client, (await ask(gateway.url, { client, model, stream: true })).body);
    expect(streamed).toMatchObject({ complete: true, error: null });
    const whole = readWhole(client, (await ask(gateway.url, { client, model, stream: false })).body);
    expect(whole.content).toMatchObject([{ type: 'text', text: streamed.text }]);
    expect(streamed.text).toContain('Count to five.');
  }
});

describe('side endpoints', () => {
  const post = async (path: string, body: object, headers: Record<string, string> = {}) =>
    (await fetch(gateway.url + path, { method: 'POST', body: JSON.stringify(body), headers })).json();
  const messages = [{ role: 'user', content: 'How many tokens are these?' }];

  test('token counts', async () => {
    const count = await post('/v1/messages/count_tokens', { model: 'demo/echo', messages });
    expect(count).toEqual({ input_tokens: expect.any(Number) });
    expect(await post('/v1/responses/input_tokens', { model: 'demo/echo', input: 'hello' })).toMatchObject({
      input_tokens: expect.any(Number),
    });
    expect(await post('/v1beta/models/demo/echo:countTokens', { contents: [{ parts: [{ text: 'hello' }] }] })).toMatchObject({
      totalTokens: expect.any(Number),
    });
  });

  test('embeddings', async () => {
    const { data } = await post('/v1/embeddings', { model: 'demo/echo', input: ['red fox', 'red fox', 'blue sky'] });
    expect(data).toHaveLength(3);
    expect(data[0].embedding).toEqual(data[1].embedding);
    expect(data[0].embedding).not.toEqual(data[2].embedding);
    const one = await post('/v1beta/models/demo/echo:embedContent', { content: { parts: [{ text: 'red fox' }] } });
    expect(one.embedding.values).toEqual(data[0].embedding);
    expect(Math.hypot(...embedText('any text', 3))).toBeCloseTo(1);
    expect(embedText('', 4)).toEqual([0, 0, 0, 0]);
  });

  test('rerank', async () => {
    const { results } = await post('/v1/rerank', {
      model: 'demo/echo',
      query: 'red fox',
      documents: ['a dog', 'the red fox'],
      top_n: 1,
    });
    expect(results).toMatchObject([{ index: 1, relevance_score: 1 }]);
    expect(rank({ model: 'm', query: '', documents: ['a'] }).results).toEqual([{ index: 0, relevance_score: 0 }]);
  });
});
