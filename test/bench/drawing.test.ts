import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { drawBars } from '../../bench/report/bars.js';
import { drawCurves } from '../../bench/report/curves.js';
import { chooseScale, linearScale, logScale, powersOfTen, spreadLabels } from '../../bench/report/scale.js';
import { round } from '../../bench/report/svg.js';
import { THEMES } from '../../bench/report/theme.js';
import { type Element, listElements, parseXml, readText, removeForbidden } from './xml.ts';

const themes = Object.entries(THEMES);
const positive = fc.double({ min: 1e-3, max: 1e6, noNaN: true });
const summaries = fc.tuple(positive, positive, positive, fc.integer({ min: 1, max: 30 })).map(([a, b, c, count]) => {
  const [p10 = 0, median = 0, p90 = 0] = [a, b, c].sort((one, other) => one - other);
  return { p10, median, p90, count };
});
/** Any text that may be in a name, such as an address of a broken configuration. */
const words = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.constantFrom('<b>&"', "a 'b' ]]>", '\u0000\u001b[1m', '\ud800'),
);

const LINE = { title: 'Title', subtitle: 'Subtitle', description: 'Description', notes: ['Note'] };

const createBars = (label: string, values: { median: number; p10: number; p90: number; count: number }[], goal?: number) => ({
  ...LINE,
  title: label,
  description: label,
  blocks: [
    {
      title: label,
      panels: [
        {
          title: label,
          unit: label,
          bars: values.map((value, i) => ({
            subject: String(i),
            label: `${label}${i}`,
            role: 'us',
            value,
            ...(goal !== undefined && { goal }),
          })),
        },
      ],
    },
  ],
});

const createCurves = (label: string, ends: { median: number; p10: number; p90: number; count: number }[], plot = 230) => ({
  ...LINE,
  title: label,
  description: label,
  columns: 2,
  labels: 168,
  plot,
  panels: [
    {
      title: label,
      unit: 'ms',
      xTitle: label,
      xs: [
        [1, label],
        [10, '10'],
      ] as [number, string][],
      curves: ends.map((value, i) => ({
        label: `${label}${i}`,
        paint: ['roles', 'us'] as [string, string],
        points: [
          { x: 1, value },
          { x: 10, value },
        ],
      })),
    },
  ],
});

describe('pictures', () => {
  test('any text is shown as it is, without characters that XML does not allow', () => {
    fc.assert(
      fc.property(words, fc.array(summaries, { minLength: 1, maxLength: 4 }), (label, values) => {
        for (const [, theme] of themes)
          for (const picture of [drawBars(theme, createBars(label, values)), drawCurves(theme, createCurves(label, values))]) {
            const root = parseXml(picture);
            expect(listElements(root, 'title').map(readText)).toEqual([removeForbidden(label)]);
            expect(listElements(root, 'desc').map(readText)).toEqual([removeForbidden(label)]);
            expect(listElements(root, 'text').map(readText).join('\n')).toContain(`${removeForbidden(label)}0`);
          }
      }),
    );
  });

  test('are named for screen readers by their title and their description', () => {
    const root = parseXml(drawBars(THEMES.light, createBars('a', [{ median: 1, p10: 1, p90: 1, count: 1 }])));
    expect(root.attributes).toMatchObject({ role: 'img', 'aria-labelledby': 't d' });
    const ids = [...listElements(root, 'title'), ...listElements(root, 'desc')].map(({ attributes }) => attributes['id']);
    expect(ids).toEqual(['t', 'd']);
  });

  test('everything is inside of the picture', () => {
    fc.assert(
      fc.property(
        fc.array(summaries, { minLength: 1, maxLength: 7 }),
        fc.option(positive, { nil: undefined }),
        (values, goal) => {
          for (const picture of [
            drawBars(THEMES.dark, createBars('a', values, goal)),
            drawCurves(THEMES.dark, createCurves('a', values)),
          ]) {
            const root = parseXml(picture);
            const [, , width, height] = (root.attributes['viewBox'] ?? '').split(' ').map(Number);
            for (const { x, y } of listElements(root, 'text').map(readPlace)) {
              expect(x >= 0 && x <= Number(width)).toBe(true);
              expect(y >= 0 && y <= Number(height)).toBe(true);
            }
          }
        },
      ),
    );
  });

  test('a bar is as long as its median on the axis, and begins at 0', () => {
    const values = [10, 20, 40].map((median) => ({ median, p10: median, p90: median, count: 3 }));
    const bars = listElements(parseXml(drawBars(THEMES.light, createBars('a', values))), 'rect').slice(1);
    const widths = bars.map(({ attributes }) => Number(attributes['width']));
    expect(new Set(bars.map(({ attributes }) => attributes['x'])).size).toBe(1);
    expect(widths[1]).toBeCloseTo(Number(widths[0]) * 2, 0);
    expect(widths[2]).toBeCloseTo(Number(widths[0]) * 4, 0);
  });

  test('the names of curves that end at the same place do not overlap', () => {
    const ends = Array.from({ length: 7 }, () => ({ median: 5, p10: 4, p90: 6, count: 9 }));
    const root = parseXml(drawCurves(THEMES.light, createCurves('curve', ends)));
    const names = listElements(root, 'text').filter((element) => /^5\.00curve\d$/.test(readText(element)));
    const places = names.map(readPlace).map(({ y }) => y);
    expect(places).toHaveLength(7);
    expectApart(places, 14.8);
  });

  test('a figure that is not a number is an error, because a browser would show half of a path', () => {
    expect(() => round(Number.NaN)).toThrow('a coordinate is NaN');
    expect(() => drawBars(THEMES.light, createBars('a', [{ median: Number.NaN, p10: 1, p90: 1, count: 3 }]))).toThrow(
      'a coordinate is NaN',
    );
  });
});

