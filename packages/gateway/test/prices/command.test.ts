import { describe, expect, test } from 'vitest';
import { run, type World } from '../fake-io.ts';
import { SNAPSHOT_VERSION } from './state.ts';

const CONFIG = `
providers:
  corp: { protocol: openai-chat, base_url: "https://llm.corp.example/v1", api_key: "\${NOT_SET}" }
prices:
  "corp/*": { input: 0.1, cached_input: 0.05, output: 0.3, reasoning: 0.6 }
  "openai/gpt-5": { input: 1 }
  "corp/internal": free
models:
  fast: [corp/small, groq/llama-3.3-70b-versatile]
  quick: fast
`;

interface Row {
  argv: string[];
  code: number;
  stdout?: (string | RegExp)[];
  stderr?: string[];
  config?: string;
}

const ROWS: Row[] = [
  { argv: [], code: 0, stdout: [/^openai +\d\d$/m, /^alibaba +– {2}the snapshot does not list it$/m, /^ollama .*free/m] },
  { argv: ['o3'], code: 0, stdout: [/^openai\/o3 +2 +0\.5 +2 +8 {2}snapshot$/m, 'web search 10 per 1000', /^azure\/o3 /m] },
  {
    argv: ['claude-sonnet-4-5'],
    code: 0,
    stdout: [
      /^anthropic\/claude-sonnet-4-5 +3 +0\.3 +3\.75 +15 {2}snapshot$/m,
      /^ {2}above 200000 input tokens +6 +0\.6 +7\.5 +22\.5$/m,
      'cache write 1h 6, web search 10 per 1000',
      'context window 200000 tokens',
    ],
  },
  { argv: ['deepseek-chat', '--provider', 'deepseek'], code: 0, stdout: ['the price depends on the time of day'] },
  { argv: ['--provider', 'zai'], code: 0, stdout: [/^zai\/GLM-5\.2 +1\.4/m] },
  { argv: ['--provider', 'xai-responses'], code: 0, stdout: [/^xai-responses\/grok-/m] },
  { argv: ['ollama/llama3'], code: 0, stdout: [/^ollama\/llama3 +0 +0 +0 +0 {2}free$/m] },
  { argv: ['openai/gpt-55'], code: 1, stdout: [/^openai\/gpt-55 +unknown +– +– +unknown/m], stderr: ['did you mean "gpt-5"?'] },
  { argv: ['gpt-55'], code: 1, stderr: ['no price is known for "gpt-55"; did you mean "gpt-5"?'] },
  { argv: ['zzzzzzzzzzzz'], code: 1, stderr: ['no price is known for "zzzzzzzzzzzz"; set one under "prices"'] },
  { argv: ['x\u001b[2J'], code: 1, stderr: ['x\\u001b[2J'] },
  {
    argv: ['--provider', 'alibaba'],
    code: 1,
    stderr: ['no prices are known for provider "alibaba" (the snapshot does not list it)'],
  },
  { argv: ['qwen3', '--provider', 'alibaba'], code: 1, stdout: ['unknown'], stderr: ['(the snapshot does not list it)'] },
  { argv: ['--provider', 'opnai'], code: 2, stderr: ['unknown provider "opnai"; did you mean "openai"?'] },
  { argv: ['a', 'b'], code: 2, stderr: ['name one model'] },
  { argv: ['a', '--config', 'none.yaml'], code: 2, stderr: ['none.yaml: no such file'] },
  { argv: ['a', '--config', 'c.yaml'], config: 'prices: 3', code: 2, stderr: ['c.yaml:1:9', 'prices: must be'] },
  {
    argv: ['quick', '--config', 'c.yaml'],
    config: CONFIG,
    code: 0,
    stdout: [
      /^corp\/small +0\.1 +0\.05 +0\.1 +0\.3 {2}config$/m,
      'reasoning 0.6',
      /^groq\/llama-3\.3-70b-versatile +0\.59 .*snapshot$/m,
    ],
  },
  {
    argv: ['gpt-5', '--config', 'c.yaml'],
    config: CONFIG,
    code: 0,
    stdout: [/^openai\/gpt-5 +1 +1 +1 +unknown {2}config$/m, /^corp\/gpt-5 +0\.1 /m, 'genai-prices-', '+'],
  },
  { argv: ['corp/internal', '--config', 'c.yaml'], config: CONFIG, code: 0, stdout: [/^corp\/internal +0 +0 +0 +0 {2}config$/m] },
];

const runPrices = (argv: string[], config?: string): ReturnType<typeof run> => {
  const world: World = config === undefined ? {} : { files: { 'c.yaml': config } };
  return run(['prices', ...argv], world);
};

describe('sluice prices', () => {
  test.each(ROWS)('$argv', async ({ argv, code, stdout = [], stderr = [], config }) => {
    const outcome = await runPrices(argv, config);
    expect(outcome.code).toBe(code);
    for (const part of stdout) {
      if (typeof part === 'string') expect(outcome.stdout).toContain(part);
      else expect(outcome.stdout).toMatch(part);
    }
    for (const part of stderr) expect(outcome.stderr).toContain(part);
    if (stderr.length === 0) expect(outcome.stderr).toBe('');
  });

  test.each([[], ['--provider', 'openai'], ['--provider', 'openrouter'], ['gpt-5']])('fits 80 columns: %j', async (...argv) => {
    const { stdout } = await runPrices(argv);
    const wide = stdout.split('\n').filter((line) => line.length > 80);
    // A name alone on its line may be longer.
    expect(wide.filter((line) => /\s/.test(line.trim()))).toEqual([]);
  });

  test('--json: models', async () => {
    const { stdout } = await runPrices(['anthropic/claude-sonnet-4-5', '--json']);
    expect(JSON.parse(stdout)).toEqual({
      version: `genai-prices-${SNAPSHOT_VERSION}`,
      models: [
        {
          provider: 'anthropic',
          model: 'claude-sonnet-4-5',
          source: 'snapshot',
          listed_as: 'claude-sonnet-4-5',
          context_window: 200_000,
          prices: { input: '3', cache_read: '0.3', cache_write: '3.75', cache_write_1h: '6', output: '15', web_search: '10' },
          tiers: [
            {
              above: 200_000,
              prices: {
                input: '6',
                cache_read: '0.6',
                cache_write: '7.5',
                cache_write_1h: '12',
                output: '22.5',
                web_search: '10',
              },
            },
          ],
        },
      ],
    });
  });

  test('--json: unknown is null', async () => {
    const { stdout, code } = await runPrices(['openai/none', '--json']);
    expect([code, JSON.parse(stdout).models[0]]).toMatchObject([1, { prices: null, source: 'unknown' }]);
  });

  test('--json: providers', async () => {
    const { stdout } = await runPrices(['--json']);
    expect(JSON.parse(stdout).providers).toContainEqual({ id: 'vllm', models: 0, source: 'free: runs on your own machine' });
  });
});
