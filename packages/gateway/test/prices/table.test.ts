import { describe, expect, test } from 'vitest';
import { createPriceTable, type PriceTable } from '../../src/prices/table.ts';
import { SNAPSHOT_VERSION, stateWith } from './state.ts';

const KEYS = {
  OPENAI_API_KEY: 'sk-1',
  ANTHROPIC_API_KEY: 'sk-2',
  OPENROUTER_API_KEY: 'sk-3',
  HF_TOKEN: 'hf',
  OLLAMA_HOST: 'http://127.0.0.1:1',
};

const tableOf = (yaml = 'log: {level: info}'): PriceTable => createPriceTable(stateWith(yaml, KEYS));

/** 2026-11-17, noon. */
const NOON = Date.UTC(2026, 10, 17, 12);

/** A million tokens in and out, so that the figures are dollars. */
const MILLION = { input_tokens: 100_000, output_tokens: 100_000 };

const dollars = (table: PriceTable, provider: string, model: string, at = NOON): number | null => {
  const cost = table.cost(MILLION, provider, model, at);
  return cost && cost.micros / 1e5;
};

describe('prices of the snapshot', () => {
  const table = tableOf();
  test.each<[string, string, number | null]>([
    ['openai', 'gpt-5', 11.25],
    ['openai-responses', 'gpt-5', 11.25],
    ['anthropic', 'claude-sonnet-4-5-20250929', 18],
    ['openrouter', 'anthropic/claude-sonnet-4.5', 18],
    ['openrouter-anthropic', 'anthropic/claude-sonnet-4.5', 18],
    ['huggingface', 'openai/gpt-oss-120b:groq', 0.9],
    ['huggingface', 'openai/gpt-oss-120b:cerebras', null],
    ['huggingface', 'openai/gpt-oss-120b:toString', null],
    ['huggingface', 'openai/gpt-oss-120b', null],
    ['azure', 'gpt-5', 11.25],
    ['azure', 'claude-sonnet-4-5', null],
    ['google', 'gemini-2.5-flash', 2.8],
    ['google', 'claude-sonnet-4-5', null],
    ['openai', 'claude-sonnet-4-5', null],
    ['anthropic', 'gpt-5', null],
    ['openai', 'no-such-model', null],
    ['groq', 'gpt-5', null],
    ['nobody', 'gpt-5', null],
    ['vercel-gateway', 'openai/gpt-5', null],
  ])('%s/%s', (provider, model, expected) => expect(dollars(table, provider, model)).toBe(expected));

  test.each<[string, string]>([
    ['ollama', 'llama3.2'],
    ['demo', 'hello'],
    ['openrouter', 'qwen/qwen3-coder:free'],
  ])('%s/%s is free by a rule', (provider, model) => {
    expect(table.cost(MILLION, provider, model, NOON)).toMatchObject({ micros: 0, source: 'free' });
  });

  test('a model that the snapshot lists without a price is unknown, not free', () => {
    expect(table.find('openai', 'omni-moderation-latest')).toMatchObject({ source: 'unknown', listedAs: 'moderation' });
    expect(dollars(table, 'openai', 'omni-moderation-latest')).toBeNull();
  });

  test('prices change with the day', () => {
    const before = dollars(table, 'openai', 'o3', Date.UTC(2025, 5, 9));
    expect([before, dollars(table, 'openai', 'o3', Date.UTC(2025, 5, 10))]).toEqual([50, 10]);
  });

  test('and with the hour', () => {
    const at = (hour: number): number | null => dollars(table, 'deepseek', 'deepseek-chat', Date.UTC(2026, 10, 17, hour));
    expect([at(12), at(20)]).toEqual([1.37, 0.685]);
  });

  test('the context window is known', () => expect(table.find('openai', 'gpt-5').contextWindow).toBe(400_000));

  test('its version is that of the package', () => expect(table.version).toBe(`genai-prices-${SNAPSHOT_VERSION}`));
});

