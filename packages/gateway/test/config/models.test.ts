import type { ProtocolId } from '@sluice/core';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { explainUnknownModel } from '../../src/config/resolve.ts';
import { answering, stateOf } from './world.ts';

const ENV = { OPENAI_API_KEY: 'k', ANTHROPIC_API_KEY: 'k', GROQ_API_KEY: 'k', OPENROUTER_API_KEY: 'k' };

const YAML = `
providers:
  azure: { api_key: k, base_url: https://r.openai.azure.com }
models:
  "claude-*": anthropic/*
  "claude-haiku-*": [groq/small, anthropic/*]
  claude-haiku-4-5: openai/exact
  "*-latest": openrouter/vendor/*
  "team/*": groq/*
  "*/free": openrouter/*:free
  "opus-*": openrouter/anthropic/claude-opus-*-v1
  "openai/*": [openai/*, azure/*]
  "openai/gpt-4*": azure/gpt4
  fast: [groq/llama-3.3-70b, openai/gpt-5-mini]
  nested: [fast, anthropic/claude-x, groq/llama-3.3-70b]
  deep: nested
  "any-*": fast
  missing: [mistral/x, groq/y]
  gone: mistral/x
  groq/renamed: openai/other
`;

describe('model names of the file', () => {
  const state = stateOf({ yaml: YAML, env: ENV });

  test.each<[string, string[] | undefined]>([
    // exact beats wildcard, the longest literal wins, the wildcard carries over
    ['claude-opus-4', ['anthropic/claude-opus-4']],
    ['claude-haiku-3', ['groq/small', 'anthropic/claude-haiku-3']],
    ['claude-haiku-4-5', ['openai/exact']],
    ['claude-', ['anthropic/claude-']],
    ['gpt-latest', ['openrouter/vendor/gpt-latest']],
    ['claude-latest', ['anthropic/claude-latest']],
    ['team/llama', ['groq/llama']],
    ['team/', undefined],
    ['meta/free', ['openrouter/meta:free']],
    ['opus-4', ['openrouter/anthropic/claude-opus-4-v1']],
    // lists are fallbacks in order; entries may name each other
    ['fast', ['groq/llama-3.3-70b', 'openai/gpt-5-mini']],
    ['nested', ['groq/llama-3.3-70b', 'openai/gpt-5-mini', 'anthropic/claude-x']],
    ['deep', ['groq/llama-3.3-70b', 'openai/gpt-5-mini', 'anthropic/claude-x']],
    ['any-thing', ['groq/llama-3.3-70b', 'openai/gpt-5-mini']],
    // provider/model always works, unless the file says something of that provider
    ['groq/llama', ['groq/llama']],
    ['groq/meta/llama:8b', ['groq/meta/llama:8b']],
    ['groq/x-latest', ['groq/x-latest']],
    ['groq/renamed', ['openai/other']],
    ['openai/gpt-5', ['openai/gpt-5', 'azure/gpt-5']],
    ['openai/gpt-4o', ['azure/gpt4']],
    ['demo/echo', ['demo/echo']],
    ['groq/', undefined],
    // who has no key is left out
    ['missing', ['groq/y']],
    ['gone', undefined],
    ['mistral/x', undefined],
    // families
    ['gpt-5', ['openai/gpt-5']],
    ['o3', ['openai/o3']],
    ['gemini-2.5-pro', undefined],
    ['llama', undefined],
    ['', undefined],
    ['/', undefined],
    ['__proto__', undefined],
    ['constructor', undefined],
    ['x'.repeat(100_000), undefined],
  ])('%.40s', (name, goals) => expect(answering(state, name)).toEqual(goals));

  test('names for the model list', () =>
    expect(state.models).toEqual(['claude-haiku-4-5', 'fast', 'nested', 'deep', 'missing', 'groq/renamed']));

  test('skipped targets are reported', () => {
    expect(state.warnings.map(({ message, place }) => `${place?.line}: ${message}`)).toEqual([
      '18: mistral/x is skipped: provider "mistral" needs MISTRAL_API_KEY in the environment',
      '19: mistral/x is skipped: provider "mistral" needs MISTRAL_API_KEY in the environment',
    ]);
  });

  const KNOWN = '; known: claude-haiku-4-5, fast, nested, deep, missing, groq/renamed';

  test.each([
    [
      'mistral/x',
      `no provider is configured for model "mistral/x": Mistral is not configured; set MISTRAL_API_KEY and restart${KNOWN}`,
    ],
    [
      'gemini-2.5-pro',
      `no provider is configured for model "gemini-2.5-pro": Google Gemini is not configured; set GEMINI_API_KEY and restart${KNOWN}`,
    ],
    ['fasst', `no provider is configured for model "fasst"${KNOWN} (did you mean "fast"?)`],
    ['opnai/gpt-5', `no provider is configured for model "opnai/gpt-5"${KNOWN} (did you mean "openai/gpt-5"?)`],
    ['groqq/llama', `no provider is configured for model "groqq/llama"${KNOWN} (did you mean "groq/llama"?)`],
    ['x'.repeat(1000), `no provider is configured for model "${'x'.repeat(200)}"${KNOWN}`],
  ])('the reason why %.20s is unknown', (name, why) => expect(explainUnknownModel(name, state)).toBe(why));
});

test('an unknown model is reported with at most ten known ones', () => {
  const names = Array.from({ length: 12 }, (_, i) => `model-${i}`);
  const state = stateOf({ yaml: `models: { ${names.map((name) => `${name}: groq/x`).join(', ')} }`, env: ENV });
  expect(explainUnknownModel('other', state)).toBe(
    `no provider is configured for model "other"; known: ${names.slice(0, 10).join(', ')} and 2 more`,
  );
});

