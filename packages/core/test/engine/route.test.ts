import { describe, expect, test } from 'vitest';
import { routeOf } from '../../src/index.ts';

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
    const route = routeOf(url, { 'x-goog-api-key': 'k' });
    expect(route).toMatchObject({ client: { id: 'gemini' }, type, path: path ?? url });
  });
});
