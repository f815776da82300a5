/** Traces of real exchanges, sent to a scripted collector. */
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import { type Running, run } from '../../src/server/run.ts';
import { chat, send } from '../admission/client.ts';
import { answerWith } from '../admission/start.ts';
import { createFolder } from '../store/ledger-fixture.ts';

interface Received {
  path: string;
  headers: IncomingMessage['headers'];
  body: string;
}

interface SentSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: { key: string; value: Record<string, unknown> }[];
  status: { code?: number };
}

/** A server that keeps what it receives. */
async function listen(respond: (request: Received, count: number) => { status: number; body: string }) {
  const received: Received[] = [];
  const server = createServer((incoming, response) => {
    let body = '';
    incoming.on('data', (data) => {
      body += data;
    });
    incoming.on('end', () => {
      const request = { path: incoming.url ?? '', headers: incoming.headers, body };
      received.push(request);
      const reply = respond(request, received.length);
      response.writeHead(reply.status, { 'content-type': 'application/json' }).end(reply.body);
    });
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }; // it listens on TCP
}

const ANSWER = (() => {
  const text = answerWith(100, 20).toString();
  return text.slice(text.indexOf('\r\n\r\n') + 4);
})();

let running: Running | undefined;

afterEach(async () => {
  await running?.close(0);
  running = undefined;
});

async function start(env: Record<string, string>, statuses: readonly number[] = [200]) {
  const collector = await listen(() => ({ status: 200, body: '{}' }));
  const upstream = await listen((_, count) => ({
    status: statuses[count - 1] ?? 200,
    body: statuses[count - 1] === 500 ? '{}' : ANSWER,
  }));
  const folder = createFolder();
  const config = join(folder, 'sluice.yaml');
  const provider = `{ protocol: openai-chat, base_url: "${upstream.url}/v1", api_key: some-key-0123456789 }`;
  writeFileSync(
    config,
    `log: { level: error }\ndefault_price: { input: "1", output: "1" }\nproviders: { one: ${provider}, two: ${provider} }\nmodels: { fast: [one/m, two/m] }\n`,
  );
  running = await run({
    config,
    folder,
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '20', ...env },
    listen: { port: 0 },
    data: 'memory',
  });
  const spans = (): SentSpan[] =>
    collector.received.flatMap(({ body }) =>
      (JSON.parse(body) as { resourceSpans: { scopeSpans: { spans: SentSpan[] }[] }[] }).resourceSpans.flatMap(({ scopeSpans }) =>
        scopeSpans.flatMap((scope) => scope.spans),
      ),
    );
  const ask = (headers: Record<string, string> = {}) =>
    send(running?.url ?? '', '/v1/chat/completions?key=in-the-query', { key: 'any', headers, body: chat('fast', 50) });
  return { collector, upstream, spans, ask };
}

const readAttributes = ({ attributes }: SentSpan): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';

