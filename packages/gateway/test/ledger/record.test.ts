import { expect, test } from 'vitest';
import { ExchangeRecord } from '../../src/exchange/record.ts';
import type { Cost } from '../../src/prices/cost.ts';
import { createHeldKeeping, HeldLedger } from './held-ledger.ts';

// What an exchange has cost is the sum of what is known about its attempts.

const usage = { input_tokens: 10, output_tokens: 5 };

const cost = (micros: number): Cost => ({ micros, parts: {}, flags: [], source: 'snapshot', version: 'v1' });

test.each<[name: string, costs: readonly (number | null)[], expected: number | null]>([
  ['all prices are known', [7, 300], 307],
  ['the last price is unknown', [7, null], 7],
  ['the first price is unknown', [null, 300], 300],
  ['no price is known', [null, null], null],
])('an exchange of which %s', (_, costs, expected) => {
  const ledger = new HeldLedger();
  const record = new ExchangeRecord(createHeldKeeping(ledger));
  record.open({ request_id: 'r', client_protocol: 'openai-chat', endpoint: 'chat' });
  for (const micros of costs) {
    record.startAttempt({ provider: 'p', protocol: 'openai-chat', model: 'm' });
    record.endAttempt({ ending: 'broken', usage, cost: micros === null ? null : cost(micros) });
  }
  void record.settle({ ending: 'answered', status: 200, notes: [] });
  expect(ledger.ended).toMatchObject([{ input_tokens: 20, cost_micros: expected }]);
  const attempts = ledger.written.filter(({ write }) => write === 'settleAttempt');
  expect(attempts.map(({ row }) => row)).toMatchObject(costs.map((micros) => ({ cost_micros: micros })));
});
