import { describe, expect, test } from 'vitest';
import { type Recording, readManifest, readRecording } from '../../../../test/corpus.ts';
import type { ProviderProfile } from '../../src/codec/profile.ts';
import { DEFAULT_CHAT_PROFILE, OPENAI_CHAT_PROFILES, profileFor } from '../../src/protocols/openai-chat/profiles.ts';

interface Exchange extends Recording {
  body: Record<string, unknown>;
  isAccepted: boolean;
}

/** What was asked and how it was taken. */
const exchanges: Exchange[] = readManifest()
  .filter(({ protocol, request }) => protocol === 'openai-chat' && request !== undefined)
  .map((recording) => ({
    ...recording,
    body: JSON.parse(readRecording(recording.request ?? '').toString()) as Record<string, unknown>,
    isAccepted: recording.status < 400 && !recording.features.includes('error'),
  }));

const acceptedBy = (provider: string): Exchange[] => exchanges.filter((one) => one.provider === provider && one.isAccepted);
const messagesOf = ({ body }: Exchange): Record<string, unknown>[] => (body['messages'] ?? []) as Record<string, unknown>[];
const modelOf = ({ body, model }: Exchange): string => (typeof body['model'] === 'string' ? body['model'] : model);
const isReplay = ({ reasoning, reasoning_content, reasoning_details, content }: Record<string, unknown>): boolean =>
  Boolean(reasoning ?? reasoning_content ?? reasoning_details) ||
  (Array.isArray(content) && content.some((part: { type?: string }) => part.type === 'thinking'));

/** Facts that no recording shows: the source stands with the row. */
const UNRECORDED: Record<string, (keyof ProviderProfile)[]> = {
  alibaba: ['thinking_field'],
  'zai-coder': ['thinking_field'],
  moonshot: ['reasoning_replay'],
};
const isShown = (provider: string, field: keyof ProviderProfile): boolean => !UNRECORDED[provider]?.includes(field);

describe.each(Object.keys(OPENAI_CHAT_PROFILES))('%s, held against its recordings', (provider) => {
  const profile = profileFor(provider);
  const accepted = acceptedBy(provider);

  test('the limit of tokens has a name that was accepted', () => {
    const names = new Set(
      accepted.flatMap(({ body }) => ['max_tokens', 'max_completion_tokens'].filter((name) => body[name] != null)),
    );
    if (names.size > 0 && profile.max_tokens_field) expect([...names]).toContain(profile.max_tokens_field);
  });

  test('usage is asked for only where that was accepted, and not where it comes by itself', () => {
    const asked = accepted.filter(({ body }) => body['stream_options']);
    if (asked.length > 0) expect(profile.stream_usage).toBe(true);
    if (profile.stream_usage) return;
    const streams = accepted.filter(({ stream }) => stream);
    expect(streams.length).toBeGreaterThan(0);
    expect(streams.filter(({ features }) => !features.includes('usage'))).toEqual([]);
  });

  test('reasoning stands where answers have it', () => {
    const answers = readManifest().filter((one) => one.protocol === 'openai-chat' && one.provider === provider);
    const counts = (['reasoning_content', 'reasoning'] as const).map((field) => ({
      field,
      count: answers.filter(({ features }) => features.includes(`reasoning:${field}`)).length,
    }));
    const [most] = counts.toSorted((a, b) => b.count - a.count);
    if (most && most.count > 0) expect(profile.reasoning_field).toBe(most.field);
    if (profile.reasoning_field === 'parts')
      expect(answers.some(({ features }) => features.includes('content_parts'))).toBe(true);
  });

  test('reasoning of other clients goes back only where that was accepted, and is refused nowhere that it was', () => {
    const replays = accepted.flatMap(messagesOf).filter((message) => message['role'] === 'assistant' && isReplay(message));
    const { reasoning_replay: when } = profile;
    if ((when === 'tool_turns' || when === 'always') && isShown(provider, 'reasoning_replay')) expect(replays).not.toEqual([]);
    if (when === 'never' && provider !== 'openai') expect(replays).toEqual([]);
    if (when === 'always') expect(replays.some((message) => !message['tool_calls'])).toBe(true);
  });

  test('thinking is asked for in words that were accepted', () => {
    const { thinking_field: field } = profile;
    if (field && isShown(provider, 'thinking_field')) expect(accepted.some(({ body }) => body[field] != null)).toBe(true);
  });

  test('a schema is not kept from a provider that takes it', () => {
    const taken = accepted.some(({ body }) => (body['response_format'] as { type?: string } | undefined)?.type === 'json_schema');
    if (taken) expect(profile.json_schema).toBe(true);
  });

  test('ids of calls that were accepted stay as they are', () => {
    const ids = accepted
      .flatMap(messagesOf)
      .flatMap((message) => ((message['tool_calls'] ?? []) as { id?: string }[]).map(({ id }) => id ?? ''));
    // A recorder has replaced some ids, and one provider takes empty ones.
    for (const id of ids.filter((text) => text !== '' && !text.includes('REDACTED') && !/^call_R/.test(text))) {
      expect(id).toMatch(profile.tool_id.pattern);
      expect(id.length).toBeLessThanOrEqual(profile.tool_id.max);
    }
  });
});

