import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { buildReport, isChart, PAGE, README, replaceBlock } from '../../bench/report/report.js';
import { createGatewayRows, createLibraryRows, createRow, createRun, NOISE, type Row } from './runs.ts';
import { listElements, parseXml, readText } from './xml.ts';

const TEXTS = {
  [PAGE]: '# Performance\n<!-- bench: written by npm run bench:report -->\nold\n<!-- /bench -->\nafter\n',
  [README]: '# Sluice\n<!-- performance: written by npm run bench:report -->\n<!-- /performance -->\nafter\n',
};

const gateway = (rows: Row[] = createGatewayRows(), options?: Parameters<typeof createRun>[2]) =>
  createRun('gateway', rows, options);
const library = (rows: Row[] = createLibraryRows()) => createRun('library', rows);

const build = (runs: {
  gateway?: ReturnType<typeof createRun>;
  library?: ReturnType<typeof createRun>;
}): Record<string, string> => buildReport(runs, TEXTS);
const buildPage = (...rows: Row[]): string => build({ gateway: gateway(rows) })[PAGE] ?? '';

const listCharts = (files: Record<string, string>): string[] =>
  Object.keys(files)
    .filter((path) => isChart(path.split('/').at(-1)))
    .map((path) => path.replace('docs/images/performance-', '').replace('.svg', ''))
    .sort();

const NAMES = ['converting', 'first-byte', 'growth', 'memory', 'overview', 'paced', 'passing'];

/** A request whose goal is the ratio of 1.05. */
const withGoal = (most: number, more: Partial<Parameters<typeof createRow>[0]> = {}): Row =>
  createRow({
    id: 'json-1k pass',
    group: 'json',
    title: 'CPU a request of 1 KB',
    reference: 'pipe',
    medians: { pipe: 100, sluice: 105 },
    goals: [{ subject: 'sluice', of: 'pipe', most }],
    ...more,
  });