test('without models of the file, the providers are listed', () => {
  const state = stateOf({ env: { GROQ_API_KEY: 'k' } });
  expect(explainUnknownModel('other', state)).toBe('no provider is configured for model "other"; known: groq/MODEL');
});

test('disabled providers are skipped', () => {
  const state = stateOf({ yaml: 'providers: { groq: false }\nmodels: { a: [groq/x, openai/y] }', env: ENV });
  expect(answering(state, 'a')).toEqual(['openai/y']);
  expect(state.warnings[0]?.message).toBe('groq/x is skipped: provider "groq" is disabled');
});

describe('no file', () => {
  test('a key: its models and the demo', () => {
    const state = stateOf({ env: { ANTHROPIC_API_KEY: 'k' } });
    expect(answering(state, 'claude-x')).toEqual(['anthropic/claude-x']);
    expect(answering(state, 'anthropic/claude-x')).toEqual(['anthropic/claude-x']);
    expect(answering(state, 'demo/no-index')).toEqual(['demo/no-index']);
    expect(answering(state, 'gpt-5')).toBeUndefined();
  });

  test('no key: the demo model serves every name', () => {
    const state = stateOf({});
    for (const name of ['gpt-5', 'claude-haiku-4-5-20251001', 'models/x', 'openai/gpt-5'])
      expect(answering(state, name)).toEqual([`demo/${name}`]);
    expect(answering(state, '')).toBeUndefined();
    expect(answering(stateOf({ yaml: 'models: { a: demo/x }' }), 'gpt-5')).toBeUndefined();
  });
});

describe('the protocol of the client', () => {
  test.each<[string, ProtocolId, string, string]>([
    ['official', 'openai-responses', 'openai/gpt-5', 'openai-responses/gpt-5'],
    ['official, by family', 'openai-responses', 'gpt-5', 'openai-responses/gpt-5'],
    ['the other way', 'openai-chat', 'openai-responses/gpt-5', 'openai/gpt-5'],
    ['a language it does not speak', 'gemini', 'openai/gpt-5', 'openai/gpt-5'],
    ['not official: only when asked for', 'anthropic-messages', 'openrouter/x', 'openrouter/x'],
    ['by its own name', 'openai-responses', 'mine/gpt-5', 'mine/gpt-5'],
  ])('%s', (_, client, name, goal) => {
    const yaml = 'providers: { mine: { extends: openai, api_key: k } }';
    expect(answering(stateOf({ yaml, env: ENV }), name, client)).toEqual([goal]);
  });

  test('not at another base URL, which may not support the protocol', () => {
    const state = stateOf({ env: { OPENAI_API_KEY: 'k', OPENAI_BASE_URL: 'http://127.0.0.1:9/v1' } });
    expect(answering(state, 'gpt-5', 'openai-responses')).toEqual(['openai/gpt-5']);
  });
});

describe('wildcards, any', () => {
  const literal = fc.string({ unit: fc.constantFrom('a', 'b', '-', '/'), maxLength: 4 });
  const patterns = fc.uniqueArray(fc.tuple(literal, literal), {
    maxLength: 8,
    selector: ([prefix, suffix]) => `${prefix}*${suffix}`,
  });
  const exact = fc.uniqueArray(
    literal.filter((text) => text !== ''),
    { maxLength: 3 },
  );

  const requested = fc.tuple(literal, literal, literal).map((parts) => parts.join(''));

  test('the pattern with the longest literal wins, in any order of the file', () => {
    fc.assert(
      // A request without a model name is routed by its client, not by these patterns.
      fc.property(
        patterns,
        exact,
        requested.filter((name) => name !== ''),
        (rows, names, name) => {
          // Each entry has a model of its own, so that the answer tells which one it was.
          const models = Object.fromEntries([
            ...rows.map(([prefix, suffix], i) => [`${prefix}*${suffix}`, `demo/pattern${i}`]),
            ...names.map((text, i) => [text, `demo/exact${i}`]),
          ]);
          const expected = names.includes(name) ? `demo/exact${names.indexOf(name)}` : best(rows, name);
          const yaml = JSON.stringify({ models });
          const reversed = JSON.stringify({ models: Object.fromEntries(Object.entries(models).reverse()) });
          // Without a file that says anything the demo answers for all.
          const fallback = rows.length + names.length === 0 ? [`demo/${name}`] : undefined;
          expect(answering(stateOf({ yaml }), name)).toEqual(expected === undefined ? fallback : [expected]);
          expect(answering(stateOf({ yaml: reversed }), name)).toEqual(answering(stateOf({ yaml }), name));
        },
      ),
    );
  });

  /** Written another way: of all that fit, the most literal characters, then the longest beginning. */
  function best(rows: [string, string][], name: string): string | undefined {
    const plain = (text: string): string => text.replace(/[/-]/g, '\\$&');
    const fitting = rows
      .map(([prefix, suffix], i) => ({ i, prefix, weight: (prefix.length + suffix.length) * 100 + prefix.length, suffix }))
      .filter(({ prefix, suffix }) => new RegExp(`^${plain(prefix)}.*${plain(suffix)}$`, 's').test(name));
    const winner = fitting.sort((x, y) => y.weight - x.weight)[0];
    return winner && `demo/pattern${winner.i}`;
  }

  test('the wildcard inserts the matched text', () => {
    const word = fc.string({ unit: fc.constantFrom('a', 'b', '-', '.', ':', '$', '&'), minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(word, word, word, (prefix, rest, head) => {
        const state = stateOf({ yaml: JSON.stringify({ models: { [`p${prefix}*`]: [`demo/h${head}*`, 'demo/*'] } }) });
        expect(answering(state, `p${prefix}${rest}`)).toEqual([`demo/h${head}${rest}`, `demo/p${prefix}${rest}`]);
      }),
    );
  });
});
