import { describe, expect, test } from 'vitest';
import { findRoute } from '../../src/engine/index.ts';

describe('paths of Gemini', () => {
  test.each([
    ['/v1beta/models/a/b:streamGenerateContent?alt=sse', '/v1beta/models/a/b:streamGenerateContent?alt=sse', 'CHAT'],
    // The AI SDK leaves models/ out of a name with a slash.
    ['/v1beta/a/b:streamGenerateContent?alt=sse', '/v1beta/models/a/b:streamGenerateContent?alt=sse', 'CHAT'],
    ['/v1beta/a/b/c:generateContent', '/v1beta/models/a/b/c:generateContent', 'CHAT'],
    ['/v1alpha/a/b:countTokens', '/v1alpha/models/a/b:countTokens', 'COUNT_TOKENS'],
    ['/v1beta/a/b:embedContent', '/v1beta/models/a/b:embedContent', 'EMBEDDINGS'],
    ['/v1beta/a/b:batchEmbedContents', '/v1beta/models/a/b:batchEmbedContents', 'EMBEDDINGS'],
    ['/v1beta/tunedModels/x:generateContent', '/v1beta/tunedModels/x:generateContent', 'CHAT'],
    ['/v1/projects/p/locations/l/publishers/google/models/m:generateContent', undefined, 'CHAT'],
    // Verbs of other things stay what they are.
    ['/v1beta/batches/x:cancel', undefined, 'PASSTHROUGH'],
    ['/v1beta/files/x:download?alt=media', undefined, 'PASSTHROUGH'],
    ['/v1beta/cachedContents/x', undefined, 'PASSTHROUGH'],
  ])('%s', (url, path, type) => {
    const route = findRoute(url, { 'x-goog-api-key': 'k' });
    expect(route).toMatchObject({ client: { id: 'gemini' }, type, path: path ?? url });
  });
});

describe('prefixes of base URLs', () => {
  const CHAT = 'openai-chat';
  const RESPONSES = 'openai-responses';
  const ANTHROPIC = 'anthropic-messages';
  test.each([
    ['/openai/v1/chat/completions', CHAT, 'CHAT', '/v1/chat/completions'],
    ['/openai/v1/responses', RESPONSES, 'CHAT', '/v1/responses'],
    ['/openai/responses?api-version=preview', RESPONSES, 'CHAT', '/responses?api-version=preview'],
    ['/openai/v1/models', CHAT, 'MODELS', '/v1/models'],
    ['/openai/v1/files/f', CHAT, 'PASSTHROUGH', '/v1/files/f'],
    ['/openai/v1/responses/r/cancel', RESPONSES, 'PASSTHROUGH', '/v1/responses/r/cancel'],
    ['/openai/deployments/a/b/chat/completions', CHAT, 'CHAT', '/deployments/a/b/chat/completions'],
    ['/anthropic/v1/messages', ANTHROPIC, 'CHAT', '/v1/messages'],
    ['/anthropic/messages', ANTHROPIC, 'CHAT', '/messages'],
    ['/anthropic/v1/messages/count_tokens', ANTHROPIC, 'COUNT_TOKENS', '/v1/messages/count_tokens'],
    ['/anthropic/messages/count_tokens', ANTHROPIC, 'COUNT_TOKENS', '/messages/count_tokens'],
    ['/anthropic/v1/messages/batches', ANTHROPIC, 'PASSTHROUGH', '/v1/messages/batches'],
    ['/anthropic/messages/batches/b/results', ANTHROPIC, 'PASSTHROUGH', '/messages/batches/b/results'],
    ['/anthropic/v1/models', ANTHROPIC, 'MODELS', '/v1/models'],
    ['/anthropic/v1/models/m', ANTHROPIC, 'MODEL_INFO', '/v1/models/m'],
    ['/anthropic/v1/files', ANTHROPIC, 'PASSTHROUGH', '/v1/files'],
    ['/anthropic/v1/chat/completions', ANTHROPIC, 'PASSTHROUGH', '/v1/chat/completions'],
    ['/genai/v1beta/models/m:generateContent', 'gemini', 'CHAT', '/v1beta/models/m:generateContent'],
    ['/genai/v1beta/models', 'gemini', 'MODELS', '/v1beta/models'],
    ['/genai/v1/models', 'gemini', 'MODELS', '/v1/models'],
    ['/genai/v1beta/files', 'gemini', 'PASSTHROUGH', '/v1beta/files'],
    ['/v1/v1/messages/batches', ANTHROPIC, 'PASSTHROUGH', '/v1/messages/batches'],
    ['/v1/v1/v1/files', CHAT, 'PASSTHROUGH', '/v1/files'],
    ['/v1beta/v1beta/models', 'gemini', 'MODELS', '/v1beta/models'],
    ['/v1/v1beta/models', 'gemini', 'MODELS', '/v1beta/models'],
    ['/v1beta/v1beta/a/b:generateContent', 'gemini', 'CHAT', '/v1beta/models/a/b:generateContent'],
    ['/messages/batches', ANTHROPIC, 'PASSTHROUGH', '/messages/batches'],
    // The name of a vendor alone, or in another place, is no prefix.
    ['/openai', CHAT, 'PASSTHROUGH', '/openai'],
    ['/anthropics/v1/messages', ANTHROPIC, 'CHAT', '/anthropics/v1/messages'],
    ['/v1/files/anthropic/v1', CHAT, 'PASSTHROUGH', '/v1/files/anthropic/v1'],
  ])('%s', (url, id, type, path) => expect(findRoute(url, {})).toMatchObject({ client: { id }, type, path }));

  test('the prefix decides, whatever the headers say', () => {
    const foreign = { 'x-goog-api-key': 'k', 'anthropic-version': 'v', 'x-api-key': 'k' };
    expect(findRoute('/openai/v1/models', foreign)).toMatchObject({ client: { id: CHAT }, type: 'MODELS' });
    expect(findRoute('/anthropic/v1/models', foreign)).toMatchObject({ client: { id: ANTHROPIC }, type: 'MODELS' });
    expect(findRoute('/genai/v1/models', foreign)).toMatchObject({ client: { id: 'gemini' }, type: 'MODELS' });
  });
});

