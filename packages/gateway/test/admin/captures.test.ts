import { afterAll, beforeAll, expect, test } from 'vitest';
import { ADMIN_KEY, startAdmin, type TestGateway, withKey } from './start.ts';

// Captured bodies over the admin API. access.test.ts decides who may read them.

const admin = withKey(ADMIN_KEY);
const BODY = JSON.stringify({ model: 'demo/hello', messages: [{ role: 'user', content: 'Capture this: käse' }] });
let gateway: TestGateway;
let received: Buffer;

beforeAll(async () => {
  gateway = await startAdmin({ config: { admin: { key: ADMIN_KEY } } });
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers, body: BODY });
  received = Buffer.from(await response.arrayBuffer());
  await gateway.captures.settled();
});

afterAll(() => gateway.stop());

const decode = (text: string): string => Buffer.from(text, 'base64').toString('utf8');

test('a captured exchange has the bytes of both sides', async () => {
  const { json } = await gateway.call('captures', { headers: admin });
  expect(json.captures).toMatchObject([{ endpoint: 'CHAT', model: 'demo/hello', status: 200, attempts: 1, place: 'memory' }]);
  const tape = await gateway.call(`exchanges/${json.captures[0].id}/tape`, { headers: admin });
  expect(decode(tape.json.request.body)).toBe(BODY);
  expect(decode(tape.json.response.body)).toBe(received.toString('utf8'));
  expect(tape.json.attempts).toHaveLength(1);
});

test('its id is that of the exchange in the ledger', async () => {
  const { json } = await gateway.call('exchanges', { headers: admin });
  expect((await gateway.call(`exchanges/${json.exchanges[0].id}/tape`, { headers: admin })).status).toBe(200);
});

test('an exchange that was not captured is 404, and the message names the page about captures', async () => {
  const { status, json } = await gateway.call('exchanges/none/tape', { headers: admin });
  expect([status, json.detail]).toEqual([404, expect.stringContaining('docs/capture.md')]);
});
