import type { ProtocolId } from '@sluice/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { brokenOffAt } from './check.ts';
import { cutAfter } from './dialects.ts';
import { Faultd, type Script } from './faultd.ts';
import { chunk, streamHead } from './http.ts';
import { modelOf, PAIRS, type Pair, providersAt } from './pairs.ts';
import { RawClient } from './raw-client.ts';
import { askText, eventually, type Started, startGateway } from './start.ts';
import { TestClock } from './test-clock.ts';

// What a stream reported of its usage is recorded, however the stream ends.

const clock = new TestClock();
let faultd: Faultd;

beforeAll(async () => {
  faultd = await Faultd.start(clock);
});

afterAll(() => faultd.stop());

const INPUT = 11;
const OUTPUT = 3;

/** A chunk of a stream with the usage so far in it, as servers report it before the end; Responses reports it at the end alone. */
const REPORTED = {
  // vLLM's `continuous_usage_stats`.
  'openai-chat': (payload) => ({
    ...payload,
    usage: { prompt_tokens: INPUT, completion_tokens: OUTPUT, total_tokens: INPUT + OUTPUT },
  }),
  'anthropic-messages': (payload) =>
    payload['type'] === 'message_start'
      ? { ...payload, message: { ...Object(payload['message']), usage: { input_tokens: INPUT, output_tokens: OUTPUT } } }
      : payload,
  'openai-responses': undefined,
  gemini: (payload) => ({
    ...payload,
    usageMetadata: { promptTokenCount: INPUT, candidatesTokenCount: OUTPUT, totalTokenCount: INPUT + OUTPUT },
  }),
} as const satisfies Record<ProtocolId, ((payload: Record<string, unknown>) => object) | undefined>;

/** The beginning of a stream, up to its second word. */
function reporting(upstream: ProtocolId): string {
  const report = REPORTED[upstream];
  const frames = cutAfter(upstream, 'two').before.join('');
  return report ? frames.replace(/^data: (\{.*\})/gm, (_, data) => `data: ${JSON.stringify(report(JSON.parse(data)))}`) : frames;
}

const begun = ({ upstream }: Pair): Script => [{ send: streamHead() }, { send: chunk(reporting(upstream)) }];

interface Ended {
  gateway: Started;
  client: RawClient;
}

/** How a stream ends early, once the client has read of it. */
const ENDS: readonly (readonly [what: string, ending: string, script: Script, end: (ended: Ended) => unknown])[] = [
  ['the client leaves', 'client_aborted', [{ hang: true }], ({ client }) => client.reset()],
  ['the upstream resets the connection', 'upstream_error', [{ wait: 20 }, { reset: true }], () => undefined],
  ['the upstream ends the stream early', 'upstream_error', [{ wait: 20 }, { fin: true }], () => undefined],
  ['the upstream falls silent', 'timeout', [{ hang: true }], () => undefined],
  ['the gateway stops', 'stopped', [{ hang: true }], ({ gateway }) => gateway.close(20)],
];

const tokensIn = (metrics: string, direction: string): number =>
  metrics
    .split('\n')
    .filter((line) => line.startsWith('sluice_tokens_total{') && line.includes(`"${direction}"`))
    .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);

describe.each(ENDS)('when %s', (what, ending, script, end) => {
  test.each(PAIRS)('reported usage is in the log and the metrics: $name', async (pair) => {
    const limits = what === 'the upstream falls silent' ? { idle_timeout: '200ms' } : {};
    const gateway = await startGateway({ clock, config: { providers: providersAt(faultd), limits } });
    faultd.play([...begun(pair), ...script]);
    const client = await RawClient.open(gateway.url);
    client.send(askText({ client: pair.client, model: modelOf(pair), stream: true }));
    await client.sees('two');
    const ended = end({ gateway, client });
    await clock.advance(brokenOffAt(pair.client, 200));
    await eventually(() => gateway.services.streams.count === 0);
    const isReported = REPORTED[pair.upstream] !== undefined;
    const line = gateway.log().findLast(({ msg }) => msg === 'answered');
    expect(line).toMatchObject({ ending, ...(isReported && { input_tokens: INPUT, output_tokens: OUTPUT }) });
    if (!isReported) expect(line).not.toHaveProperty('input_tokens', INPUT);
    const metrics = await gateway.services.metrics.text();
    expect(tokensIn(metrics, 'input')).toBe(isReported ? INPUT : 0);
    expect(tokensIn(metrics, 'output')).toBe(isReported ? OUTPUT : 0);
    client.leave();
    await clock.until(Promise.resolve(ended));
    await gateway.close();
  });
});

test.each(PAIRS.filter(({ upstream }) => upstream === 'anthropic-messages'))(
  'usage reported before any content is recorded: $name',
  async (pair) => {
    const gateway = await startGateway({ config: { providers: providersAt(faultd) } });
    const [start = ''] = reporting(pair.upstream).split('\n\n');
    faultd.play([{ send: streamHead() }, { send: chunk(`${start}\n\n`) }, { hang: true }]);
    const client = await RawClient.open(gateway.url);
    client.send(askText({ client: pair.client, model: modelOf(pair), stream: true }));
    await eventually(() => (faultd.served[0]?.sent ?? 0) > streamHead().length);
    client.reset();
    await eventually(() => gateway.services.streams.count === 0);
    expect(gateway.log().findLast(({ msg }) => msg === 'answered')).toMatchObject({ input_tokens: INPUT });
    await gateway.close();
  },
);
