import fc from 'fast-check';
import { Counter, Histogram, Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { Counts, Distributions } from '../../src/observe/series.ts';

const FAMILY = { name: 'sluice_test', help: 'What is told.' };
const BOUNDS = [0.5, 1, 10];

const linesOf = (text: string): string[] => text.split('\n').filter((line) => line !== '');

const label = fc.string({ unit: fc.constantFrom('a', 'ü', '"', '\\', '\n', ' ', '{', '}', ',') });

/** Numbers and the series that they are added to. */
const added = fc.array(fc.tuple(label, fc.constantFrom(0, 0.5, 0.50001, 1, 9.999, 10, 11, 1e9)), { minLength: 1 });

const modelsOf = (rows: readonly [string, number][]): string[] => [...new Set(rows.map(([model]) => model))];

test('counters are written as prom-client writes them', async () => {
  await fc.assert(
    fc.asyncProperty(added, async (rows) => {
      const judge = new Registry();
      const known = new Counter({ ...FAMILY, labelNames: ['model', 'status'], registers: [judge] });
      const own = new Counts(FAMILY);
      const series = new Map(modelsOf(rows).map((model) => [model, own.series({ model, status: '200' })]));
      for (const [model, value] of rows) {
        known.inc({ model, status: '200' }, value);
        const count = series.get(model);
        if (count) count.value += value;
      }
      expect(linesOf(own.text)).toEqual(linesOf(await judge.metrics()));
    }),
  );
});

test('histograms are written as prom-client writes them', async () => {
  await fc.assert(
    fc.asyncProperty(added, async (rows) => {
      const judge = new Registry();
      const known = new Histogram({ ...FAMILY, labelNames: ['model'], buckets: BOUNDS, registers: [judge] });
      const own = new Distributions(FAMILY, BOUNDS);
      const series = new Map(modelsOf(rows).map((model) => [model, own.series({ model })]));
      for (const [model, value] of rows) {
        known.observe({ model }, value);
        series.get(model)?.add(value);
      }
      expect(linesOf(own.text)).toEqual(linesOf(await judge.metrics()));
    }),
  );
});