describe('the report', () => {
  test('is the same for the same runs, also over its own output', () => {
    const runs = { gateway: gateway(), library: library() };
    const before = structuredClone(runs);
    const files = build(runs);
    expect(build(runs)).toEqual(files);
    expect(buildReport(runs, { [PAGE]: files[PAGE], [README]: files[README] })).toEqual(files);
    expect(runs).toEqual(before);
  });

  test('replaces what is between the markers of both pages', () => {
    const files = build({ gateway: gateway() });
    expect(files[PAGE]).toMatch(/^# Performance\n<!-- bench: [^>]*-->\n[\s\S]*\n<!-- \/bench -->\nafter\n$/);
    expect(files[PAGE]).not.toContain('old');
    expect(files[README]).toMatch(/^# Sluice\n<!-- performance: [^>]*-->\n[\s\S]*\n<!-- \/performance -->\nafter\n$/);
  });

  test('a page without its markers is an error', () => {
    expect(() => replaceBlock(PAGE, '# Performance', 'text')).toThrow(/^docs\/performance\.md: the markers .* are missing$/);
    expect(() => buildReport({}, { ...TEXTS, [README]: '<!-- /performance -->' })).toThrow('README.md: the markers');
    const swapped = '<!-- /bench --><!-- bench: written by npm run bench:report -->';
    expect(() => replaceBlock(PAGE, swapped, 'text')).toThrow('docs/performance.md: the markers');
  });

  test('without runs, the page names the commands that measure', () => {
    const page = build({})[PAGE];
    expect(page).toContain('`npm run bench:gateway`');
    expect(page).toContain('`npm run bench`');
    expect(listCharts(build({}))).toEqual([]);
  });

  test('every group that the benchmarks measure has a table', () => {
    const files = ['costs', 'growth', 'memory', 'streams'].map((name) => `gateway/${name}.js`);
    const groups = (paths: string[]): string[] => [
      ...new Set(
        paths.flatMap((path) =>
          [...readFileSync(new URL(`../../bench/${path}`, import.meta.url), 'utf8').matchAll(/group: '(\w+)'/g)].map(
            ([, group = '']) => group,
          ),
        ),
      ),
    ];
    const rows = (paths: string[]): Row[] =>
      groups(paths).map((group) => createRow({ id: group, group, medians: { sluice: 1 } }));
    expect(rows(files).length).toBeGreaterThan(8);
    expect(() => build({ gateway: gateway(rows(files)) })).not.toThrow();
    expect(() => build({ library: library(rows(['library/rows.js', 'library/start.js'])) })).not.toThrow();
  });

  test('a row of a group without a table is an error', () => {
    expect(() => buildPage(createRow({ id: 'new', group: 'unheard', medians: { sluice: 1 } }))).toThrow(
      'row "new": no table is known for the group "unheard"',
    );
  });
});

describe('charts', () => {
  test('every chart is drawn for both schemes', () => {
    const expected = [...NAMES, 'conversion'].flatMap((name) => [`${name}-dark`, `${name}-light`]).sort();
    expect(listCharts(build({ gateway: gateway(), library: library() }))).toEqual(expected);
  });

  test('every chart is well-formed XML with a title and a description', () => {
    const files = build({ gateway: gateway(), library: library() });
    for (const name of listCharts(files)) {
      const root = parseXml(files[`docs/images/performance-${name}.svg`] ?? '');
      expect(root.name).toBe('svg');
      const [title, description] = ['title', 'desc'].map((part) => listElements(root, part).map(readText));
      expect([title?.length, description?.length]).toEqual([1, 1]);
      expect(title?.[0]).not.toBe('');
      expect(description?.[0]).toContain(`${title?.[0]}.`);
    }
  });

  test('a chart without data is dropped, and so is its picture on the page', () => {
    const files = build({ gateway: gateway(createGatewayRows().filter(({ id }) => !id.startsWith('paced'))) });
    expect(listCharts(files)).toEqual(
      NAMES.filter((name) => name !== 'paced').flatMap((name) => [`${name}-dark`, `${name}-light`]),
    );
    expect(files[PAGE]).not.toContain('performance-paced');
    expect(files[PAGE]).toContain('performance-memory-light.svg');
  });

  test.each(NAMES)('%s: is dropped when nothing of it was measured', (name) => {
    const rows = {
      passing: 'json',
      converting: 'json',
      paced: 'paced',
      memory: /^(rss|heap)/,
      'first-byte': 'first',
      growth: 'growth',
    };
    const pattern = new RegExp(name === 'overview' ? /^(first|latency|rss)/ : rows[name as keyof typeof rows]);
    const files = build({ gateway: gateway(createGatewayRows().filter(({ id }) => !pattern.test(id))) });
    expect(listCharts(files)).not.toContain(`${name}-light`);
  });

  test('growth has a curve for every program', () => {
    const picture = build({ gateway: gateway() })['docs/images/performance-growth-light.svg'] ?? '';
    const texts = listElements(parseXml(picture), 'text').map(readText);
    for (const label of ['node:http + undici', 'Sluice, bare', 'Sluice, full', '100k', '1M', 'workers'])
      expect(texts.some((text) => text.includes(label))).toBe(true);
  });

  test('a subject without a value is marked as not measured', () => {
    const rows = createGatewayRows().map((row) =>
      row.id === 'heap pass' ? { ...row, results: row.results.filter(({ subject }) => subject !== 'nginx') } : row,
    );
    expect(build({ gateway: gateway(rows) })['docs/images/performance-memory-light.svg']).toContain('not measured');
  });

  test('the page describes each chart in words', () => {
    const page = build({ gateway: gateway() })[PAGE];
    expect(page).toContain('<img alt="Memory of a stream. Passing, Resident memory in KB a stream: nginx 10.0,');
  });
});

describe('goals', () => {
  test('a goal that is missed is named as missed', () => {
    const page = buildPage(withGoal(1.04), withGoal(1.1, { id: 'json-1k anthropic>chat', title: 'another' }));
    expect(page).toContain('1 of 2 goals are reached.');
    expect(page).toContain('| CPU a request of 1 KB | Sluice, bare | 1.04x node:http pipe | 1.05 [1.05-1.05]x | **MISSED** |');
    expect(page).toContain('<summary>Reached: 1</summary>');
    expect(page).toContain('| another | Sluice, bare | 1.1x node:http pipe | 1.05 [1.05-1.05]x | reached |');
  });

  test('a goal that is a value has the unit of its row', () => {
    expect(buildPage(withGoal(100, { goals: [{ subject: 'sluice', most: 100 }] }))).toContain(
      '| 100 µs | 105 [102-108] µs | **MISSED** |',
    );
  });

  test('those that are missed by most come first', () => {
    const page = buildPage(withGoal(1, { title: 'first' }), withGoal(0.5, { title: 'second' }));
    expect(page.indexOf('| second | Sluice')).toBeLessThan(page.indexOf('| first | Sluice'));
  });

  const clock = withGoal(1, { id: 'latency-200 pass p50', group: 'latency', title: 'added time', kind: 'clock' });
  const buildNoisy = (noise: { state: string; foreign: number; steal: number; spread: number }) =>
    build({ gateway: gateway([withGoal(1), clock], { noise }) })[PAGE] ?? '';

  test('on a busy machine, goals of the clock are not judged', () => {
    const page = buildNoisy(NOISE.busy);
    expect(page).toContain(
      '0 of 1 goals are reached. The machine was busy while the gateway was measured: its goals of the clock are not judged.',
    );
    expect(page).toMatch(/\| CPU a request of 1 KB \|.*\| \*\*MISSED\*\* \|/);
    expect(page).toMatch(/\| added time \|.*\| missed, not judged \|/);
  });

  test('on a machine that was too noisy, no goal is judged', () => {
    const page = buildNoisy(NOISE['too noisy']);
    expect(page).toContain('The machine was too noisy while the gateway was measured: none of its goals is judged.');
    expect(page).not.toContain('MISSED');
    expect(page).not.toContain('goals are reached');
    expect(page).toContain('<summary>Not judged: 2</summary>');
  });

  test('the noise is on the page also when the run has no goals left', () => {
    expect(build({ gateway: gateway([withGoal(1, { goals: [] })], { noise: NOISE['too noisy'] }) })[PAGE]).toContain(
      'none of its goals is judged',
    );
  });
});

describe('tables', () => {
  test('texts of a run do not end a cell or begin an element', () => {
    const page = buildPage(
      createRow({
        id: 'a',
        group: 'json',
        title: 'a | <b>',
        medians: { 'x|y': 1 },
        notes: { 'x|y': 'status 500: <html> | error' },
      }),
    );
    expect(page).toContain('| a \\| &lt;b&gt;, µs |');
    expect(page).toContain('x\\|y');
    expect(page).toContain('status 500: &lt;html&gt; \\| error');
  });

  test('every line has as many cells as the head', () => {
    const page = build({ gateway: gateway(), library: library() })[PAGE] ?? '';
    const tables = page.split('\n\n').filter((block) => block.startsWith('|'));
    expect(tables.length).toBeGreaterThan(10);
    for (const block of tables) {
      const widths = block.split('\n').map((line) => line.split(/(?<!\\)\|/).length);
      expect(new Set(widths).size).toBe(1);
    }
  });

  test('a subject that was not measured has its reason in its cell', () => {
    const row = createRow({ id: 'sse', group: 'sse', title: 'SSE', unit: 'ns', medians: { Sluice: 10 }, notes: { ai: '> 2 s' } });
    expect(build({ library: library([row]) })[PAGE]).toMatch(/\| SSE, ns \| .*10\.0.* \| &gt; 2 s \|/);
  });

  test('lost and wrong responses are counted by subject, and named in the summary', () => {
    const page = buildPage(withGoal(2, { wrong: { pipe: 1200 } }));
    expect(page).toContain('| node:http pipe: 1,200 |');
    expect(page).toContain('Sluice lost or changed no response. Other programs with lost or changed responses: node:http pipe.');
    expect(buildPage(withGoal(2, { wrong: { sluice: 3 } }))).toContain(
      'Sluice lost or changed responses in 1 row of the tables.',
    );
    expect(buildPage(...['a', 'b'].map((id) => withGoal(2, { id, wrong: { sluice: 3, pipe: 1 } })))).toContain(
      'Sluice lost or changed responses in 2 rows of the tables. Other programs with lost or changed responses: node:http pipe.',
    );
  });

  test('wrong responses of rows about growth are those of their program', () => {
    const create = (id: string) => createRow({ id, group: 'growth', medians: { '1 keys': 1 }, wrong: { '1 keys': 2 } });
    expect(buildPage(create('growth-keys'))).toContain('Sluice lost or changed responses in 1 row of the tables.');
    expect(buildPage(create('growth-streams undici'))).toContain(
      'Sluice lost or changed no response. Other programs with lost or changed responses: node:http + undici.',
    );
  });

  test('rows about growth have a table for each kind of size', () => {
    const page = build({ gateway: gateway() })[PAGE] ?? '';
    const [, growth = ''] = page.split('### Growth');
    const heads = growth.split('\n').filter((line) => line.startsWith('|  |'));
    expect(heads.slice(0, 4)).toEqual([
      expect.stringContaining('10,000 keys'),
      expect.stringContaining('100,000 rows'),
      expect.stringContaining('5,000 streams'),
      expect.stringContaining('2 workers'),
    ]);
  });

  test('conversions are a table of directions; those with other programs are also shown beside them', () => {
    const page = build({ library: library() })[PAGE] ?? '';
    const [, streams = ''] = page.split('### Conversion of a stream');
    expect(streams.match(/^\| \w+ → \w+ \|/gm)).toHaveLength(24);
    expect(streams).toContain('llm-bridge');
    expect(page).toContain('| Chat → Anthropic | 1.10 [1.10-1.10] |');
  });

  test('a conversion with a wrong result has a note in place of a ratio', () => {
    const rows = createLibraryRows().map((row) =>
      row.id === 'stream-text-gemini-chat'
        ? createRow({
            id: row.id,
            group: 'stream',
            reference: 'parse + stringify',
            medians: { 'parse + stringify': 1 },
            notes: { Sluice: 'wrong result' },
          })
        : row,
    );
    expect(build({ library: library(rows) })[PAGE]).toContain('| Gemini → Chat | wrong result |');
  });
});

describe('texts', () => {
  test('the summary has the figures of the full gateway', () => {
    const page = build({ gateway: gateway() })[PAGE];
    expect(page).toContain('A small request takes 130 and 130 µs of CPU time, passing and converting.');
    expect(page).toContain('Passing takes 1.3x the CPU time of a plain proxy');
    expect(page).toContain('A stream takes 65.0 and 65.0 KB of memory.');
  });

  test('a sentence whose figures were not measured is dropped', () => {
    const page = build({ gateway: gateway(createGatewayRows().filter(({ id }) => id !== 'rss pass')) })[PAGE];
    expect(page).not.toContain('of memory.');
    expect(page).toContain('first byte of a stream, after 1,000 streams');
  });

  test('the runs are described with their machine, noise and duration', () => {
    const page = build({ gateway: gateway(undefined, { seconds: 61, noise: NOISE.busy }), library: library() })[PAGE] ?? '';
    expect(page).toContain(
      '- **Gateway**: 2026-11-18, 1 minute, commit 0123456789. Node 20.20.2, 2 cores (Test CPU), Linux 6.1.0, nginx 1.26.0. The machine was busy:',
    );
    expect(page).toContain('- **Library**: 2026-11-18, 30 minutes,');
  });

  test('what could not be measured is named with the reason', () => {
    const run = { ...gateway(), missing: { haproxy: 'not installed' } };
    expect(build({ gateway: run })[PAGE]).toContain('- HAProxy was not measured: not installed');
  });

  test('the README has the picture, two sentences and the table of SDKs', () => {
    const readme = build({ gateway: gateway(), library: library() })[README] ?? '';
    expect(readme).toContain('docs/images/performance-overview-dark.svg');
    expect(readme).toContain('A stream takes 65.0 and 65.0 KB of memory.');
    expect(readme).toContain('| parsed chunks → message, text, 10,000 chunks | 60.0 ns | 1.2x | 10x | – | 100x | &gt; 2 s |');
  });
});
