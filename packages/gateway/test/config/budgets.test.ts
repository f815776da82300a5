import { expect, test } from 'vitest';
import { parseOptions } from '../../src/config/schema.ts';

const read = (value: object) => {
  const result = parseOptions(value);
  return 'options' in result ? result.options : result.issues.map(({ path, message }) => `${path.join('.')} ${message}`);
};

test('budgets are read with their amounts; the default time zone is UTC', () => {
  expect(read({ budgets: [{ tag: 'team=a', limit: '0.50usd/day' }] })).toMatchObject({
    budgets: [{ tag: 'team=a', limit: { micros: 500_000, period: 'day' } }],
    time_zone: 'UTC',
  });
  expect(read({ time_zone: 'Asia/Kolkata' })).toMatchObject({ budgets: [], time_zone: 'Asia/Kolkata' });
});

test.each([
  [{ budgets: [{ tag: 'team=a', limit: '20eur/day' }] }, 'budgets.0.limit must be US dollars and a period'],
  [{ budgets: [{ tag: 'team=a', limit: 20 }] }, 'budgets.0.limit must be US dollars and a period'],
  [{ budgets: [{ tag: 'a, b', limit: '20usd/day' }] }, 'budgets.0.tag must be one tag'],
  [{ budgets: [{ tag: 'a"b', limit: '20usd/day' }] }, 'budgets.0.tag must be one tag'],
  [{ time_zone: 'Berlin' }, 'time_zone must be an IANA time zone'],
  [{ time_zone: '+02:00' }, 'time_zone must be an IANA time zone'],
])('%j is rejected', (value, message) => expect(String(read(value))).toContain(message));
