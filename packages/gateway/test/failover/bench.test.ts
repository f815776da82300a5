import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { type Started, startGateway } from '../gateway/start.ts';
import { TestClock } from '../gateway/test-clock.ts';
import { ask, type Grade, type Observed, runScenario, SCENARIOS } from './scenarios.ts';
import { ANSWER, Wall } from './wall.ts';

// docs/reliability.md, Failover Bench: all sixteen faults by a clock that does not wait. `npm run bench:failover` runs them in real time.

const EXAMPLE = parse(readFileSync(new URL('../../../../examples/failover-bench.yaml', import.meta.url), 'utf8'), {
  merge: true,
});

/** The same routes, and nothing else that the example sets. */
const DEFAULTS = {
  models: EXAMPLE.models,
  providers: Object.fromEntries(
    Object.entries<Record<string, string>>(EXAMPLE.providers).map(([name, { protocol, base_url, api_key }]) => [
      name,
      { protocol, base_url, api_key },
    ]),
  ),
};

let clock: TestClock;
let wall: Wall;

beforeEach(async () => {
  clock = new TestClock();
  wall = await Wall.start(clock);
});

afterEach(() => wall.stop());

async function start({ listen: _, ...config }: Record<string, unknown>): Promise<Started> {
  return startGateway({ config, clock, env: { WALL_PORT: String(wall.port) }, hasBreakers: true });
}

async function run(config: Record<string, unknown>, id: string): Promise<{ grade: Grade; reason: string }> {
  const scenario = SCENARIOS.find((one) => one.id === id);
  if (!scenario) throw new Error(`no scenario ${id}`);
  const gateway = await start(config);
  const result = await clock.until(runScenario(scenario, { url: gateway.url, wall, clock }));
  await gateway.close();
  return result;
}

async function observe(config: Record<string, unknown>, model: string): Promise<Observed> {
  const gateway = await start(config);
  const seen = await clock.until(ask({ model }, { url: gateway.url, wall, clock }));
  await gateway.close();
  return seen;
}

const IDS = SCENARIOS.map(({ id, title }) => [id, title] as const);

describe('with examples/failover-bench.yaml', () => {
  test.each(IDS)('%s passes: %s', async (id) => {
    // The answer names the requested model, unless `model_in_answer` says otherwise.
    const right = id === 'S16' && EXAMPLE.model_in_answer !== 'answered' ? 'fail' : 'pass';
    expect(await run(EXAMPLE, id)).toMatchObject({ grade: right });
  });
});

test('the healthy model of the bench is routed', async () => {
  expect(await observe(EXAMPLE, 'fb-ok')).toMatchObject({ isFinished: true, error: undefined, text: ANSWER });
});

describe('with the defaults', () => {
  test.each(IDS)('%s does no harm: %s', async (id) => {
    // The answer names the requested model, which is our choice.
    const right = id === 'S16' ? ['fail', 'pass'] : ['pass', 'partial', 'safe'];
    expect(right).toContain((await run(DEFAULTS, id)).grade);
  });
});

describe('with limits.retries: 1', () => {
  const recovery = { retry_same_target: '3s', on_break: 'continue', hedge_after: '1s' };
  const config = { ...EXAMPLE, recovery, limits: { retries: 1 } };
  test.each(SCENARIOS)('no more than two upstream requests: $title', async ({ model }) => {
    const { requests, totalMs, text } = await observe(config, model);
    expect(requests.length).toBeLessThanOrEqual(2);
    expect(totalMs).toBeDefined();
    expect(ANSWER.startsWith(text)).toBe(true);
  });
});

test('on_malformed: skip drops an event that is not JSON', async () => {
  const [wallProvider, spare] = [EXAMPLE.providers.wall, EXAMPLE.providers.spare];
  const config = { ...DEFAULTS, providers: { wall: { ...wallProvider, on_malformed: 'skip' }, spare } };
  const seen = await observe(config, 'fb-s10-malformed-chunk');
  const words = ANSWER.split(' ');
  expect(seen).toMatchObject({ isFinished: true, error: undefined, text: words.toSpliced(9, 1).join(' ') });
});
