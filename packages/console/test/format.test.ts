import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { decodeBase64, formatCurl } from '../src/lib/curl.ts';
import { cutText, formatCost, formatCount, formatDuration } from '../src/lib/format.ts';
import { formatRoute, parseRoute } from '../src/lib/router.ts';
import { type Durations, findLongestGap, listPhases } from '../src/lib/waterfall.ts';

test.each([
  [null, '–'],
  [0, '0'],
  [999, '999'],
  [1000, '1k'],
  [1249, '1.2k'],
  [98_332, '98k'],
  [999_949, '1000k'],
  [999_951, '1M'],
  [35_000_000, '35M'],
] as const)('the count %s is %s', (value, text) => expect(formatCount(value)).toBe(text));

test.each([
  [null, '–'],
  [0, '0 ms'],
  [320.4, '320 ms'],
  [2310, '2.31 s'],
  [12_340, '12.3 s'],
  [250_000, '4 min 10 s'],
] as const)('the duration %s is %s', (value, text) => expect(formatDuration(value)).toBe(text));

test.each([
  [null, '–'],
  [0, '$0'],
  [1, '$0.000001'],
  [123, '$0.00012'],
  [12_345, '$0.012'],
  [100_000, '$0.10'],
  [12_345_678, '$12.35'],
] as const)('the cost %s is %s', (value, text) => expect(formatCost(value)).toBe(text));

test.each([
  { text: 'abc', max: 3, shown: 'abc', rest: 0 },
  { text: 'abcd', max: 3, shown: 'abc', rest: 1 },
  { text: 'ab😀', max: 3, shown: 'ab', rest: 2 },
])('$text cut at $max is $shown', ({ text, max, shown, rest }) => expect(cutText(text, max)).toEqual({ shown, rest }));

test.each([
  { hash: '', route: { page: '', parameters: {} } },
  { hash: '#/', route: { page: '', parameters: {} } },
  { hash: '#/exchanges', route: { page: 'exchanges', parameters: {} } },
  { hash: '#/exchanges?filter=a%3Fb%3D1&id=7', route: { page: 'exchanges', parameters: { filter: 'a?b=1', id: '7' } } },
])('the address $hash is read and written', ({ hash, route }) => {
  expect(parseRoute(hash)).toEqual(route);
  expect(parseRoute(formatRoute(route))).toEqual(route);
});

test('empty parameters are not in the address', () => {
  expect(formatRoute({ page: 'x', parameters: { filter: '', id: '1' } })).toBe('#/x?id=1');
});

describe('phases', () => {
  const none = { queue_ms: null, connect_ms: null, first_byte_ms: null, first_token_ms: null, total_ms: null };
  const list = (durations: Partial<Durations>): [string, number, number][] =>
    listPhases({ ...none, ...durations }).map(({ id, from, to }) => [id, from, to]);

  test.each<{ durations: Partial<Durations>; phases: [string, number, number][] }>([
    { durations: {}, phases: [] },
    { durations: { total_ms: 0 }, phases: [['stream', 0, 0]] },
    {
      durations: { queue_ms: 2, connect_ms: 10, first_byte_ms: 50, first_token_ms: 80, total_ms: 100 },
      phases: [
        ['queue', 0, 2],
        ['connect', 2, 10],
        ['wait', 10, 50],
        ['think', 50, 80],
        ['stream', 80, 100],
      ],
    },
    // Clocks of two sides may disagree: a phase never ends before it starts.
    {
      durations: { queue_ms: 20, connect_ms: 10, total_ms: 30 },
      phases: [
        ['queue', 0, 20],
        ['stream', 20, 30],
      ],
    },
  ])('$durations', ({ durations, phases }) => expect(list(durations)).toEqual(phases));
});

test('a captured request is a command that a shell reads as it was', () => {
  const body = JSON.stringify({ text: "it's $HOME `x` \\ \n" });
  const command = formatCurl({ method: 'POST', path: '/v1/messages', body }, 'http://127.0.0.1:4141');
  const words = execFileSync('sh', ['-c', command.replace('curl', "printf '%s\\0'")], { encoding: 'utf8' }).split('\0');
  expect(words).toEqual([
    '-N',
    'http://127.0.0.1:4141/v1/messages',
    ...['-H', 'authorization: Bearer YOUR_KEY', '-H', 'content-type: application/json', '-d', body, ''],
  ]);
});

test('bytes of a body are read as UTF-8', () => {
  expect(decodeBase64(Buffer.from('grüße 😀').toString('base64'))).toBe('grüße 😀');
});

test('the longest gap is found', () => {
  expect(findLongestGap([])).toBeUndefined();
  expect(findLongestGap([[5, 1]])).toBeUndefined();
  const reads = [1, 3, 40, 41].map((ms) => [ms, 10] as const);
  expect(findLongestGap(reads)).toEqual({ ms: 37, at: 3 });
});
