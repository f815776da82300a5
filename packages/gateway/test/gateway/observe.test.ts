import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Metrics } from '../../src/observe/metrics.ts';
import { expectAnswered } from './check.ts';
import { USAGE } from './dialects.ts';
import { Faultd } from './faultd.ts';
import { whole } from './http.ts';
import { modelOf, PAIRS, type Pair, providersAt } from './pairs.ts';
import { good } from './scripts.ts';
import { ask, type Started, startGateway } from './start.ts';

let faultd: Faultd;
let gateway: Started;

beforeAll(async () => {
  faultd = await Faultd.start();
});

afterAll(() => faultd.stop());

// One for each test: they count.
beforeEach(async () => {
  gateway = await startGateway({ config: { providers: providersAt(faultd), limits: { retries_per_provider: 0 } } });
});

afterEach(() => gateway.close());

const pair = PAIRS[4] as Pair;
const metrics = async (): Promise<string> => (await fetch(`${gateway.url}/metrics`)).text();

describe('/metrics', () => {
  test('has the documented names and labels', async () => {
    faultd.play(good(pair, true));
    expectAnswered(pair, true, await ask(gateway.url, { client: pair.client, model: modelOf(pair), stream: true }));
    faultd.play([{ send: whole(500, '{}') }]);
    await ask(gateway.url, { client: pair.client, model: modelOf(pair), stream: true });
    const text = await metrics();
    const labels = 'provider="mend-openai-chat",model="m",client_protocol="anthropic-messages",upstream_protocol="openai-chat"';
    for (const line of [
      `sluice_requests_total{${labels},status="200"} 1`,
      `sluice_requests_total{${labels},status="500"} 1`,
      `sluice_tokens_total{${labels},type="input"} ${USAGE.input_tokens}`,
      `sluice_tokens_total{${labels},type="output"} ${USAGE.output_tokens}`,
      `sluice_request_duration_seconds_count{${labels}} 2`,
      `sluice_time_to_first_token_seconds_count{${labels}} 1`,
      `sluice_inter_token_latency_seconds_count{${labels}} 1`,
      `sluice_overhead_seconds_count{${labels}} 2`,
      'sluice_upstream_up{provider="mend-openai-chat"} 1',
      'sluice_upstream_errors_total{provider="mend-openai-chat",code="UPSTREAM_ERROR"} 1',
      'sluice_active_requests 0',
      'sluice_shed_requests_total 0',
    ])
      expect(text).toContain(line);
    expect(text).toContain('# TYPE sluice_conversion_warnings_total counter');
  });

  test('counts conversion notes', async () => {
    faultd.play(good(pair, true));
    await ask(gateway.url, { client: pair.client, model: modelOf(pair), stream: true, body: { top_k: 5 } });
    expect(await metrics()).toMatch(/sluice_conversion_warnings_total\{[^}]*code="DROPPED"\} 1/);
  });

  test('ignores token counts that are not numbers', async () => {
    const own = new Metrics();
    own.of({ provider: 'p', model: 'm', client_protocol: 'c', upstream_protocol: 'u' }).tokens('input', Number.NaN);
    expect(await own.text()).not.toMatch(/NaN/);
  });
});

/** Characters that end a line, reorder text or control a terminal, and that JSON does not escape. */
const DECEPTIVE = '\u007f\u0080\u0085\u009b\u009f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069';

describe('the log', () => {
  test('has one line per request, with any client input', async () => {
    const name = `a\n{"level":"fatal"}\u001b[31m${DECEPTIVE}`;
    const reply = await ask(gateway.url, { client: 'openai-chat', model: name, stream: true });
    expect(reply.status).toBe(404);
    const line = await gateway.ended(reply.headers['x-sluice-request-id']);
    expect(line).toMatchObject({
      method: 'POST',
      path: '/v1/chat/completions',
      status: 404,
      ending: 'refused',
      error: 'NOT_FOUND',
    });
    expect(gateway.lines.every((text) => text.trimEnd().split('\n').length === 1)).toBe(true);
    const text = gateway.lines.join('');
    expect(text).not.toContain('\u001b');
    for (const char of DECEPTIVE) expect(text).not.toContain(char);
    expect(String(line['reason'])).toContain(DECEPTIVE);
  });

  test('has the outcome of every attempt', async () => {
    faultd.play([{ send: whole(503, '{"error":{"message":"busy"}}') }]);
    const reply = await ask(gateway.url, { client: 'openai-chat', model: 'mend-openai-chat/m', stream: false });
    const own = gateway.log().filter((line) => line['request_id'] === reply.headers['x-sluice-request-id']);
    expect(own).toMatchObject([
      { msg: 'attempt failed', attempt: 1, provider: 'mend-openai-chat', model: 'm', error: 'OVERLOADED', reason: 'busy' },
      { msg: 'answered', ending: 'upstream_error', tried: ['mend-openai-chat/m OVERLOADED'] },
    ]);
  });
});
