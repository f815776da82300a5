/** Small runs with invented figures, as the benchmarks keep them. */
import { buildRow } from '../../bench/method/results.js';

export interface RowOptions {
  id: string;
  group: string;
  title?: string;
  unit?: string;
  kind?: 'cpu' | 'clock' | 'memory' | 'count';
  reference?: string;
  /** Subjects with their medians. */
  medians: Record<string, number>;
  goals?: { subject: string; of?: string; most: number }[];
  wrong?: Record<string, number>;
  notes?: Record<string, string>;
}

/** Nine samples of three processes, up to 4 % beside the median. */
const buildSamples = (median: number): { slice: number; process: number; value: number }[] =>
  [-4, -3, -2, -1, 0, 1, 2, 3, 4].map((percent, slice) => ({ slice, process: slice % 3, value: median * (1 + percent / 100) }));

export function createRow({ medians, wrong = {}, notes = {}, ...row }: RowOptions) {
  const found = Object.entries(medians).map(([subject, median]) => ({
    subject,
    samples: buildSamples(median),
    wrong: wrong[subject] ?? 0,
    ...(notes[subject] !== undefined && { note: notes[subject] }),
  }));
  const failed = Object.entries(notes).flatMap(([subject, note]) => (subject in medians ? [] : [{ subject, samples: [], note }]));
  return buildRow({ title: row.id, unit: 'us', kind: 'cpu', ...row, found: [...found, ...failed] });
}

export type Row = ReturnType<typeof createRow>;

export const NOISE = {
  quiet: { state: 'quiet', foreign: 0.01, steal: 0, spread: 1.05 },
  busy: { state: 'busy', foreign: 0.3, steal: 0.02, spread: 1.3 },
  'too noisy': { state: 'too noisy', foreign: 0.8, steal: 0.2, spread: 2 },
};

export function createRun(kind: 'gateway' | 'library', rows: Row[], { noise = NOISE.quiet, seconds = 1800 } = {}) {
  return {
    kind,
    commit: '0123456789',
    begun: '2026-11-18T12:00:00.000Z',
    seconds,
    machine: { node: '20.20.2', cpu: 'Test CPU', cores: 2, kernel: '6.1.0', versions: { nginx: '1.26.0' } },
    noise,
    missing: {},
    rows,
  };
}

const SUBJECTS = { nginx: 20, undici: 100, pipe: 110, hand: 120, portkey: 900, sluice: 105, 'sluice-full': 130 };
const WAYS = ['pass', 'anthropic>chat'];
const scale = (by: number): Record<string, number> =>
  Object.fromEntries(Object.entries(SUBJECTS).map(([subject, median]) => [subject, median * by]));

const ofBothWays = (id: (way: string) => string, row: Omit<RowOptions, 'id'>): Row[] =>
  WAYS.map((way) => createRow({ id: id(way), reference: 'undici', ...row }));

const growth = (id: string, word: string, counts: string[], more: Partial<RowOptions> = {}): Row =>
  createRow({
    id,
    group: 'growth',
    reference: `${counts[0]} ${word}`,
    medians: Object.fromEntries(counts.map((count, i) => [`${count} ${word}`, 50 + i])),
    ...more,
  });

/** A row for everything that the charts, the tables and the summary show of the gateway. */
export const createGatewayRows = (): Row[] => [
  ...['0.1k', '1k', '100k', '1m'].flatMap((size, i) =>
    ofBothWays((way) => `json-${size} ${way}`, { group: 'json', medians: scale(i + 1) }),
  ),
  ...ofBothWays((way) => `response-100k ${way}`, { group: 'response', medians: scale(3) }),
  ...ofBothWays((way) => `paced ${way}`, { group: 'stream', medians: scale(0.2) }),
  ...['p50', 'p99'].flatMap((at) =>
    ofBothWays((way) => `paced ${way} ${at}`, { group: 'stream', unit: 'ms', kind: 'clock', medians: scale(0.01) }),
  ),
  ...[30, 300, 1000, 3000].flatMap((count) =>
    ofBothWays((way) => `first-${count} ${way}`, { group: 'first', unit: 'ms', kind: 'clock', medians: scale(1 / count) }),
  ),
  ...['p50', 'p99'].flatMap((at) =>
    ofBothWays((way) => `latency-200 ${way} ${at}`, { group: 'latency', unit: 'ms', kind: 'clock', medians: scale(0.005) }),
  ),
  ...ofBothWays((way) => `rss ${way}`, { group: 'memory', unit: 'KB', kind: 'memory', medians: scale(0.5) }),
  ...ofBothWays((way) => `heap ${way}`, { group: 'memory', unit: 'KB', kind: 'memory', medians: scale(0.2) }),
  growth('growth-keys', 'keys', ['1', '10,000', '100,000']),
  growth('growth-ledger', 'rows', ['1,000', '100,000', '1,000,000']),
  ...['undici', 'sluice', 'sluice-full'].map((program) =>
    growth(`growth-streams ${program}`, 'streams', ['100', '500', '2,000', '5,000']),
  ),
  createRow({
    id: 'growth-workers',
    group: 'growth',
    unit: '1/s',
    kind: 'clock',
    reference: '1 worker',
    medians: { '1 worker': 5000, '2 workers': 7000 },
  }),
];

const PROTOCOLS = ['chat', 'anthropic', 'responses', 'gemini'];
const DIRECTIONS = PROTOCOLS.flatMap((from) => PROTOCOLS.filter((to) => to !== from).map((to) => `${from}-${to}`));
const PARSE = 'parse + stringify';

export const createLibraryRows = (): Row[] => [
  createRow({
    id: 'accumulate-text',
    group: 'accumulate',
    title: 'text, 10,000 chunks',
    unit: 'ns a chunk',
    reference: 'hand-written',
    medians: { 'hand-written': 50, 'Sluice ChatAccumulator': 60, openai: 600, ai: 6000 },
    notes: { langchain: '> 2 s' },
  }),
  ...DIRECTIONS.flatMap((direction) => [
    createRow({
      id: `stream-text-${direction}`,
      group: 'stream',
      unit: 'ns a chunk',
      reference: PARSE,
      medians: {
        [PARSE]: 1000,
        'hand-written, objects': 1050,
        Sluice: 1100,
        ...(direction === 'chat-anthropic' && { 'llm-bridge': 9000 }),
      },
      goals: [{ subject: 'Sluice', of: PARSE, most: 1.2 }],
    }),
    ...['1k', '100k'].map((size) =>
      createRow({
        id: `request-${size}-${direction}`,
        group: 'request',
        reference: PARSE,
        medians: { [PARSE]: 10, Sluice: 18 },
        goals: [{ subject: 'Sluice', of: PARSE, most: 2 }],
      }),
    ),
  ]),
];