describe('models, held against all recordings', () => {
  const rows = exchanges.filter(({ provider }) => Object.hasOwn(OPENAI_CHAT_PROFILES, provider));
  test('there is something to hold them against', () => expect(rows.length).toBeGreaterThan(150));

  test.each(rows.filter(({ body }) => body['reasoning_effort'] != null))('effort of $file', (row) => {
    const { effort_values: values } = profileFor(row.provider, modelOf(row));
    if (!row.isAccepted && row.status === 400) expect(values).not.toContain(row.body['reasoning_effort']);
    if (row.isAccepted && values) expect(values).toContain(row.body['reasoning_effort']);
  });

  test('sampling that was accepted is not kept back; 1 is what reasoning models do anyway', () => {
    const sampled = rows.filter(({ body, isAccepted }) => isAccepted && body['temperature'] != null && body['temperature'] !== 1);
    expect(sampled.length).toBeGreaterThan(30);
    expect(sampled.filter((row) => !profileFor(row.provider, modelOf(row)).supports_sampling).map(({ file }) => file)).toEqual(
      [],
    );
  });

  test('P66 OpenAI: the name of the limit is the one each model took', () => {
    const limited = rows.filter(
      ({ provider, body, isAccepted }) => provider === 'openai' && isAccepted && body['max_completion_tokens'] != null,
    );
    expect(limited.map((row) => profileFor('openai', modelOf(row)).max_tokens_field)).not.toContain('max_tokens');
    const refused = rows.find(({ file }) => file === 'openai-chat/openai-2b5802dc.json');
    expect(refused?.body['max_tokens']).toBeDefined();
    expect(refused && profileFor('openai', modelOf(refused)).max_tokens_field).toBe('max_completion_tokens');
  });

  test('P16 OpenAI: o1-mini refused `system`, gpt-5-nano took `developer`', () => {
    for (const name of ['openai-chat/openai-12265766.json', 'openai-chat/openai-790b35c1.sse']) {
      const row = rows.find(({ file }) => file === name);
      expect(row && profileFor('openai', modelOf(row)).system_role, name).toBe('developer');
    }
  });

  test('P74 OpenAI: cache breakpoints where they were taken', () => {
    const marked = rows.filter(({ body, isAccepted }) => isAccepted && JSON.stringify(body).includes('prompt_cache_breakpoint'));
    expect(marked.length).toBeGreaterThan(0);
    for (const row of marked) expect(profileFor(row.provider, modelOf(row)).cache_breakpoints, row.file).toBe(true);
  });

  test('web_search_options where they were taken', () => {
    const searched = rows.filter(({ body, isAccepted }) => isAccepted && body['web_search_options']);
    expect(searched.length).toBeGreaterThan(0);
    for (const row of searched) expect(profileFor(row.provider, modelOf(row)).web_search_options, row.file).toBe(true);
  });
});

