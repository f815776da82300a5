/** How much a request lets a model generate, read so that no server can generate more. */

import type { JsonObject } from '../json/json.ts';
import type { OutputLimit } from './protocol.ts';
import { findAmount } from './read.ts';

/**
 * The output limit of a request. Servers read different fields for the same limit, some ignore the case of names, and a
 * request may have several of these fields: the largest counts, of all protocols. What a lenient server could read as
 * any number is no limit.
 */
export function readOutputLimit(fields: JsonObject): OutputLimit {
  const tokens = findLargest(fields, TOKEN_FIELDS);
  const choices = findLargest(fields, CHOICE_FIELDS);
  return {
    tokens: tokens === 'unlimited' ? undefined : tokens,
    choices: choices === 'unlimited' ? MANY : Math.max(1, Math.ceil(choices ?? 1)),
  };
}

/** A field as servers compare it that ignore case or accept two spellings. */
export const normalizeField = (name: string): string => name.toLowerCase().replaceAll('_', '');

/** Tokens of one response. */
const TOKEN_FIELDS: ReadonlySet<string> = new Set([
  'maxtokens',
  'maxcompletiontokens',
  'maxoutputtokens',
  'maxnewtokens',
  'maxtokenstosample',
  'npredict',
]);

/** Responses that are generated, also those that are not returned. */
const CHOICE_FIELDS: ReadonlySet<string> = new Set(['n', 'ncmpl', 'bestof', 'candidatecount']);

/** More responses than any budget pays for. */
const MANY = 1e9;

function findLargest(fields: JsonObject, names: ReadonlySet<string>): number | 'unlimited' | undefined {
  let largest: number | undefined;
  for (const name in fields) {
    const value = fields[name];
    if (value === null || value === undefined || !names.has(normalizeField(name))) continue;
    const amount = findAmount(value);
    if (amount !== undefined) largest = Math.max(largest ?? 0, amount);
    // llama.cpp generates without a limit for -1; a number of responses below 1 is 1.
    else if (names === TOKEN_FIELDS || !isNumeric(value)) return 'unlimited';
  }
  return largest;
}

const isNumeric = (value: unknown): boolean => typeof value === 'number' && Number.isFinite(value);
