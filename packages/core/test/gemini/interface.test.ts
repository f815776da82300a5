import { describe, expect, test } from 'vitest';
import type { InterfaceType } from '../../src/canonical/request.ts';
import type { Provider } from '../../src/codec/protocol.ts';
import { buildHeaders, buildUrl, detectInterface, readKey, readModel, supports } from '../../src/protocols/gemini/endpoints.ts';
import { paramOf } from './param-of.ts';

const GOOGLE = { 'x-goog-api-key': 'k' };

test.each<[path: string, type: InterfaceType, headers?: Record<string, string>]>([
  ['/v1beta/models/gemini-2.5-pro:generateContent', 'CHAT'],
  ['/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse', 'CHAT'],
  ['/v1/models/openai/gpt-5:streamGenerateContent', 'CHAT'],
  ['/v1alpha/models/m:countTokens', 'COUNT_TOKENS'],
  ['/v1beta/models/m:embedContent', 'EMBEDDINGS'],
  ['/v1beta/models/m:batchEmbedContents', 'EMBEDDINGS'],
  ['/v1beta/tunedModels/t:generateContent', 'CHAT'],
  ['/v1/projects/p/locations/l/publishers/google/models/m:streamGenerateContent', 'CHAT'],
  ['/v1beta1/projects/p/locations/l/endpoints/1:generateContent', 'CHAT'],
  ['//v1beta//models/m:generateContent', 'CHAT'],
  ['/v1beta/models', 'MODELS'],
  ['/v1beta/models?pageSize=2', 'MODELS'],
  ['/v1beta/models/m', 'MODEL_INFO'],
  ['/v1beta/models/org/m', 'MODEL_INFO'],
  ['/v1/models', 'PASSTHROUGH'],
  ['/v1/models', 'MODELS', GOOGLE],
  ['/v1/models?key=k', 'MODELS'],
  ['/v1/models/m', 'MODEL_INFO', GOOGLE],
  ['/v1beta/models/m:predict', 'PASSTHROUGH'],
  ['/v1beta/files', 'PASSTHROUGH'],
  ['/v1beta/cachedContents', 'PASSTHROUGH'],
  ['/v1beta/openai/chat/completions', 'PASSTHROUGH'],
  ['/v1/chat/completions', 'PASSTHROUGH'],
  ['/', 'PASSTHROUGH'],
  ['', 'PASSTHROUGH'],
])('P123 P124 %s is %s', (path, type, headers) => {
  expect(detectInterface(path, headers)).toBe(type);
});

test.each([
  ['/v1beta/models/a%2Fb:generateContent', 'a/b'],
  ['/v1beta/models/a/b', 'a/b'],
  ['/v1beta/models/%E0%A4%A:generateContent', '%E0%A4%A'],
  ['/v1beta/tunedModels/t', 'tunedModels/t'],
  ['/v1/chat/completions', undefined],
])('the model of %s', (path, model) => {
  expect(readModel(path)).toBe(model);
});

test.each([
  ['/v1beta/models', { 'x-goog-api-key': 'a' }, 'a'],
  ['/v1beta/models?key=b', {}, 'b'],
  ['/v1beta/models', { authorization: 'Bearer c' }, 'c'],
  ['/v1beta/models', {}, undefined],
])('the key of %s %j', (path, headers, key) => {
  expect(readKey(path, headers as Record<string, string>)).toBe(key);
});

const provider = (over: Partial<Provider> = {}): Provider => ({
  id: 'google',
  protocol: 'gemini',
  base_url: 'https://g',
  ...over,
});
const VERTEX = 'https://v/v1/projects/p/locations/l/publishers/google';

describe('buildUrl', () => {
  test.each<[type: InterfaceType, base: string, model: string, stream: boolean, url: string, native?: string]>([
    ['CHAT', 'https://g', 'm', false, 'https://g/v1beta/models/m:generateContent'],
    ['CHAT', 'https://g/', 'm', true, 'https://g/v1beta/models/m:streamGenerateContent?alt=sse'],
    ['CHAT', 'https://g/v1alpha/', 'models/m', false, 'https://g/v1alpha/models/m:generateContent'],
    ['CHAT', 'https://g', 'tunedModels/t', false, 'https://g/v1beta/tunedModels/t:generateContent'],
    ['CHAT', 'https://g', 'org/m', false, 'https://g/v1beta/models/org/m:generateContent'],
    ['CHAT', VERTEX, 'm', true, `${VERTEX}/models/m:streamGenerateContent?alt=sse`],
    ['COUNT_TOKENS', 'https://g', 'm', false, 'https://g/v1beta/models/m:countTokens'],
    ['EMBEDDINGS', 'https://g', 'm', false, 'https://g/v1beta/models/m:batchEmbedContents'],
    ['EMBEDDINGS', 'https://g', 'm', false, 'https://g/v1beta/models/m:embedContent', '/v1beta/models/x:embedContent'],
    ['MODELS', 'https://g', 'm', false, 'https://g/v1beta/models?pageSize=2', '/v1beta/models?pageSize=2&key=secret'],
    ['MODEL_INFO', 'https://g', 'm', false, 'https://g/v1beta/models/m'],
    ['PASSTHROUGH', 'https://g', 'm', false, 'https://g/v1beta/files/f?x=1', '/v1beta/files/f?x=1&key=secret'],
  ])('%s at %s for %s', (type, base_url, model, stream, url, native) => {
    expect(buildUrl(type, { provider: provider({ base_url }), model, stream }, undefined, native)).toBe(url);
  });

  test.each(['', '..', 'a/../../b', '.', 'a//b', '\ud800'])('the model %j leads nowhere else', (model) => {
    expect(paramOf(() => buildUrl('MODEL_INFO', { provider: provider(), model, stream: false }))).toBe('model');
  });

  test('no rerank, no bare passthrough, no odd base', () => {
    const target = { provider: provider(), model: 'm', stream: false };
    expect(paramOf(() => buildUrl('RERANK', target))).toBe('UNSUPPORTED_INTERFACE');
    expect(paramOf(() => buildUrl('PASSTHROUGH', target))).toBe('path');
    expect(paramOf(() => buildUrl('CHAT', { ...target, provider: provider({ base_url: 'file:///x' }) }))).toBe(
      'provider.base_url',
    );
    expect(supports('RERANK')).toBe(false);
    expect(supports('COUNT_TOKENS')).toBe(true);
  });
});

test.each([
  [{ api_key: ' k ' }, { 'x-goog-api-key': 'k' }],
  [{ api_key: 'k', adapter_config: { auth: 'bearer' as const } }, { authorization: 'Bearer k' }],
  [{ adapter_config: { headers: { 'X-Goog-User-Project': 'p' } } }, { 'x-goog-user-project': 'p' }],
  [{}, {}],
])('headers for %j', (over, headers) => {
  expect(buildHeaders(provider(over), true)).toEqual({
    'content-type': 'application/json',
    accept: 'text/event-stream',
    ...headers,
  });
});
