import pico from 'picocolors';
import { describe, expect, test } from 'vitest';
import { measure } from '../../src/cli/ledger/figures.ts';
import { fillDays, formatCost, formatCsv, formatUsage, sumRows, type UsageReport } from '../../src/cli/ledger/usage-text.ts';
import { formatCsvCell } from '../../src/store/csv.ts';
import type { UsageRow } from '../../src/store/index.ts';
import { createUsage, NIGHT } from './rows.ts';

const plain = pico.createColors(false);

const report = (rows: UsageRow[], more: Partial<UsageReport> = {}): UsageReport => ({
  by: 'model',
  bucket: undefined,
  since: NIGHT,
  until: undefined,
  rows,
  total: sumRows(rows),
  ...more,
});

const ROWS = [
  createUsage({
    group: 'gpt-5',
    requests: 1200,
    errors: 3,
    input_tokens: 1_234_567,
    cache_read_tokens: 1000,
    output_tokens: 9000,
    cost_micros: 4_000_000,
  }),
  createUsage({ group: 'llama-3.3-70b-versatile', requests: 10, input_tokens: 500, output_tokens: 20, cost_micros: 1_000_000 }),
  createUsage({ group: '', requests: 2, errors: 2 }),
];

test('a pipe gets a plain table with whole names', () => {
  expect(formatUsage(report(ROWS), { colors: plain, columns: undefined })).toBe(
    [
      'MODEL                    REQUESTS  ERRORS      INPUT  CACHED  OUTPUT   COST',
      'gpt-5                       1,200       3  1,234,567   1,000   9,000  $4.00',
      'llama-3.3-70b-versatile        10       0        500       0      20  $1.00',
      '(none)                          2       2          0       0       0     $0',
      'total                       1,212       5  1,235,067   1,000   9,020  $5.00',
      '',
      'From 2026-11-17 03:00:00Z to now; hours and days in UTC.',
      '',
    ].join('\n'),
  );
});

test('a terminal gets bars', () => {
  const text = formatUsage(report(ROWS), { colors: plain, columns: 100 });
  const bars = text.split('\n').map((line) => /[█▏▎▍▌▋▊▉]+/.exec(line)?.[0].length ?? 0);
  expect(bars.slice(0, 5)).toEqual([0, 23, 6, 0, 0]);
  expect(text).toContain('Bars show cost.');
});

test.each([20, 30, 40, 60, 80, 100, 200])('no line of the table is wider than a terminal of %d columns', (columns) => {
  const rows = [
    ...ROWS,
    createUsage({ group: '模型'.repeat(60), requests: 1 }),
    createUsage({ group: 'x'.repeat(200), requests: 1 }),
  ];
  const lines = formatUsage(report(rows), { colors: plain, columns })
    .split('\n')
    .slice(0, rows.length + 2);
  for (const line of lines) expect(measure(line), line).toBeLessThanOrEqual(columns);
  expect(lines[0]).toMatch(/COST$/);
});

test('columns that do not fit are named', () => {
  const text = formatUsage(report(ROWS), { colors: plain, columns: 40 });
  expect(text).toContain('Hidden in this width: errors, cached, output.');
});

test.each([
  [{ cost_micros: 1_230_000, unpriced: 0, uncertain: 0 }, '$1.23'],
  [{ cost_micros: 1_230_000, unpriced: 4, uncertain: 0 }, '$1.23 + 4 unpriced'],
  [{ cost_micros: 0, unpriced: 4, uncertain: 0 }, '4 unpriced'],
  [{ cost_micros: 1_230_000, unpriced: 0, uncertain: 1 }, '~$1.23'],
  [{ cost_micros: 0, unpriced: 0, uncertain: 0 }, '$0'],
])('the cost of %j is %s', (sums, text) => {
  expect(formatCost(sums)).toBe(text);
});

