import { expect, test } from 'vitest';
import { alternate, pluck } from '../../bench/method/slices.js';

test('subjects take turns, in reverse order every second time', async () => {
  const visits: string[] = [];
  await alternate(['a', 'b', 'c'], 3, async (subject: string, slice: number) => {
    visits.push(`${subject}${slice}`);
    return { value: 1 };
  });
  expect(visits).toEqual(['a0', 'b0', 'c0', 'c1', 'b1', 'a1', 'a2', 'b2', 'c2']);
});

test('one visit begins when the one before has ended', async () => {
  let running = 0;
  await alternate(['a', 'b'], 3, async () => {
    running++;
    await new Promise(setImmediate);
    expect(running).toBe(1);
    running--;
    return { value: 1 };
  });
});

test('samples are in the order of the subjects, with their slices', async () => {
  const samples = await alternate(['a', 'b'], 2, async (subject: string, slice: number) => ({
    process: slice,
    value: `${subject}${slice}`,
  }));
  expect(samples).toEqual([
    [
      { slice: 0, process: 0, value: 'a0' },
      { slice: 1, process: 1, value: 'a1' },
    ],
    [
      { slice: 0, process: 0, value: 'b0' },
      { slice: 1, process: 1, value: 'b1' },
    ],
  ]);
});

test('a visit that returns undefined leaves no sample', async () => {
  const samples = await alternate(['slow', 'fast'], 3, async (subject: string, slice: number) =>
    subject === 'slow' && slice > 0 ? undefined : { value: slice },
  );
  expect(samples).toEqual([[{ slice: 0, value: 0 }], [0, 1, 2].map((slice) => ({ slice, value: slice }))]);
});

test('a visit that fails ends the measurement', async () => {
  await expect(alternate(['a'], 1, () => Promise.reject(new Error('no upstream')))).rejects.toThrow('no upstream');
});

test('one of several values of a sample', () => {
  expect(pluck([{ slice: 1, process: 2, cpu: 3, rss: 4 }], 'rss')).toEqual([{ slice: 1, process: 2, value: 4 }]);
});
