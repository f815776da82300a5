import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { computeNoise, describeNoise, judgeNoise, NoiseMeter } from '../../bench/method/machine.js';
import { judgeRow } from '../../bench/method/program.js';
import { createRow, NOISE } from './runs.ts';

const START = { busy: 1000, steal: 100, all: 10_000, own: 500 };
/** 1,000,000 microseconds of all cores later. */
const later = ({ busy = 0, steal = 0, own = 0 }) => ({
  busy: START.busy + busy,
  steal: START.steal + steal,
  all: START.all + 1_000_000,
  own: START.own + own,
});

describe('the noise of a machine', () => {
  test('the CPU time of the benchmark itself is no noise', () => {
    expect(computeNoise(START, later({ busy: 900_000, own: 890_000 }), [10, 10, 10])).toEqual({
      state: 'quiet',
      foreign: 0.01,
      steal: 0,
      spread: 1,
      speed: { median: 10, p10: 10, p90: 10, count: 3 },
    });
  });

  test('other processes make it busy, and too noisy', () => {
    const state = (busy: number) => computeNoise(START, later({ busy }), []).state;
    expect([0, 40_000, 41_000, 500_000, 600_000, 601_000].map(state)).toEqual([
      'quiet',
      'quiet',
      'busy',
      'busy',
      'busy',
      'too noisy',
    ]);
  });

  test('time that the host took makes it busy, and too noisy', () => {
    const state = (steal: number) => computeNoise(START, later({ steal }), []).state;
    expect([0, 10_000, 11_000, 100_000, 101_000].map(state)).toEqual(['quiet', 'quiet', 'busy', 'busy', 'too noisy']);
  });

  test('work that takes longer from time to time makes it busy, and too noisy', () => {
    const state = (slow: number) => computeNoise(START, later({}), Array(10).fill(100).concat(Array(10).fill(slow))).state;
    expect([100, 119, 121, 159, 161].map(state)).toEqual(['quiet', 'quiet', 'busy', 'busy', 'too noisy']);
  });

  test('one slow moment of many does not', () => {
    expect(computeNoise(START, later({}), [...Array(20).fill(100), 1000]).state).toBe('quiet');
  });

  test('counters that do not move are a quiet machine', () => {
    expect(computeNoise(START, START, [])).toEqual({ state: 'quiet', foreign: 0, steal: 0, spread: 1, speed: undefined });
  });

  test('more noise is never judged as less', () => {
    const order = ['quiet', 'busy', 'too noisy'];
    const noise = fc.record({
      foreign: fc.double({ min: 0, max: 1, noNaN: true }),
      steal: fc.double({ min: 0, max: 1, noNaN: true }),
      spread: fc.double({ min: 1, max: 3, noNaN: true }),
    });
    fc.assert(
      fc.property(noise, noise, (a, b) => {
        const most = {
          foreign: Math.max(a.foreign, b.foreign),
          steal: Math.max(a.steal, b.steal),
          spread: Math.max(a.spread, b.spread),
        };
        expect(order.indexOf(judgeNoise(most))).toBeGreaterThanOrEqual(order.indexOf(judgeNoise(a)));
      }),
    );
  });

  test('is described in one line', () => {
    expect(describeNoise(NOISE.busy)).toBe(
      'The machine was busy: other processes had 30.0 % of its cores, the host took 2.0 %, and the same work took up to 30.0 % longer.',
    );
  });

  test.runIf(process.platform === 'linux')('the meter reads this machine', () => {
    const meter = new NoiseMeter();
    meter.addSpeed(100);
    meter.addSpeed(110);
    const { state, foreign, steal, speed } = meter.read();
    expect(Object.keys(NOISE)).toContain(state);
    expect([foreign >= 0, steal >= 0]).toEqual([true, true]);
    expect(speed).toMatchObject({ median: 105, count: 2 });
  });
});

describe('goals of a run', () => {
  const create = (kind: 'cpu' | 'clock' | 'memory') =>
    createRow({
      id: 'a',
      group: 'json',
      kind,
      reference: 'pipe',
      medians: { pipe: 1, sluice: 2 },
      goals: [{ subject: 'sluice', of: 'pipe', most: 3 }],
    });
  const count = (kind: 'cpu' | 'clock' | 'memory', noise: { state: string }) => judgeRow(create(kind), noise).goals.length;

  test('all are judged on a quiet machine', () => {
    expect([count('cpu', NOISE.quiet), count('memory', NOISE.quiet), count('clock', NOISE.quiet)]).toEqual([1, 1, 1]);
  });

  test('those of the clock are not judged on a busy machine', () => {
    expect([count('cpu', NOISE.busy), count('memory', NOISE.busy), count('clock', NOISE.busy)]).toEqual([1, 1, 0]);
  });

  test('none is judged on a machine that is too noisy', () => {
    const noisy = NOISE['too noisy'];
    expect([count('cpu', noisy), count('memory', noisy), count('clock', noisy)]).toEqual([0, 0, 0]);
  });
});
