import { describe, expect, test } from 'vitest';
import { Calendar } from '../../src/admission/windows.ts';
import type { Budget } from '../../src/keys/caller.ts';

const at = (text: string): number => Date.parse(text);

/** zone, period, a moment, and the window it is in. */
const ROWS: readonly [zone: string, period: Budget['period'], at: string, start: string, end: string][] = [
  ['UTC', 'day', '2026-11-17T05:00:00Z', '2026-11-17T00:00:00Z', '2026-11-18T00:00:00Z'],
  ['UTC', 'day', '2026-11-17T00:00:00Z', '2026-11-17T00:00:00Z', '2026-11-18T00:00:00Z'],
  ['UTC', 'day', '2026-11-16T23:59:59.999Z', '2026-11-16T00:00:00Z', '2026-11-17T00:00:00Z'],
  ['UTC', 'day', '2024-02-29T12:00:00Z', '2024-02-29T00:00:00Z', '2024-03-01T00:00:00Z'],
  // Weeks begin on Monday: the 16th of November 2026 is one.
  ['UTC', 'week', '2026-11-16T00:00:00Z', '2026-11-16T00:00:00Z', '2026-11-23T00:00:00Z'],
  ['UTC', 'week', '2026-11-15T23:59:59Z', '2026-11-09T00:00:00Z', '2026-11-16T00:00:00Z'],
  ['UTC', 'week', '2027-01-01T00:00:00Z', '2026-12-28T00:00:00Z', '2027-01-04T00:00:00Z'],
  ['UTC', 'month', '2026-12-31T23:59:59Z', '2026-12-01T00:00:00Z', '2027-01-01T00:00:00Z'],
  // Summer time: a day of 23 hours and one of 25.
  ['Europe/Berlin', 'day', '2026-03-29T10:00:00Z', '2026-03-28T23:00:00Z', '2026-03-29T22:00:00Z'],
  ['Europe/Berlin', 'day', '2026-10-25T10:00:00Z', '2026-10-24T22:00:00Z', '2026-10-25T23:00:00Z'],
  ['Europe/Berlin', 'day', '2026-10-25T00:30:00Z', '2026-10-24T22:00:00Z', '2026-10-25T23:00:00Z'],
  ['Europe/Berlin', 'week', '2026-03-29T21:59:59Z', '2026-03-22T23:00:00Z', '2026-03-29T22:00:00Z'],
  ['Europe/Berlin', 'month', '2026-03-31T22:30:00Z', '2026-03-31T22:00:00Z', '2026-04-30T22:00:00Z'],
  ['America/New_York', 'day', '2026-11-01T05:30:00Z', '2026-11-01T04:00:00Z', '2026-11-02T05:00:00Z'],
  ['America/New_York', 'month', '2026-11-17T00:00:00Z', '2026-11-01T04:00:00Z', '2026-12-01T05:00:00Z'],
  // Clocks that change at midnight: a day that begins at 01:00, and one with two midnights.
  ['America/Santiago', 'day', '2026-09-06T12:00:00Z', '2026-09-06T04:00:00Z', '2026-09-07T03:00:00Z'],
  ['America/Havana', 'day', '2026-11-01T12:00:00Z', '2026-11-01T04:00:00Z', '2026-11-02T05:00:00Z'],
  ['America/Santiago', 'day', '2026-04-04T12:00:00Z', '2026-04-04T03:00:00Z', '2026-04-05T04:00:00Z'],
  // Offsets that are not whole hours, and the other side of the date line.
  ['Asia/Kolkata', 'day', '2026-11-17T18:29:59Z', '2026-11-16T18:30:00Z', '2026-11-17T18:30:00Z'],
  ['Asia/Kathmandu', 'month', '2026-11-17T00:00:00Z', '2026-10-31T18:15:00Z', '2026-11-30T18:15:00Z'],
  ['Australia/Lord_Howe', 'day', '2026-10-04T12:00:00Z', '2026-10-03T13:30:00Z', '2026-10-04T13:00:00Z'],
  ['Pacific/Kiritimati', 'day', '2026-11-17T10:00:00Z', '2026-11-17T10:00:00Z', '2026-11-18T10:00:00Z'],
  // Samoa had no 30th of December 2011.
  ['Pacific/Apia', 'day', '2011-12-30T09:59:59Z', '2011-12-29T10:00:00Z', '2011-12-30T10:00:00Z'],
];

test.each(ROWS)('%s: the %s of %s', (zone, period, moment, start, end) => {
  const { start: from, end: to } = new Calendar(zone).find(period, at(moment));
  expect([new Date(from).toISOString(), new Date(to).toISOString()]).toEqual([
    new Date(start).toISOString(),
    new Date(end).toISOString(),
  ]);
});

test('total has no end', () => {
  expect(new Calendar('UTC').find('total', at('2026-11-17T05:00:00Z'))).toEqual({ start: 0, end: Number.POSITIVE_INFINITY });
});

describe.each(['UTC', 'Europe/Berlin', 'America/Santiago', 'America/Havana', 'Asia/Kolkata', 'Australia/Lord_Howe'])(
  '%s',
  (zone) => {
    test.each(['day', 'week', 'month'] as const)('the windows of a %s follow each other for two years', (period) => {
      const calendar = new Calendar(zone);
      const until = at('2027-06-01T00:00:00Z');
      let window = calendar.find(period, at('2025-06-01T00:00:00Z'));
      while (window.end < until) {
        expect(window.end).toBeGreaterThan(window.start);
        expect(calendar.find(period, window.end - 1)).toEqual(window);
        const next = calendar.find(period, window.end);
        expect(next.start).toBe(window.end);
        window = next;
      }
    });
  },
);
