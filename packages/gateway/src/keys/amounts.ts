/** Amounts of limits as text: `20usd/month`. */

import type { Budget } from './caller.ts';

/** The periods of budgets. Days, weeks and months are those of the calendar; `total` never ends. */
export const PERIODS = ['day', 'week', 'month', 'total'] as const satisfies readonly Budget['period'][];

/** A budget as it is written: at most a billion dollars, with at most six decimals. */
export const BUDGET_PATTERN = /^(\d{1,9})(?:\.(\d{1,6}))?\s*usd\s*\/\s*(day|week|month|total)$/i;

/** The budget that a text such as `0.50usd/day` stands for; undefined when it is none. */
export function parseBudget(text: string): Budget | undefined {
  const [, whole, decimals = '', name = ''] = BUDGET_PATTERN.exec(text.trim()) ?? [];
  const period = PERIODS.find((known) => known === name.toLowerCase());
  if (whole === undefined || period === undefined) return undefined;
  return { micros: Number(whole) * MICROS + Number(decimals.padEnd(6, '0')), period };
}

const MICROS = 1_000_000;

/** A budget as it is written: `20usd/month`. */
export const formatBudget = ({ micros, period }: Budget): string => `${formatUsd(micros)}usd/${period}`;

/** Millionths of a dollar without needless decimals: `20`, `0.5`, `0.000001`. Negative amounts have a sign. */
export function formatUsd(micros: number): string {
  const digits = String(Math.abs(micros)).padStart(7, '0');
  const decimals = digits.slice(-6).replace(/0+$/, '');
  return `${micros < 0 ? '-' : ''}${digits.slice(0, -6)}${decimals === '' ? '' : `.${decimals}`}`;
}