test('what is unpriced, uncertain or counted several times is explained', () => {
  const rows = [createUsage({ group: 'a', requests: 3, unpriced: 2, uncertain: 1, input_tokens: 10 })];
  const text = formatUsage(report(rows, { by: 'tag' }), { colors: plain, columns: undefined });
  expect(text).toContain('~10');
  expect(text).toContain('~ Token counts of 1 of 3 requests are estimated or uncertain.');
  expect(text).toContain('The cost of 2 of 3 requests is unknown and not included');
  expect(text).toContain('A request counts for each of its tags');
});

test.each([
  ['day', 'day', '2026-11-17 '],
  ['model', 'hour', '2026-11-17 03:00  m '],
  ['model', 'day', '2026-11-17  m '],
] as const)('rows by %s in buckets of a %s begin with %j', (by, bucket, start) => {
  const rows = [createUsage({ group: by === 'day' ? null : 'm', ts: NIGHT - (NIGHT % 3_600_000), requests: 1 })];
  const lines = formatUsage(report(rows, { by, bucket }), { colors: plain, columns: undefined }).split('\n');
  expect(lines[1]?.startsWith(start), lines[1]).toBe(true);
});

test.each([
  ['model', 0, 'No requests were completed in this time.'],
  ['tag', 5, 'None of 5 requests has a tag.'],
] as const)('without rows by %s, the text reports none', (by, requests, text) => {
  const total = sumRows([createUsage({ requests })]);
  expect(formatUsage(report([], { by, total }), { colors: plain, columns: 80 })).toContain(text);
});

const day = (number: number, requests: number): UsageRow =>
  createUsage({ group: null, ts: Date.UTC(2026, 10, number), requests });

test.each([
  ['nothing', [], []],
  ['one day', [day(1, 5)], [day(1, 5)]],
  ['a gap', [day(1, 5), day(4, 1)], [day(1, 5), day(2, 0), day(3, 0), day(4, 1)]],
  ['a gap of centuries', [day(1, 5), day(500_000, 1)], [day(1, 5), day(500_000, 1)]],
])('days without requests are added: %s', (_, rows, filled) => {
  expect(fillDays(rows)).toEqual(filled);
});

test('names cannot control the terminal', () => {
  const rows = [createUsage({ group: 'a\u001b]0;owned\u0007\r\n\u202eb', requests: 1 })];
  for (const columns of [undefined, 40, 120]) {
    const text = formatUsage(report(rows), { colors: plain, columns });
    expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u202e]/u);
  }
});

test('50,000 rows are formatted', () => {
  const rows = Array.from({ length: 50_000 }, (_, i) => createUsage({ group: `m${i}`, requests: 1 }));
  expect(formatUsage(report(rows), { colors: plain, columns: 80 }).split('\n').length).toBeGreaterThan(50_000);
});

describe('CSV', () => {
  test('has a header and ends every line with CRLF', () => {
    const rows = [createUsage({ group: 'a,b', ts: NIGHT, requests: 2, cost_micros: 1_500_000 })];
    const lines = [...formatCsv(rows, 'model')].join('').split('\r\n');
    expect(lines[0]).toMatch(/^by,group,bucket_at,requests,errors,.*,cost_micros,assumed_micros,total_ms,cost_usd$/);
    expect(lines[1]).toMatch(/^model,"a,b",2026-11-17T03:30:00\.000Z,2,0,.*,1500000,0,0,1\.500000$/);
    expect(lines.slice(2)).toEqual(['']);
  });

  test.each([
    ['plain', 'plain'],
    ['a"b', '"a""b"'],
    ['a\nb', '"a\nb"'],
    [' a', '" a"'],
    ['=1+1', "'=1+1"],
    ['+1', "'+1"],
    ['-1', "'-1"],
    ['@SUM(A1)', "'@SUM(A1)"],
    ['\t=1', "'\t=1"],
    [' =1', "' =1"],
    ['＝1', "'＝1"],
    ['=HYPERLINK("http://x","y")', '"\'=HYPERLINK(""http://x"",""y"")"'],
    [-5, '-5'],
  ])('%j is written as %j', (cell, text) => {
    expect(formatCsvCell(cell)).toBe(text);
  });
});
