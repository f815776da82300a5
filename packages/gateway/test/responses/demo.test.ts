import OpenAI from 'openai';
import { expect, test } from 'vitest';
import { startGateway } from '../gateway/start.ts';

// The demo model has no clock and no chance: its ids depend on the request alone.
test('conversations with the demo model do not mix', async () => {
  const gateway = await startGateway({ config: {} });
  const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 });
  const ask = (input: string, previous?: string) =>
    client.responses.create({ model: 'demo/hello', input, ...(previous && { previous_response_id: previous }) });
  const ann = await ask('my name is Ann');
  const bob = await ask('my name is Bob');
  expect(ann.id).not.toBe(bob.id);
  expect(ann.output[0]?.id).not.toBe(bob.output[0]?.id);
  const items = await client.responses.inputItems.list(ann.id);
  expect(JSON.stringify(items.data)).toContain('Ann');
  // What a continued request refers to is counted as its input.
  const next = await ask('who am I?', ann.id);
  expect(next.usage?.input_tokens).toBeGreaterThan(ann.usage?.input_tokens ?? 0);
  expect(next.id).not.toBe(ann.id);
  await gateway.close();
});
