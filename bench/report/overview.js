/** The picture of the README: what users notice, of the gateway as operators run it, beside limits and a peer. */
import { drawBars } from './bars.js';
import { buildBars } from './charts.js';
import { describeBars } from './describe.js';

/** `first-1000` and `latency-200` are states in which a gateway is after minutes. The page has the others. */
const PANELS = [
  { row: (way) => `latency-200 ${way} p50`, title: 'Added to a request', unit: 'ms' },
  { row: (way) => `first-1000 ${way}`, title: 'Added to the first byte', unit: 'ms' },
  { row: (way) => `rss ${way}`, title: 'Memory of a stream', unit: 'KB' },
];

const BESIDE = ['nginx', 'undici', 'portkey'];

/** The chart, or nothing when none of its rows was measured. */
export function buildOverview(run) {
  const panels = PANELS.map(({ row, title, unit }) => ({ title, unit, bars: buildOverviewBars(run, row) }));
  const blocks = [{ panels: panels.filter(({ bars }) => bars.length > 0) }];
  if (blocks[0].panels.length === 0) return [];
  const chart = {
    title: 'What a gateway adds',
    subtitle: 'Sluice with its ledger on disk, and a client key with a budget and limits. Less is better.',
    notes: [
      'Medians, whiskers p10 to p90. Requests: p50 at 200 a second. First byte: after 1,000 streams. Memory: at 2,000 streams.',
    ],
    blocks,
  };
  const description = describeBars(chart);
  return [
    { name: 'overview', title: chart.title, alt: description, draw: (theme) => drawBars(theme, { ...chart, description }) },
  ];
}

const buildOverviewBars = (run, row) => [
  ...buildBars(run, row('pass'), BESIDE).map(plain),
  ...buildBars(run, row('pass'), ['sluice-full']).map((bar) => ({ ...plain(bar), label: 'Sluice' })),
  ...buildBars(run, row('anthropic>chat'), ['sluice-full']).map((bar) => ({
    ...plain(bar),
    subject: 'converting',
    label: 'Sluice, converting',
  })),
];

/** Without goals and ratios: they need the page. */
const plain = ({ goal: _goal, ratio: _ratio, ...bar }) => bar;
