import { describe, expect, test } from 'vitest';
import { readManifest, readRecording } from '../../../../test/corpus.ts';
import { isObject, type JsonObject } from '../../src/json/json.ts';
import {
  ANTHROPIC_PROFILES,
  DEFAULT_ANTHROPIC_PROFILE,
  hasRecordedProfile,
  profileFor,
} from '../../src/protocols/anthropic-messages/profiles.ts';

describe('the generations of Claude', () => {
  const rows: [
    model: string,
    thinking: string,
    sampling: boolean,
    prefill: boolean,
    middle: boolean,
    most: number,
    schemas: boolean,
  ][] = [
    ['claude-3-haiku-20240307', 'none', true, true, false, 4096, false],
    ['claude-3-5-sonnet-20241022', 'none', true, true, false, 8192, false],
    ['claude-3-7-sonnet-latest', 'budget', true, true, false, 64_000, false],
    ['claude-opus-4-20250514', 'budget', true, true, false, 32_000, false],
    ['claude-opus-4-0', 'budget', true, true, false, 32_000, false],
    ['claude-sonnet-4-20250514', 'budget', true, true, false, 64_000, false],
    ['claude-opus-4-1-20250805', 'budget', true, true, false, 32_000, true],
    ['claude-sonnet-4-5', 'budget', true, true, false, 64_000, true],
    ['claude-haiku-4-5-20251001', 'budget', true, true, false, 64_000, true],
    ['claude-opus-4-5', 'budget', true, true, false, 64_000, true],
    ['claude-sonnet-4-6', 'adaptive', true, false, false, 128_000, true],
    ['claude-opus-4-6', 'adaptive', true, false, false, 128_000, true],
    ['claude-opus-4-7', 'adaptive', false, false, false, 128_000, true],
    ['claude-opus-4-8', 'adaptive', false, false, true, 128_000, true],
    ['claude-opus-5', 'adaptive', false, false, true, 128_000, true],
    ['claude-sonnet-5', 'adaptive', false, false, true, 128_000, true],
    ['claude-haiku-5-5', 'adaptive', false, false, true, 128_000, true],
    ['claude-fable-5', 'adaptive', false, false, true, 128_000, true],
    ['claude-mythos-preview', 'adaptive', false, false, true, 128_000, true],
  ];

  test.each(rows)('%s', (model, thinking_mode, sampling, prefill, mid_system, max_output_tokens, structured_outputs) => {
    expect(profileFor('anthropic', model)).toMatchObject({
      thinking_mode,
      rejects_sampling: !sampling,
      prefill,
      mid_system,
      max_output_tokens,
      structured_outputs,
    });
  });

  test.each([
    ['openrouter', 'anthropic/claude-opus-4.5'],
    ['bedrock', 'us.anthropic.claude-opus-4-5-20251101-v1:0'],
    ['google-vertex', 'claude-opus-4-5@20251101'],
    ['anthropic', 'Claude-Opus-4-5'],
  ])('%s calls it %s', (provider, model) => {
    const { tool_name: _, ...found } = profileFor(provider, model);
    const { tool_name: _name, ...wanted } = profileFor('anthropic', 'claude-opus-4-5');
    expect(found).toEqual(wanted);
  });

  test('P69 both ways of sampling are refused together from 4.1 on', () => {
    expect(profileFor('anthropic', 'claude-opus-4-1').temperature_xor_top_p).toBe(true);
    expect(profileFor('anthropic', 'claude-sonnet-4-20250514').temperature_xor_top_p).toBe(false);
  });
});

test('an unknown model of Anthropic itself is taken for one of the latest', () => {
  for (const provider of ['anthropic', 'bedrock', 'google-vertex', 'azure'])
    expect(profileFor(provider, 'something-new')).toMatchObject({ thinking_mode: 'adaptive', rejects_sampling: true });
});

describe('facts about providers and models', () => {
  test.each(['', '__proto__', 'glm-4.6', 'kimi-k2', 'MiniMax-M2', 'claude-proxy', 'glm-for-claude-code', 'opus'])(
    'there are none about %j at a provider without a row',
    (model) => {
      expect(hasRecordedProfile('mine', model)).toBe(false);
      expect(profileFor('mine', model)).toEqual(DEFAULT_ANTHROPIC_PROFILE);
      expect(profileFor('__proto__', model)).toEqual(DEFAULT_ANTHROPIC_PROFILE);
    },
  );

  test.each(['claude-3-haiku-20240307', 'anthropic/claude-opus-4.5', 'us.anthropic.claude-sonnet-latest', 'claude-next-5'])(
    'there are some about %s anywhere',
    (model) => {
      expect(hasRecordedProfile('mine', model)).toBe(true);
      expect(profileFor('mine', model)).toEqual(profileFor('anthropic', model));
    },
  );

  test('models of others at OpenRouter are not taken for Claude', () =>
    expect(profileFor('openrouter', 'z-ai/glm-4.6')).toEqual(DEFAULT_ANTHROPIC_PROFILE));
});

test('compatible servers take the plain core', () => {
  expect(profileFor('deepseek', 'deepseek-chat')).toMatchObject({
    rejects_sampling: false,
    structured_outputs: false,
    thinking_mode: 'budget',
  });
});

test('and their models are their own, whatever they are called', () => {
  expect(profileFor('deepseek', 'claude-opus-5')).toEqual(profileFor('deepseek', 'deepseek-chat'));
});

test('names of tools are shorter on Bedrock', () => {
  expect(profileFor('bedrock', 'claude-opus-5').tool_name.max).toBe(64);
  expect(profileFor('anthropic', 'claude-opus-5').tool_name.max).toBe(128);
});

/** The recordings that were accepted, held against what the profile of their model says. */
describe('recorded', () => {
  const rows = readManifest().flatMap(({ file, provider, model, protocol, status, request }) =>
    protocol === 'anthropic-messages' && status === 200 && request !== undefined ? [{ file, provider, model, request }] : [],
  );

  test.each(rows)('$file', ({ provider, model, request }) => {
    const body = JSON.parse(readRecording(request).toString()) as JsonObject;
    const profile = profileFor(provider, model);
    const thinking = isObject(body['thinking']) ? body['thinking']['type'] : undefined;
    if (thinking === 'enabled') expect(profile.thinking_mode === 'budget' || /4-6/.test(model)).toBe(true);
    if (thinking === 'adaptive') expect(profile.thinking_mode).toBe('adaptive');
    if (body['temperature'] !== undefined) expect(profile.rejects_sampling).toBe(false);
    const messages = body['messages'] as JsonObject[];
    if (messages.some(({ role }) => role === 'system')) expect(profile.mid_system).toBe(true);
    if (messages.at(-1)?.['role'] === 'assistant' && typeof messages.at(-1)?.['content'] === 'string')
      expect(profile.prefill).toBe(true);
    expect(Number(body['max_tokens'])).toBeLessThanOrEqual(profile.max_output_tokens);
  });

  test('every provider that was recorded has a row', () => {
    const unknown = rows.map(({ provider }) => provider).filter((provider) => !Object.hasOwn(ANTHROPIC_PROFILES, provider));
    expect([...new Set(unknown)]).toEqual(['pydantic-gateway']);
  });
});