function readPlace({ attributes: { x, y } }: Element): { x: number; y: number } {
  return { x: Number(x), y: Number(y) };
}

function expectApart(places: number[], gap: number): void {
  const sorted = places.toSorted((a, b) => a - b);
  for (const [i, place] of sorted.entries()) if (i > 0) expect(place - (sorted[i - 1] ?? 0)).toBeGreaterThanOrEqual(gap - 1e-6);
}

describe('spreadLabels', () => {
  const GAP = 15;
  const places = fc.array(fc.double({ min: 0, max: 400, noNaN: true }), { minLength: 1, maxLength: 20 });

  test('labels are a gap apart, within the range and in their order', () => {
    fc.assert(
      fc.property(places, (given) => {
        const moved: number[] = spreadLabels(given, GAP, [0, 400]);
        expectApart(moved, GAP);
        for (const [i, place] of moved.entries()) {
          expect(place).toBeGreaterThanOrEqual(-1e-6);
          expect(place).toBeLessThanOrEqual(400 + 1e-6);
          for (const [other, before] of given.entries()) if (before < (given[i] ?? 0)) expect(moved[other]).toBeLessThan(place);
        }
      }),
    );
  });

  test('labels with enough room stay where they are', () => {
    expect(spreadLabels([100, 10, 50], GAP, [0, 400])).toEqual([100, 10, 50]);
  });

  test('labels at the same place are spread evenly around it', () => {
    expect(spreadLabels([100, 100, 100], GAP, [0, 400]).toSorted((a: number, b: number) => a - b)).toEqual([85, 100, 115]);
    expect(spreadLabels([0, 0, 0], GAP, [0, 400]).toSorted((a: number, b: number) => a - b)).toEqual([0, 15, 30]);
    expect(spreadLabels([400, 400], GAP, [0, 400]).toSorted((a: number, b: number) => a - b)).toEqual([385, 400]);
  });

  test('gaps become smaller when there is no room for all', () => {
    expect(spreadLabels([5, 5, 5], GAP, [0, 20]).toSorted((a: number, b: number) => a - b)).toEqual([0, 10, 20]);
    expect(spreadLabels([], GAP, [0, 20])).toEqual([]);
  });
});

describe('axes', () => {
  test('values keep their order, within the axis', () => {
    fc.assert(
      fc.property(fc.array(positive, { minLength: 1, maxLength: 10 }), (values) => {
        const { place, ticks } = chooseScale(values, [0, 500]);
        const sorted = values.toSorted((a, b) => a - b).map(place);
        expect(sorted).toEqual(sorted.toSorted((a, b) => a - b));
        for (const at of [...sorted, ...ticks.map(place)]) expect(at >= 0 && at <= 500).toBe(true);
        expect(ticks.length).toBeGreaterThanOrEqual(2);
      }),
    );
  });

  test('are linear from 0 for values that are alike, and logarithmic for others', () => {
    expect(chooseScale([10, 100], [0, 1])).toMatchObject({ isLog: false });
    expect(chooseScale([10, 100], [0, 1]).ticks[0]).toBe(0);
    expect(chooseScale([1, 100], [0, 1])).toMatchObject({ isLog: true });
  });

  test('have a place for values of 0, also on a log scale', () => {
    expect(chooseScale([0, 1, 100], [0, 500]).place(0)).toBe(0);
    expect(chooseScale([0, 0], [0, 500]).place(0)).toBe(0);
  });

  test('mark round values', () => {
    expect(linearScale(60, [0, 1]).ticks).toEqual([0, 20, 40, 60]);
    expect(powersOfTen(1, 1000)).toEqual([1, 10, 100, 1000]);
    expect(powersOfTen(3, 60)).toEqual([5, 10, 20, 50]);
  });

  test('a log axis from 0 is an error', () =>
    expect(() => logScale([0, 1], [0, 1])).toThrow('a log axis cannot reach from 0 to 1'));
});

describe('colours', () => {
  const channel = (value: number): number => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const luminance = (colour: string): number => {
    const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => channel(Number.parseInt(colour.slice(at, at + 2), 16) / 255));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = (a: string, b: string): number => {
    const [low = 0, high = 0] = [luminance(a), luminance(b)].sort((one, other) => one - other);
    return (high + 0.05) / (low + 0.05);
  };

  test.each(themes)('%s: texts have a contrast of 4.5 to the background, bars and lines of 3', (_, theme) => {
    for (const colour of [theme.text, theme.muted, theme.goal, ...Object.values(theme.protocols)])
      expect(contrast(colour, theme.background)).toBeGreaterThanOrEqual(4.5);
    for (const colour of Object.values(theme.roles)) expect(contrast(colour, theme.background)).toBeGreaterThanOrEqual(3);
  });
});
