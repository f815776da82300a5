import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { convertRequest } from '@sluice/core';
import { CODECS } from '@sluice/core/engine';
import { OPENAI_CHAT_PROFILES, openaiChatCodec } from '@sluice/core/openai-chat/codec';
import { describe, expect, test } from 'vitest';
import { findProfileId, findRow, isOwnAddress, listVendorRows, PROVIDER_IDS } from '../../src/providers/lookup.ts';
import type { ProviderRow } from '../../src/providers/row.ts';
import { PROVIDERS } from '../../src/providers/table.ts';

const ROWS: [string, ProviderRow][] = Object.entries(PROVIDERS);
const docs = readFileSync(fileURLToPath(new URL('../../../../docs/config.md', import.meta.url)), 'utf8');

describe.each(ROWS)('%s', (id, row) => {
  test('has a complete https or local base URL', () => {
    if (row.base_url === undefined) return expect(row.base_env).toBeDefined();
    const url = new URL(row.base_url);
    expect(url.protocol).toBe(row.local ? 'http:' : 'https:');
    expect(row.base_url).not.toMatch(/\/$/);
    // A bare host is one whose endpoints stand directly below it.
    expect(url.pathname === '/').toBe(row.root === '');
    if (row.protocol === 'anthropic-messages') expect(url.pathname).toMatch(/\/v1$/);
    expect(row.local).toBe(url.hostname === '127.0.0.1' ? true : undefined);
  });

  test('can be enabled by the environment', () => {
    const variables = [...row.key_env, ...(row.token_env ?? []), ...(row.base_env ?? [])];
    for (const name of variables) expect(name).toMatch(/^[A-Z][A-Z0-9_]+$/);
    expect(row.local ? row.base_env : row.key_env).not.toHaveLength(0);
  });

  test('shares the key with the other rows of its vendor', () => {
    expect(findRow(findProfileId(id))?.key_env).toEqual(row.key_env);
    expect(listVendorRows(id)).toContain(id);
    expect(id.startsWith(findProfileId(id))).toBe(true);
  });

  test('is in the documentation', () => {
    expect(docs).toContain(`| \`${id}\` |`);
    for (const name of [...row.key_env, ...(row.token_env ?? []), ...(row.base_env ?? [])]) expect(docs).toContain(name);
  });
});

/** Core knows nothing of these. */
const WITHOUT_PROFILE = new Set(['github-models']);

test.each(ROWS.filter(([id, { protocol }]) => protocol === 'openai-chat' && !WITHOUT_PROFILE.has(id)))(
  '%s has the same id in the core',
  (id) => expect(Object.keys(OPENAI_CHAT_PROFILES)).toContain(findProfileId(id)),
);

const MODELS = ['', 'gpt-5.6', 'o3', 'gpt-4o', 'claude-opus-5', 'gemini-3-pro', 'grok-4', 'anthropic/claude-opus-5'];

test.each(ROWS)('the library knows %s by the row of its vendor', (id, { protocol }) => {
  const { profileFor } = CODECS[protocol];
  for (const model of MODELS) expect(profileFor(id, model)).toEqual(profileFor(findProfileId(id), model));
});

test.each([
  ['openai-responses', 'openai-responses', { official: true }],
  ['azure-responses', 'openai-responses', { official: true }],
  ['xai-responses', 'openai-responses', { encrypted_reasoning: true }],
] as const)('%s has its own profile in the library', (id, protocol, profile) => {
  expect(CODECS[protocol].profileFor(id)).toMatchObject(profile);
  expect(CODECS[protocol].profileFor('somebody')).not.toMatchObject(profile);
});

test('convertRequest accepts the id of the second protocol of a vendor', () => {
  const body = { model: 'gpt-5.6', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }], temperature: 0.5 };
  const sent = (provider: string): unknown =>
    convertRequest(body, { from: 'openai-chat', to: 'openai-responses', provider }).body;
  expect(sent('openai-responses')).toEqual(sent('openai'));
});

test('only the vendors of the four protocols are official', () => {
  const official = ROWS.filter(([, row]) => row.official);
  expect(official.map(([id]) => id)).toEqual(['openai', 'openai-responses', 'anthropic', 'google']);
  expect(new Set(official.map(([, { protocol }]) => protocol)).size).toBe(4);
});

test.each([
  ['openai', 'https://api.openai.com/v1/chat/completions'],
  ['groq', 'https://api.groq.com/openai/v1/chat/completions'],
  ['perplexity', 'https://api.perplexity.ai/chat/completions'],
  ['zai', 'https://api.z.ai/api/paas/v4/chat/completions'],
  ['deepinfra', 'https://api.deepinfra.com/v1/openai/chat/completions'],
  ['github-models', 'https://models.github.ai/inference/chat/completions'],
  ['ollama', 'http://127.0.0.1:11434/v1/chat/completions'],
])('chat of %s is at %s', (id, url) => {
  const row = findRow(id);
  const provider = {
    id,
    protocol: 'openai-chat' as const,
    base_url: row?.base_url ?? '',
    ...(row?.root === '' && { adapter_config: { path: '' } }),
  };
  expect(openaiChatCodec.buildUrl('CHAT', { provider, model: 'm', stream: false })).toBe(url);
});

test.each(['', 'constructor', '__proto__', 'toString', 'opneai'])('%j is not a row', (id) => expect(findRow(id)).toBeUndefined());

test('ids are one word', () => {
  for (const id of PROVIDER_IDS) expect(id).toMatch(/^[a-z][a-z0-9-]*$/);
});

test.each([
  ['openai', 'https://api.openai.com', true],
  ['openai', 'https://api.openai.com/v1', true],
  ['openai', 'http://api.openai.com/v1', false],
  ['openai', 'https://api.openai.com:8443/v1', false],
  ['openai', 'https://api.openai.com.evil.example/v1', false],
  ['azure', 'https://res.openai.azure.com', true],
  ['azure', 'https://res.services.ai.azure.com/models', true],
  ['azure', 'http://res.openai.azure.com', false],
  ['azure', 'https://openai.azure.com.evil.example', false],
  ['azure', 'https://evilazure.com', false],
])('the key of %s may go to %s: %s', (id, address, isOwn) => {
  const row = findRow(id);
  expect(row && isOwnAddress(row, address)).toBe(isOwn);
});
