import { describe, expect, test } from 'vitest';
import { type KeySettings, NO_TERMS, readKeyName, readSpan, readTerms, writeTerms } from '../../src/keys/settings.ts';

const NOW = Date.parse('2026-11-17T08:00:00Z');

describe('settings', () => {
  test.each<[KeySettings, object]>([
    [{}, {}],
    [{ models: 'gpt-*' }, { models: ['gpt-*'] }],
    [{ models: ['a', ' b ', 'a'] }, { models: ['a', 'b'] }],
    [{ budget: '20usd/month' }, { budgets: [{ micros: 20_000_000, period: 'month' }] }],
    [{ budget: '0.000001 USD / day' }, { budgets: [{ micros: 1, period: 'day' }] }],
    [
      { budget: ['5usd/week', '100usd/total'] },
      {
        budgets: [
          { micros: 5_000_000, period: 'week' },
          { micros: 100_000_000, period: 'total' },
        ],
      },
    ],
    [{ rpm: 60 }, { requestsPerMinute: 60 }],
    [{ rpm: '60' }, { requestsPerMinute: 60 }],
    [{ tpm: '100k' }, { tokensPerMinute: 100_000 }],
    [{ tpm: '1.5M' }, { tokensPerMinute: 1_500_000 }],
    [{ tpm: '0.001k' }, { tokensPerMinute: 1 }],
    [{ tpm: '1000000000000' }, { tokensPerMinute: 1e12 }],
    [{ concurrency: '8' }, { concurrency: 8 }],
    [{ expires: '90d' }, { expiresAt: NOW + 90 * 86_400_000 }],
    [{ expires: '2027-01-31' }, { expiresAt: Date.parse('2027-01-31T00:00Z') }],
    [{ expires: '2027-01-31T08:00+01:00' }, { expiresAt: Date.parse('2027-01-31T07:00Z') }],
    [{ ip: ['10.0.0.0/8', '::1', '2001:db8::/32'] }, { addresses: ['10.0.0.0/8', '::1', '2001:db8::/32'] }],
  ])('%j', (settings, policy) => {
    const terms = readTerms(settings, NOW);
    expect(terms.policy).toEqual({ ...NO_TERMS.policy, ...policy });
    // What is written can be read again.
    expect(readTerms(writeTerms(terms), NOW)).toEqual(terms);
  });

  test('absent settings stay, and null removes one', () => {
    const before = readTerms({ models: 'a', rpm: 5, tags: 'team=a', budget: '1usd/day', expires: '1d', ip: '::1' }, NOW);
    const after = readTerms({ rpm: null, budget: null, expires: null, ip: null }, NOW, before);
    expect(after).toEqual({ policy: { ...NO_TERMS.policy, models: ['a'] }, tags: ['team=a'] });
  });

  test.each<[KeySettings, string]>([
    [{ models: '' }, 'models'],
    [{ models: 'a*b*' }, 'models'],
    [{ models: 'a b' }, 'models'],
    [{ models: 'a'.repeat(201) }, 'models'],
    [{ models: Array.from({ length: 65 }, (_, i) => `m${i}`) }, 'models'],
    [{ budget: '20' }, 'budget'],
    [{ budget: '20eur/month' }, 'budget'],
    [{ budget: '20usd/year' }, 'budget'],
    [{ budget: '0usd/day' }, 'budget'],
    [{ budget: '-1usd/day' }, 'budget'],
    [{ budget: '1e3usd/day' }, 'budget'],
    [{ budget: '0.0000001usd/day' }, 'budget'],
    [{ budget: ['1usd/day', '2usd/day'] }, 'budget'],
    [{ rpm: 0 }, 'rpm'],
    [{ rpm: 1.5 }, 'rpm'],
    [{ rpm: Number.NaN }, 'rpm'],
    [{ rpm: Number.POSITIVE_INFINITY }, 'rpm'],
    [{ rpm: '60/m' }, 'rpm'],
    [{ tpm: '10g' }, 'tpm'],
    [{ tpm: '9999999999999m' }, 'tpm'],
    [{ tpm: '1000000000001' }, 'tpm'],
    [{ concurrency: -1 }, 'concurrency'],
    [{ expires: '0d' }, 'expires'],
    [{ expires: 'tomorrow' }, 'expires'],
    [{ expires: '2027-13-01' }, 'expires'],
    [{ expires: '2027-01-31 08:00' }, 'expires'],
    [{ ip: '10.0.0.0/33' }, 'ip'],
    [{ ip: '10.0.0' }, 'ip'],
    [{ ip: 'localhost' }, 'ip'],
    [{ ip: '::1/129' }, 'ip'],
    [{ ip: 'fe80::1%eth0' }, 'ip'],
    [{ ip: '10.0.0.0/8/8' }, 'ip'],
    [{ tags: 'a b' }, 'tags'],
    [{ tags: 'a,b' }, 'tags'],
    [{ tags: Array.from({ length: 17 }, (_, i) => `t${i}`) }, 'tags'],
  ])('%j is refused with the name of the setting', (settings, setting) => {
    expect(() => readTerms(settings, NOW)).toThrow(expect.objectContaining({ name: 'KeySettingError', setting }));
  });

  test('a count that is too large is refused with the largest one', () =>
    expect(() => readTerms({ tpm: '1000000000001' }, NOW)).toThrow('from 1 to 1000000000000'));

  test.each(['alice', 'a', 'ci-nightly', 'team.a_b', 'bob@example.com', '1'])('%s is a name', (name) =>
    expect(readKeyName(name)).toBe(name),
  );

  test.each(['', '-a', '.a', 'a b', 'a/b', 'a\n', '\u00e9', `a'--`, '%', 'a'.repeat(65)])('%j is not a name', (name) =>
    expect(() => readKeyName(name)).toThrow('must have 1 to 64 letters'),
  );

  test.each([
    ['0', 0],
    ['30m', 1_800_000],
    ['24h', 86_400_000],
    ['2w', 1_209_600_000],
  ])('a duration of %s', (text, ms) => expect(readSpan('overlap', text)).toBe(ms));

  test.each(['', '24', '1y', '-1h', '1.5h', '1h '.repeat(2)])('%j is not a duration', (text) =>
    expect(() => readSpan('overlap', text)).toThrow('must be a duration'),
  );
});
