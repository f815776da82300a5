import { afterAll, beforeAll, expect, test } from 'vitest';
import { DemoUpstream } from '../../src/demo/server.ts';
import { ask } from '../gateway/start.ts';

// The demo plays its streams with the code of the replay, and takes its faults.

const demo = new DemoUpstream(0);
let url = '';
beforeAll(async () => {
  url = await demo.listen();
});
afterAll(() => demo.close());

const hear = (model: string) => ask(url, { client: 'openai-chat', model, stream: true });

test.each([
  ['hello!cut=40', 40, true],
  ['hello!cut=40,slow=1', 40, true],
  ['hello!reset=40', undefined, false],
])('%s', async (model, bytes, isWhole) => {
  const reply = await hear(model).catch(() => undefined); // a reset may take with it what came before
  expect(reply?.isWhole ?? false).toBe(isWhole);
  if (bytes !== undefined) expect(reply?.body).toHaveLength(bytes);
});

test('dialects add up', async () => {
  const { body } = await hear('no-done!sse/crlf');
  expect(body.toString()).toContain('\r\n\r\n');
  expect(body.toString()).not.toContain('[DONE]');
});

test.each([
  ['hello!cuut=3', 'did you mean'],
  ['hello!status=429', 'sluice replay'],
])('%s is refused', async (model, message) => {
  const { status, body } = await hear(model);
  expect(status).toBe(400);
  expect(body.toString()).toContain(message);
});