const ALL = ['none', 'low', 'medium', 'high', 'xhigh'];
const OLD = ['minimal', 'low', 'medium', 'high'];
const MODELS: [provider: string, model: string, known: Partial<ProviderProfile>][] = [
  [
    'openai',
    'gpt-4o',
    {
      max_tokens_field: 'max_completion_tokens',
      system_role: 'system',
      supports_sampling: true,
      supports_stop: true,
      custom_tools: false,
    },
  ],
  ['openai', 'gpt-4.1-mini', { system_role: 'system', supports_sampling: true }],
  ['openai', 'o1', { system_role: 'developer', effort_values: ['low', 'medium', 'high'], supports_sampling: false }],
  ['openai', 'o1-mini', { effort_values: [] }],
  ['openai', 'o3', { supports_stop: false, supports_sampling: false }],
  ['openai', 'o4-mini-2025-04-16', { supports_stop: false, max_tokens_field: 'max_completion_tokens' }],
  [
    'openai',
    'gpt-5',
    { system_role: 'developer', supports_sampling: false, supports_stop: false, effort_values: OLD, custom_tools: true },
  ],
  ['openai', 'gpt-5-mini-2025-08-07', { effort_values: OLD, system_role: 'developer' }],
  ['openai', 'ft:gpt-5-mini:org::id', { effort_values: OLD }],
  ['openai', 'gpt-5-chat-latest', { system_role: 'system', supports_sampling: true, custom_tools: false }],
  ['openai', 'gpt-5.1', { effort_values: ['none', 'low', 'medium', 'high'] }],
  ['openai', 'gpt-5.1-chat-latest', { supports_sampling: false, reasons_by_default: false }],
  ['openai', 'gpt-5.4-mini', { reasons_by_default: false }],
  ['openai', 'gpt-5.2', { effort_values: ALL }],
  ['openai', 'gpt-5.6-sol', { effort_values: ALL, cache_breakpoints: true }],
  ['openai', 'gpt-5.10', { effort_values: ALL, cache_breakpoints: true }],
  ['openai', 'gpt-6', { effort_values: ['low', 'medium', 'high', 'xhigh', 'max'], cache_breakpoints: true }],
  ['openai', 'gpt-6-sol', { effort_values: [...ALL, 'max'] }],
  ['openai', 'gpt-oss-120b', { system_role: 'system', supports_sampling: true }],
  ['openai', 'gpt-4o-search-preview', { web_search_options: true }],
  ['azure', 'o4-mini', { system_role: 'developer', official: false }],
  ['azure', 'my-deployment', { system_role: 'system' }],
  ['github-copilot', 'gpt-4o', { reasoning_replay: 'as_sent' }],
  ['github-copilot', 'gpt-5-mini', { max_tokens_field: 'max_completion_tokens' }],
  ['openrouter', 'openai/gpt-5', { system_role: 'system', supports_sampling: true }],
  ['xai', 'grok-code-fast-1', { effort_values: [], reasoning_additive: true }],
  ['vercel-gateway', 'google/gemini-3-pro-preview', { reasoning_additive: true }],
  ['vercel-gateway', 'openai/gpt-5', { reasoning_additive: false }],
  ['moonshot', 'kimi-k2.6', { supports_sampling: false, reasoning_replay: 'tool_turns' }],
  ['moonshot', 'moonshot-v1-8k', { supports_sampling: true }],
  // Families whose tool turns go back with their reasoning, wherever no refusal is recorded (P84).
  ['mine', 'moonshotai/Kimi-K2-Thinking', { reasoning_replay: 'tool_turns' }],
  ['mine', 'kimi-k2.5', { reasoning_replay: 'tool_turns' }],
  ['mine', 'deepseek-ai/DeepSeek-V3.2', { reasoning_replay: 'tool_turns' }],
  ['together', 'zai-org/GLM-4.6', { reasoning_replay: 'tool_turns' }],
  ['fireworks', 'minimax-m2', { reasoning_replay: 'tool_turns' }],
  ['vllm', 'Qwen/Qwen3-32B', { reasoning_replay: 'tool_turns' }],
  ['groq', 'qwen/qwen3-32b', { reasoning_replay: 'never' }],
  ['mine', 'llama-3.3-70b', { reasoning_replay: 'as_sent' }],
  ['mine', 'gpt-5', { reasoning_replay: 'as_sent' }],
  ['perplexity', 'sonar', { strict_alternation: true, stream_usage: false }],
  ['deepseek', 'deepseek-v4-flash', { json_schema: false, reasoning_replay: 'tool_turns' }],
];

describe('profileFor', () => {
  test.each(MODELS)('%s %s', (provider, model, known) => expect(profileFor(provider, model)).toMatchObject(known));

  test.each(['my-own-server', '', '__proto__', 'constructor'])('an unknown provider gets the default: %s', (provider) => {
    expect(profileFor(provider, 'gpt-5')).toEqual(DEFAULT_CHAT_PROFILE);
  });

  test('what it gives is kept for everybody, and nobody can change it', () => {
    expect(profileFor('openai')).toBe(profileFor('openai'));
    expect(() => Object.assign(profileFor('openai'), { max_stop: 0 })).toThrow(TypeError);
    expect(profileFor('openai').max_stop).toBe(4);
    for (let i = 0; i < 1000; i++) profileFor('openai', `o${i}`);
    expect(profileFor('openai').max_stop).toBe(4);
  });
});

test('names and ids of chat have the limits of the API', () => {
  const { tool_name: name, tool_id: id } = DEFAULT_CHAT_PROFILE;
  expect([name.max, id.max]).toEqual([64, 40]);
  expect(['get_weather', 'a-b', 'a.b', 'a b', ''].map((text) => name.pattern.test(text))).toEqual([
    true,
    true,
    false,
    false,
    false,
  ]);
  expect(['functions.Bash:0', 'call_1', 'a b', ''].map((text) => id.pattern.test(text))).toEqual([true, true, false, false]);
});
