/** The days, weeks and months of budgets, in the operator's time zone. */

import type { Budget } from '../keys/caller.ts';

/** A period of a budget, in milliseconds since 1970. */
export interface Window {
  readonly start: number;
  /** Exclusive; infinite for `total`. */
  readonly end: number;
}

/** Finds the period that a moment is in, by the calendar of one time zone. Weeks begin on Monday. */
export class Calendar {
  readonly #format: Intl.DateTimeFormat;
  /** The last window of each period: nearly all requests are in it, and Intl takes 20 us. */
  readonly #last = new Map<Budget['period'], Window>();

  /** `timeZone`: an IANA name. */
  constructor(timeZone: string) {
    // A fixed calendar and numerals: `en-US` is Gregorian, `h23` has no hour 24.
    this.#format = new Intl.DateTimeFormat('en-US', {
      timeZone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
  }

  /** The window of this period that contains the moment. */
  find(period: Budget['period'], at: number): Window {
    const last = this.#last.get(period);
    if (last && at >= last.start && at < last.end) return last;
    const found = period === 'total' ? ALWAYS : this.#compute(period, at);
    this.#last.set(period, found);
    return found;
  }

  #compute(period: 'day' | 'week' | 'month', at: number): Window {
    const { year, month, day } = this.#readLocal(at);
    // Local dates as UTC, so that sums of days and months need no time zone.
    switch (period) {
      case 'day':
        return this.#build(Date.UTC(year, month, day), Date.UTC(year, month, day + 1));
      case 'week': {
        const monday = day - ((new Date(Date.UTC(year, month, day)).getUTCDay() + 6) % 7);
        return this.#build(Date.UTC(year, month, monday), Date.UTC(year, month, monday + 7));
      }
      case 'month':
        return this.#build(Date.UTC(year, month, 1), Date.UTC(year, month + 1, 1));
      default:
        return period satisfies never;
    }
  }

  #build(first: number, next: number): Window {
    return { start: this.#findStart(first), end: this.#findStart(next) };
  }

  /**
   * The first moment of a local date, which is given as midnight UTC. Clocks may change at midnight: then the day begins
   * at 01:00, or has two midnights, of which the first counts. A date that a zone has skipped begins with the next one.
   */
  #findStart(date: number): number {
    const offsets = [this.#readOffset(date - DAY_MS), this.#readOffset(date + DAY_MS)];
    const candidates = offsets.map((offset) => date - offset).sort((a, b) => a - b);
    return candidates.find((at) => this.#readDate(at) >= date) ?? Math.max(...candidates);
  }

  /** The local date of a moment, as midnight UTC. */
  #readDate(at: number): number {
    const { year, month, day } = this.#readLocal(at);
    return Date.UTC(year, month, day);
  }

  /** Local time minus UTC. */
  #readOffset(at: number): number {
    const { year, month, day, hour, minute, second } = this.#readLocal(at);
    return Date.UTC(year, month, day, hour, minute, second) - Math.floor(at / 1000) * 1000;
  }

  #readLocal(at: number): LocalTime {
    const parts: Record<string, number> = {};
    for (const { type, value } of this.#format.formatToParts(at)) parts[type] = Number(value);
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
    return { year, month: month - 1, day, hour, minute, second };
  }
}

interface LocalTime {
  year: number;
  /** From 0. */
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
}

const DAY_MS = 86_400_000;

const ALWAYS: Window = { start: 0, end: Number.POSITIVE_INFINITY };
