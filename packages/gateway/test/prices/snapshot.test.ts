import { readFileSync } from 'node:fs';
import { calcPrice, waitForUpdate } from '@pydantic/genai-prices';
import { describe, expect, test } from 'vitest';
import { buildPriceFile } from '../../../../scripts/write-prices.js';
import { computeCost } from '../../src/prices/cost.ts';
import { chooseRates, readPeriod } from '../../src/prices/rates.ts';
import { findSnapshotModel, loadSnapshot, readSnapshot } from '../../src/prices/snapshot.ts';
import { findPriceSource, PRICED_VENDORS } from '../../src/prices/sources.ts';
import { findProfileId, PROVIDER_IDS } from '../../src/providers/lookup.ts';

const published = (await waitForUpdate()) ?? [];

describe('prices.json', () => {
  // After an update of the package: npm run prices
  test('is what the package gives', async () => {
    expect(readFileSync(new URL('../../prices.json', import.meta.url), 'utf8')).toBe(await buildPriceFile());
  });

  test('a missing file gives a snapshot without prices and the reason', () => {
    const { version, providers, problem } = readSnapshot(new URL('no-such.json', import.meta.url));
    expect([version, providers]).toEqual(['missing', {}]);
    expect(problem).toContain('ENOENT');
  });

  test('has every provider of the package', () => {
    expect(Object.keys(loadSnapshot().providers)).toEqual(published.map(({ id }) => id));
  });
});

describe('where prices come from', () => {
  test.each(PROVIDER_IDS)('%s has a price source', (id) => expect(findPriceSource(findProfileId(id))).toBeDefined());

  test.each(PRICED_VENDORS)('%s is a provider, and its ids are in the snapshot', (vendor) => {
    expect([...PROVIDER_IDS, 'demo']).toContain(vendor);
    const source = findPriceSource(vendor);
    const ids = source?.is === 'listed' ? source.under : source?.is === 'routed' ? Object.values(source.suffixes) : [];
    for (const id of ids) expect(Object.keys(loadSnapshot().providers)).toContain(id);
  });

  test.each(['toString', '__proto__', 'constructor', 'my-own'])('%s is no vendor', (id) =>
    expect(findPriceSource(id)).toBeUndefined(),
  );
});

/** The package also looks at providers that it names as fallbacks; the gateway names its own. */
const withFallbacks = (id: string): string[] => [
  id,
  ...(published.find((provider) => provider.id === id)?.fallback_model_providers ?? []),
];

describe('lookup', () => {
  const variants = (name: string): string[] => [
    name,
    name.toUpperCase(),
    ` ${name} `,
    `${name}-20260807`,
    `${name}-2026-08-07`,
    `${name}-latest`,
    `${name}-mini`,
    `x-${name}`,
  ];

  test.each(published.map(({ id }) => id))('%s: every name is found as the package finds it', (id) => {
    const provider = published.find((one) => one.id === id);
    for (const model of provider?.models ?? [])
      for (const name of variants(model.id)) {
        const expected = calcPrice({}, name, { providerId: id })?.model;
        const found = findSnapshotModel(loadSnapshot(), withFallbacks(id), name);
        expect([name, found?.id, found?.context_window]).toEqual([name, expected?.id, expected?.context_window]);
      }
  });

  const rows: { name: string; provider: string; model: string }[] = [
    { name: 'a provider that does not exist', provider: 'nobody', model: 'gpt-5' },
    { name: 'a name of an object', provider: '__proto__', model: 'gpt-5' },
    { name: 'a long name', provider: 'anthropic', model: `claude-2${'-'.repeat(300)}` },
    { name: 'an empty name', provider: 'openai', model: '' },
  ];
  test.each(rows)('$name: undefined', ({ provider, model }) =>
    expect(findSnapshotModel(loadSnapshot(), [provider], model)).toBeUndefined(),
  );
});

describe('costs are those of the package', () => {
  const USAGES = [
    { input_tokens: 12_345, output_tokens: 0 },
    { input_tokens: 1000, output_tokens: 100 },
    { input_tokens: 199_999, output_tokens: 1 },
    { input_tokens: 200_001, output_tokens: 77_777 },
    { input_tokens: 600_000, output_tokens: 3, cache_read_tokens: 500_000 },
    { input_tokens: 4740, output_tokens: 255, cache_creation_tokens: 4735, details: { cache_creation_1h: 35 } },
    { input_tokens: 5000, output_tokens: 900, reasoning_tokens: 400, details: { web_search_requests: 3 } },
  ];
  /** Days and hours in which prices differ. */
  const MOMENTS = [
    '2025-01-01T02:00:00Z',
    '2026-07-30T00:00:00Z',
    '2026-08-20T23:59:59Z',
    '2026-11-17T17:00:00Z',
    '2027-01-01T00:30:00Z',
  ];

  test.each(published.map(({ id }) => id))('%s', (id) => {
    let compared = 0;
    for (const { name, hasPeriods } of listNames(id))
      for (const moment of hasPeriods ? MOMENTS : MOMENTS.slice(0, 1))
        for (const usage of USAGES) {
          const result = calcPrice(toPackageUsage(usage), name, { providerId: id, timestamp: new Date(moment) });
          const found = findSnapshotModel(loadSnapshot(), withFallbacks(id), name);
          const rates = found && chooseRates(found.periods.map(readPeriod), Date.parse(moment));
          const cost = rates && computeCost(usage, rates);
          if (!result || !cost) continue;
          compared++;
          // The package computes with floats; prices are rounded to six decimals.
          const expected = result.total_price * 1e6;
          expect(Math.abs(cost.micros - expected), `${name} ${moment}`).toBeLessThanOrEqual(0.5 + expected * 1e-5);
        }
    expect(compared).toBeGreaterThan(0);
  });

  /** A name of each model; ids are not always names. */
  const listNames = (id: string): { name: string; hasPeriods: boolean }[] =>
    (published.find((one) => one.id === id)?.models ?? []).map((model) => ({
      name: /"(?:equals|starts_with)":"([^"]+)"/.exec(JSON.stringify(model.match))?.[1] ?? model.id,
      hasPeriods: Array.isArray(model.prices),
    }));
});

function toPackageUsage(usage: {
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens?: number;
  cache_creation_tokens?: number;
  reasoning_tokens?: number;
  details?: { cache_creation_1h?: number; web_search_requests?: number };
}): Record<string, number> {
  const { input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens, reasoning_tokens, details } = usage;
  return {
    input_tokens,
    output_tokens,
    ...(cache_read_tokens !== undefined && { cache_read_tokens }),
    ...(cache_creation_tokens !== undefined && { cache_write_tokens: cache_creation_tokens }),
    ...(reasoning_tokens !== undefined && { output_reasoning_tokens: reasoning_tokens }),
    ...(details?.cache_creation_1h !== undefined && { cache_write_1h_tokens: details.cache_creation_1h }),
    ...(details?.web_search_requests !== undefined && { web_searches: details.web_search_requests }),
  };
}