test.each(['anthropic-version', 'x-api-key', 'authorization'])(
  'a method of Gemini is unambiguous with any value of %s',
  (header) => {
    const routes = [
      ['/v1beta/models/m:generateContent', 'CHAT'],
      ['/v1beta/models/m:streamGenerateContent?alt=sse', 'CHAT'],
      ['/v1beta/models/vendor/m:8b:countTokens', 'COUNT_TOKENS'],
      ['/v1/models/m:generateContent', 'CHAT'],
      ['/v1/models/m:embedContent', 'EMBEDDINGS'],
      ['/v1beta/models', 'MODELS'],
    ];
    for (const [path = '', type] of routes)
      for (const value of ['2023-06-01', ''])
        expect(findRoute(path, { [header]: value })).toMatchObject({ client: { id: 'gemini' }, type });
    expect(findRoute('/v1/models/llama3:8b', { 'anthropic-version': 'v' })).toMatchObject({
      client: { id: 'anthropic-messages' },
      type: 'MODEL_INFO',
    });
  },
);

describe('whose endpoint a path is', () => {
  test.each([
    // A verb that is not converted is no name of an OpenAI model.
    ['/v1beta/models/imagen-4:predict', {}, 'gemini'],
    ['/v1beta/models/imagen-4:predict?key=k', {}, 'gemini'],
    ['/v1/models/imagen-4:predict?key=k', {}, 'gemini'],
    ['/v1beta/models/veo/operations/o', {}, 'gemini'],
    ['/upload/v1beta/files?key=k', {}, 'gemini'],
    ['/genai/upload/v1beta/files', {}, 'gemini'],
    ['/v1/responses/resp_1', {}, 'openai-responses'],
    ['/v1/responses/resp_1/input_items', {}, 'openai-responses'],
    ['/v1/responses/compact', {}, 'openai-responses'],
    ['/v1/conversations/c', {}, 'openai-responses'],
    ['/v1/audio/voices', {}, 'openai-chat'],
    ['/v1/messages/batches', {}, 'anthropic-messages'],
  ])('%s', (url, headers, id) => expect(findRoute(url, headers)).toMatchObject({ client: { id }, type: 'PASSTHROUGH' }));
});
