/** A gateway process that is killed while requests hold reservations. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { createFolder } from '../store/ledger-fixture.ts';
import { assertBuilt } from '../store/processes.ts';
import { killProcesses, startProcess } from './process.ts';

beforeAll(assertBuilt);

afterEach(killProcesses);

/** An Anthropic upstream: reports 1,000 input tokens at the start; 500 output tokens at the end, which only `whole` has. */
async function startUpstream() {
  const usage = { input_tokens: 1000, output_tokens: 0 };
  const message = {
    id: 'm',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [],
    stop_reason: null,
    stop_sequence: null,
  };
  const server = createServer((incoming, response) => {
    let body = '';
    incoming.on('data', (data) => {
      body += data;
    });
    incoming.on('end', () => {
      const isWhole = JSON.parse(body).stream !== true;
      response.writeHead(200, { 'content-type': isWhole ? 'application/json' : 'text/event-stream' });
      if (isWhole) {
        const content = [{ type: 'text', text: 'hi' }];
        response.end(JSON.stringify({ ...message, content, stop_reason: 'end_turn', usage: { ...usage, output_tokens: 500 } }));
        return;
      }
      const events = [
        { type: 'message_start', message: { ...message, usage } },
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'One' } },
      ];
      for (const event of events) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

/** Open attempts whose usage is recorded. */
async function countReported(url: string): Promise<number> {
  const read = async (path: string) => (await fetch(`${url}/admin/v1/exchanges${path}`)).json();
  const { exchanges } = (await read('')) as { exchanges: { id: string }[] };
  const details = await Promise.all(exchanges.map(({ id }) => read(`/${id}`)));
  const attempts = (details as { attempts: Record<string, unknown>[] }[]).flatMap((detail) => detail.attempts);
  return attempts.filter(({ state, cost_micros: cost }) => state === 'open' && cost === 1000).length;
}

test('a crash between reserve and settle releases the reservation and keeps what was reported', async () => {
  const upstream = await startUpstream();
  const folder = createFolder();
  const config = join(folder, 'sluice.yaml');
  const { port } = upstream.address() as AddressInfo;
  writeFileSync(
    config,
    `log: { level: error }
default_price: { input: "1", output: "1" }
budgets: [{ tag: team=a, limit: 0.05usd/total }]
providers:
  an: { protocol: anthropic-messages, base_url: "http://127.0.0.1:${port}", api_key: some-key-0123456789 }
`,
  );
  const ask = (url: string, isStream: boolean): Promise<Response> =>
    fetch(`${url}/v1/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-sluice-tags': 'team=a' },
      body: JSON.stringify({ model: 'an/m', max_tokens: 20_000, stream: isStream, messages: [{ role: 'user', content: 'hi' }] }),
    });
  const readBudget = async (url: string): Promise<Record<string, unknown>> =>
    ((await (await fetch(`${url}/admin/v1/budgets`)).json()) as { budgets: Record<string, unknown>[] }).budgets[0] ?? {};

  const first = await startProcess(folder, config);
  expect(await readBudget(first.url)).toMatchObject({
    by: 'tag',
    id: 'team=a',
    spent_micros: 0,
    limit_micros: 50_000,
    resets_at: null,
  });
  expect((await ask(first.url, false)).status).toBe(200);
  // Two streams hold most of the budget, and a third does not fit.
  for (const response of [await ask(first.url, true), await ask(first.url, true)]) {
    expect(response.status).toBe(200);
    await response.body?.getReader().read();
  }
  const held = await readBudget(first.url);
  expect(held['spent_micros']).toBe(1500);
  expect(held['reserved_micros']).toBeGreaterThan(40_000);
  expect((await ask(first.url, true)).status).toBe(429);
  // What a stream reports before its content is written beside it, so a crash could come first.
  await expect.poll(() => countReported(first.url)).toBe(2);
  first.child.kill('SIGKILL');
  await once(first.child, 'close');

  const second = await startProcess(folder, config);
  // One whole response, and the input that both streams had reported.
  expect(await readBudget(second.url)).toMatchObject({ spent_micros: 1500 + 2 * 1000, reserved_micros: 0, left_micros: 46_500 });
  expect((await ask(second.url, false)).status).toBe(200);
  second.child.kill('SIGTERM');
  await once(second.child, 'close');
  upstream.closeAllConnections();
  upstream.close();
}, 60_000);