describe('prices of the configuration', () => {
  const table = tableOf(`
providers:
  corp: { protocol: openai-chat, base_url: "https://llm.corp.example/v1" }
  proxy: { extends: anthropic, api_key: sk, base_url: "https://proxy.example/v1" }
prices:
  openai/gpt-5: { input: 1, output: 2 }
  "openai/gpt-5*": { input: "0.000001", output: 0.1 }
  "openai/*-mini": { input: 7, output: 7 }
  "openai/*": free
  "corp/*": { input: 0.1, cached_input: 0.05, cache_write: 0.2, cache_write_1h: 0.4, output: 0.3, reasoning: 0.6, input_audio: 1, output_audio: 2 }
`);
  test.each<[string, string, number | null]>([
    ['openai', 'gpt-5', 3],
    ['openai-responses', 'gpt-5', 3],
    ['openai', 'gpt-5-nano', 0.1],
    ['openai', 'gpt-5-mini', 0.1],
    ['openai', 'o4-mini', 14],
    ['openai', 'anything', 0],
    ['corp', 'ours', 0.4],
    ['proxy', 'claude-sonnet-4-5', 18],
  ])('%s/%s', (provider, model, expected) => expect(dollars(table, provider, model)).toBe(expected));

  test('each field has its bucket', () => {
    const usage = {
      input_tokens: 50_000_000,
      output_tokens: 30_000_000,
      cache_read_tokens: 10_000_000,
      cache_creation_tokens: 20_000_000,
      reasoning_tokens: 10_000_000,
      details: { cache_creation_1h: 10_000_000, input_audio: 10_000_000, output_audio: 10_000_000 },
    };
    const { parts = {} } = table.cost(usage, 'corp', 'ours', NOON) ?? {};
    expect(Object.entries(parts).map(([bucket, { micros }]) => [bucket, micros / 1e7])).toEqual([
      ['input', 0.1],
      ['cache_read', 0.05],
      ['cache_write', 0.2],
      ['cache_write_1h', 0.4],
      ['input_audio', 1],
      ['output', 0.3],
      ['reasoning', 0.6],
      ['output_audio', 2],
    ]);
  });

  test('default_price is for what is unknown, and for nothing else', () => {
    const other = tableOf('default_price: { input: 1, output: 1 }');
    expect(other.cost(MILLION, 'openai', 'no-such-model', NOON)).toMatchObject({ micros: 200_000, source: 'default_price' });
    expect(dollars(other, 'openai', 'gpt-5')).toBe(11.25);
    expect(dollars(other, 'ollama', 'llama3.2')).toBe(0);
  });

  test('the version changes with the prices, not with their order', () => {
    const version = (yaml: string): string => tableOf(yaml).version;
    const a = '"openai/a": { input: 1, output: 2 }';
    const b = '"openai/b": free';
    expect(version(`prices: { ${a}, ${b} }`)).toMatch(new RegExp(`^genai-prices-${SNAPSHOT_VERSION}\\+[0-9a-f]{12}$`));
    expect(version(`prices: { ${b}, ${a} }`)).toBe(version(`prices: { ${a}, ${b} }`));
    expect(version(`prices: { ${a} }`)).not.toBe(version(`prices: { ${a}, ${b} }`));
    expect(version('default_price: free')).not.toBe(version('default_price: { input: 1 }'));
  });
});

describe('mistakes in prices', () => {
  test.each<[string, RegExp]>([
    ['prices: { gpt-5: free }', /must be provider\/model, with at most one \* in the model/],
    ['prices: { "openai/*-*": free }', /must be provider\/model/],
    ['prices: { "*/gpt-5": free }', /must be provider\/model/],
    ['prices: { openai/gpt-5: cheap }', /must be a map of prices, or free/],
    ['prices: { openai/gpt-5: { output: 1 } }', /\.input: must be US dollars/],
    ['prices: { openai/gpt-5: { input: -1 } }', /must be US dollars per million tokens/],
    ['prices: { openai/gpt-5: { input: 0.0000001 } }', /must be US dollars per million tokens/],
    ['prices: { openai/gpt-5: { input: 1000001 } }', /must be US dollars per million tokens/],
    ['prices: { openai/gpt-5: { input: 1, outptu: 2 } }', /unknown key "outptu"; did you mean "output"\?/],
    ['default_price: 3', /must be a map of prices, or free/],
  ])('%s', (yaml, message) => expect(() => tableOf(yaml)).toThrow(message));

  test('a provider that does not exist is a warning', () => {
    const { warnings } = stateWith('prices: { opanai/gpt-5: free }', KEYS);
    expect(warnings.map(({ message }) => message)).toEqual([expect.stringMatching(/there is no provider "opanai".*openai/)]);
  });

  test('a price may be a reference', () => {
    const table = createPriceTable(
      stateWith(`prices: { openai/x: { input: "\${PRICE}", output: 1 } }`, { ...KEYS, PRICE: '2.5' }),
    );
    expect(dollars(table, 'openai', 'x')).toBe(3.5);
  });
});