test('a request has a server span, and each attempt a client span whose id the upstream receives', async () => {
  const { spans, ask, upstream, collector } = await start(
    { OTEL_SERVICE_NAME: 'gate', OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20secret' },
    [500, 200],
  );
  const { status } = await ask({ traceparent: `00-${TRACE}-${PARENT}-01`, tracestate: 'vendor=1' });
  expect(status).toBe(200);
  await expect.poll(() => spans().length).toBe(3);
  const [first, second] = spans().filter(({ kind }) => kind === 3);
  const server = spans().find(({ kind }) => kind === 2);
  if (!first || !second || !server) throw new Error('a span is missing');
  expect(server).toMatchObject({ traceId: TRACE, parentSpanId: PARENT, name: 'POST /v1/chat/completions', status: {} });
  expect(readAttributes(server)).toMatchObject({
    'http.response.status_code': '200',
    'gen_ai.request.model': 'fast',
    'gen_ai.operation.name': 'chat',
    'sluice.attempts': '2',
  });
  expect(first).toMatchObject({ traceId: TRACE, parentSpanId: server.spanId, name: 'chat m', status: { code: 2 } });
  expect(readAttributes(first)).toMatchObject({ 'gen_ai.provider.name': 'one', 'http.response.status_code': '500' });
  expect(second).toMatchObject({ traceId: TRACE, parentSpanId: server.spanId, status: {} });
  expect(readAttributes(second)).toMatchObject({
    'gen_ai.provider.name': 'two',
    'gen_ai.usage.input_tokens': '100',
    'gen_ai.usage.output_tokens': '20',
    'server.address': '127.0.0.1',
    'server.port': new URL(upstream.url).port,
  });
  expect(upstream.received.map(({ headers }) => [headers['traceparent'], headers['tracestate']])).toEqual(
    [first, second].map(({ spanId }) => [`00-${TRACE}-${spanId}-01`, 'vendor=1']),
  );
  for (const { startTimeUnixNano: from, endTimeUnixNano: to } of spans()) expect(BigInt(to)).toBeGreaterThanOrEqual(BigInt(from));
  expect(collector.received[0]).toMatchObject({ path: '/v1/traces', headers: { authorization: 'Bearer secret' } });
  expect(collector.received[0]?.body).toContain('{"key":"service.name","value":{"stringValue":"gate"}}');
  // Neither content nor keys.
  const sent = collector.received.map(({ body }) => body).join();
  for (const text of ['"hi"', 'some-key', 'in-the-query', 'gen_ai.input']) expect(sent).not.toContain(text);
});

test.each([
  ['the caller does not sample', {}, '00', 0],
  ['the sampler is off', { OTEL_TRACES_SAMPLER: 'always_off' }, '01', 0],
  ['the sampler ignores the caller', { OTEL_TRACES_SAMPLER: 'always_on' }, '00', 2],
])('when %s', async (_, env, flags, count) => {
  const { spans, ask, upstream } = await start(env);
  await ask({ traceparent: `00-${TRACE}-${PARENT}-${flags}` });
  await running?.close(0);
  expect(spans()).toHaveLength(count);
  expect(upstream.received[0]?.headers['traceparent']).toMatch(new RegExp(`^00-${TRACE}-.*-0${count === 0 ? 0 : 1}$`));
});

test.each(['garbage', `00-${'0'.repeat(32)}-${PARENT}-01`, `ff-${TRACE}-${PARENT}-01`, `00-${TRACE}-${PARENT}-01-more`])(
  'an invalid traceparent begins a new trace: %s',
  async (traceparent) => {
    const { spans, ask } = await start({});
    await ask({ traceparent });
    await expect.poll(() => spans().length).toBe(2);
    expect(spans()[1]?.parentSpanId).toBeUndefined();
    expect(spans()[1]?.traceId).not.toBe(TRACE);
  },
);

test('content is exported only when it is requested', async () => {
  const { spans, ask } = await start({ OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: 'true' });
  await ask();
  await expect.poll(() => spans().length).toBe(2);
  const server = spans().find(({ kind }) => kind === 2);
  expect(server && readAttributes(server)['gen_ai.input.messages']).toBe('[{"role":"user","content":"hi"}]');
});

test.each([
  [{ OTEL_SDK_DISABLED: 'true' }],
  [{ OTEL_TRACES_EXPORTER: 'none' }],
  [{ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: '' }],
])('no trace and no header with %j', async (env) => {
  const { collector, ask, upstream } = await start(env);
  expect((await ask()).status).toBe(200);
  await running?.close(0);
  expect(collector.received).toEqual([]);
  expect(upstream.received[0]?.headers['traceparent']).toBeUndefined();
});

test('a collector that is not there delays nothing, and lost spans are counted', async () => {
  const { ask } = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' });
  expect((await ask()).status).toBe(200);
  const read = async () => (await fetch(`${running?.url}/metrics`)).text();
  await expect.poll(read).toContain('sluice_trace_spans_dropped_total 2');
});
