/** What budgets reserve for requests of real clients: one that fits must not be refused because its worst case is far away. */
import type { ProtocolId } from '@sluice/core';
import { CODECS, findRoute } from '@sluice/core/engine';
import { describe, expect, test } from 'vitest';
import { type CapturedRequest, readCapturedRequests } from '../../../../test/corpus.ts';
import { Demand } from '../../src/admission/demand.ts';
import { measureModelRequest } from '../../src/exchange/measure.ts';
import { createPriceTable } from '../../src/prices/table.ts';

const prices = createPriceTable({ prices: {}, default_price: undefined, providers: new Map() });

/** Models that clients of a protocol use at its vendor. */
const MODELS = {
  'openai-chat': ['openai/gpt-5', 'openai/gpt-4o'],
  'openai-responses': ['openai/gpt-5', 'openai/gpt-4o'],
  'anthropic-messages': ['anthropic/claude-sonnet-4-5', 'anthropic/claude-opus-4-5'],
  gemini: ['google/gemini-2.5-pro', 'google/gemini-2.5-flash'],
} as const satisfies Record<ProtocolId, readonly string[]>;

/** What is left of 20 USD when a tenth is left. */
const LEFT = 2_000_000;

function reserve({ path, headers, body }: CapturedRequest, name: string): number {
  const { client, type } = findRoute(path, headers);
  const text = JSON.stringify(body);
  const work = measureModelRequest(type, { body, text, bytes: Buffer.byteLength(text), history: 0 }, CODECS[client.id]);
  if (work === 'free') return 0;
  expect(work.unpriced).toBeUndefined();
  const [provider = '', model = ''] = name.split('/');
  const { max_output_tokens: most, max_tool_uses: maxToolUses } = CODECS[client.id].profileFor(provider, model);
  const maxOutput = most < Number.MAX_SAFE_INTEGER ? most : undefined;
  const { micros } = new Demand({
    work,
    targets: [{ provider, model, maxOutput, maxToolUses, isConverted: false }],
    prices,
    at: Date.now(),
  });
  if (typeof micros !== 'number') throw new Error(`${name} has no price`);
  return micros;
}

describe('a request of a real client fits into the last tenth of a budget of 20 USD', () => {
  const requests = readCapturedRequests().filter(
    // This client asks for 128,000 tokens, which are more than these models have.
    ({ name, method, body }) => method === 'POST' && body !== undefined && !name.startsWith('kimi-anthropic'),
  );

  test.each(requests.map((request) => [request.name, request] as const))('%s', (_, request) => {
    const { client } = findRoute(request.path, request.headers);
    for (const model of MODELS[client.id]) expect(reserve(request, model), model).toBeLessThan(LEFT);
  });
});
