import { describe, expect, test } from 'vitest';
import { readManifest, readRecording } from '../../../../test/corpus.ts';
import type { ProviderProfile } from '../../src/codec/profile.ts';
import { DEFAULT_GEMINI_PROFILE, profileFor, toolRules } from '../../src/protocols/gemini/profiles.ts';

test.each<[model: string, expected: Partial<ProviderProfile>]>([
  ['gemini-3-pro-preview', { gemini3: true, effort_values: ['low', 'high'], builtin_with_functions: true }],
  ['gemini-3.1-pro-preview', { gemini3: true, effort_values: ['low', 'high'] }],
  [
    'gemini-3-flash-preview',
    { gemini3: true, effort_values: ['minimal', 'low', 'medium', 'high'], tools_with_json_output: true },
  ],
  ['models/gemini-3.5-flash', { gemini3: true }],
  ['gemini-2.5-pro-preview-06-05', { gemini3: false, thinking_budgets: { least: 128, most: 32_768, off: false } }],
  ['gemini-2.5-flash-lite', { thinking_budgets: { least: 512, most: 24_576, off: true } }],
  ['gemini-2.5-flash', { gemini3: false, thinking_mode: 'budget', tools_with_json_output: false }],
  ['gemini-2.5-flash-preview-tts', { thinking_mode: 'none' }],
  ['gemini-2.5-flash-image', { thinking_mode: 'none' }],
  ['gemini-2.0-flash-001', { thinking_mode: 'none', gemini3: false }],
  ['gemma-3-27b-it', { thinking_mode: 'none' }],
  ['something-else', DEFAULT_GEMINI_PROFILE],
])('%s', (model, expected) => {
  expect(profileFor('google', model)).toMatchObject(expected);
});

test('nothing is known of strangers', () => {
  expect(profileFor('__proto__')).toEqual(DEFAULT_GEMINI_PROFILE);
});

test('P27 names', () => {
  const { pattern } = toolRules(DEFAULT_GEMINI_PROFILE).toolName;
  for (const name of ['f', '_f', 'a.b:c-d']) expect(pattern.test(name), name).toBe(true);
  for (const name of ['2f', '', 'a b', 'é']) expect(pattern.test(name), name).toBe(false);
});

/** What a recorded request shows that its model takes. */
describe('recordings', () => {
  const recordings = readManifest()
    .filter((row) => row.protocol === 'gemini' && row.status < 400 && row.request !== undefined)
    .map((row) => ({ ...row, body: readRecording(row.request ?? '').toString() }));

  test.each(recordings.filter(({ body }) => body.includes('"thinkingLevel"')))('a level: $file', ({ model }) => {
    expect(profileFor('google', model).gemini3).toBe(true);
  });

  test.each(recordings.filter(({ body }) => /"thinking_?[bB]udget":\s*[1-9]/.test(body)))('a budget: $file', ({ model }) => {
    expect(profileFor('google', model).thinking_mode).toBe('budget');
  });
});
