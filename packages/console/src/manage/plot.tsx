/** A plot of lines over time. The table of the page has the same figures, so the plot is hidden from screen readers. */

import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { theme } from '../lib/preferences.ts';
import type { Series } from './usage-data.ts';

/** What a plot shows; times are seconds since 1970. */
export interface PlotProps {
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
}

const HEIGHT = 260;

/** Colours of the theme, in an order that tells neighbours apart. */
const COLOURS = ['--accent', '--p-A', '--ok', '--p-G', '--warning', '--error'];

/** Lines over time. */
export default function Plot({ times, series, format }: PlotProps): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  // A canvas does not follow the theme, so it is drawn again.
  const shown = theme.value;
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    let plot = draw(element, { times, series, format });
    const fit = new ResizeObserver(() => plot.setSize({ width: Math.max(200, element.clientWidth), height: HEIGHT }));
    fit.observe(element);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    const redraw = (): void => {
      plot.destroy();
      plot = draw(element, { times, series, format });
    };
    scheme.addEventListener('change', redraw);
    return () => {
      scheme.removeEventListener('change', redraw);
      fit.disconnect();
      plot.destroy();
    };
  }, [times, series, shown]);
  return <div ref={place} class="plot" aria-hidden="true" />;
}

function draw(element: HTMLElement, { times, series, format }: PlotProps): uPlot {
  const read = createColourReader(element);
  const axis = {
    stroke: read('--muted'),
    grid: { stroke: read('--line'), width: 1 },
    ticks: { stroke: read('--line'), width: 1 },
  };
  const show = (_: uPlot, value: number | null): string => (value === null ? '–' : format(value));
  const options: uPlot.Options = {
    width: Math.max(200, element.clientWidth),
    height: HEIGHT,
    // Hours and days of the sums are those of UTC.
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
    cursor: { y: false, drag: { x: false, y: false } },
    scales: { y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.05 : 1] } },
    axes: [axis, { ...axis, size: 70, values: (_plot, values) => values.map(format) }],
    series: [
      { label: 'UTC', value: (_, seconds) => (seconds === null ? '–' : formatBucket(seconds)) },
      ...series.map(({ label }, index) => ({
        label,
        stroke: read(COLOURS[index % COLOURS.length] ?? '--accent'),
        width: 1.5,
        // A single point is no line.
        points: { show: times.length < 60 },
        value: show,
      })),
    ],
  };
  return new uPlot(options, [[...times], ...series.map(({ values }) => [...values])], element);
}

const formatBucket = (seconds: number): string => new Date(seconds * 1000).toISOString().slice(0, 16).replace('T', ' ');

/** A canvas does not know `light-dark()`, so the browser computes the colour of an element. */
function createColourReader(element: HTMLElement): (name: string) => string {
  return (name) => {
    const probe = document.createElement('span');
    probe.style.color = `var(${name})`;
    element.append(probe);
    const { color } = getComputedStyle(probe);
    probe.remove();
    return color;
  };
}
