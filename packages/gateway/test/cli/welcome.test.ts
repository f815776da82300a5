import { join } from 'node:path';
import pico from 'picocolors';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { formatWelcome } from '../../src/cli/serve.ts';
import { type Running, run as startGateway } from '../../src/server/run.ts';
import { shorten } from '../../src/terminal/text.ts';
import { writeProject } from './projects.ts';

const LONG = `a-provider-with-a-name-that-is-far-too-long-for-a-column`;

const SETTINGS = {
  providers: {
    mine: { protocol: 'openai-chat', base_url: 'http://127.0.0.1:8000/v1' },
    openai: { api_key: 'sk-0123456789abcdef' },
    [LONG]: {
      protocol: 'anthropic-messages',
      base_url: `https://models.example.com/${'deep/'.repeat(30)}v1`,
      api_key: 'env:LONG_KEY',
    },
    // No pattern knows this key.
    keyed: { protocol: 'gemini', base_url: 'https://models.example.com/zq7Kx9vT2mWp4LbR/v1beta' },
    several: { protocol: 'openai-responses', base_urls: ['http://127.0.0.1:8001/v1', 'http://127.0.0.1:8002/v1'] },
  },
  models: { fast: 'mine/llama', smart: ['mine/llama-large', 'openai/gpt-5'] },
};

describe('the welcome of sluice serve', () => {
  let running: Running;

  beforeAll(async () => {
    const config = join(writeProject(SETTINGS), 'sluice.yaml');
    running = await startGateway({
      config,
      folder: '/nowhere',
      env: { LONG_KEY: 'long-key', GROQ_API_KEY: 'gsk_0123456789abcdef' },
      listen: { port: 0 },
      data: 'memory',
      log: 'silent',
    });
  });

  afterAll(() => running.close());

  const listRows = (columns?: number): string[] => {
    const lines = formatWelcome(running, pico.createColors(false), { columns }).split('\n');
    const start = lines.indexOf('Providers:') + 1;
    return lines.slice(
      start,
      lines.findIndex((line, at) => at > start && /^(!|$)/.test(line)),
    );
  };

  test('has protocol, address, models and origin of the key of each provider', () => {
    expect(listRows(200).map((row) => row.trim().split(/ {2,}/))).toEqual([
      ['mine', 'openai-chat', 'http://127.0.0.1:8000/v1', '2 models'],
      ['openai', 'openai-chat', 'https://api.openai.com/v1', '1 model', '(key: file)'],
      [
        'a-provider-w…or-a-column',
        'anthropic-messages',
        expect.stringMatching(/^https:\/\/models\.example\.com\/.+…/),
        '(key: file)',
      ],
      ['keyed', 'gemini', 'https://models.example.com/…/v1beta'],
      ['several', 'openai-responses', 'http://127.0.0.1:8001/v1 +1'],
      ['openai-responses', 'openai-responses', 'https://api.openai.com/v1', '(key: file)'],
      ['groq', 'openai-chat', 'https://api.groq.com/openai/v1', '(key: GROQ_API_KEY)'],
    ]);
  });

  test.each([60, 80, 100, 120, 200, undefined])('aligns its columns at a width of %s', (columns) => {
    const rows = listRows(columns);
    expect(new Set(rows.map((row) => row.search(/(?<=^ {2}\S+ +)\S/)))).toHaveLength(1);
    expect(new Set(rows.map((row) => row.indexOf('http')))).toHaveLength(1);
    // A narrow terminal wraps lines rather than hiding what they say.
    for (const row of rows) expect(row.length).toBeLessThanOrEqual(Math.max(columns ?? 120, 110));
  });

  test('names the place of a warning', () => {
    const text = formatWelcome(running, pico.createColors(false));
    expect(text).toMatch(/^! .*sluice\.yaml:1: providers\.openai\.api_key: is a secret in a file/m);
  });

  test('has no secret', () => {
    for (const secret of ['sk-0123456789abcdef', 'gsk_0123456789abcdef', 'long-key', 'abcdef0123456789'])
      expect(listRows().join('\n')).not.toContain(secret);
  });
});

test.each([
  ['short', 10, 'short'],
  ['0123456789', 10, '0123456789'],
  ['0123456789a', 10, '01234…789a'],
  ['0123456789', 3, '0…9'],
  ['0123456789', 2, '0…'],
  ['0123456789', 1, '…'],
])('%s in %i characters', (text, width, short) => {
  expect(shorten(text, width)).toBe(short);
});
