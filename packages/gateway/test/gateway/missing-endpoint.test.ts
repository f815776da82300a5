import { describe, expect, test } from 'vitest';
import { findMissingEndpoint } from '../../src/exchange/missing-endpoint.ts';

const BASE = 'http://127.0.0.1:8000/v1';

const find = (method: string, path: string, { isForwarded, message = 'Not Found' }: { isForwarded: boolean; message?: string }) =>
  findMissingEndpoint(
    { status: 404, headers: {}, body: { detail: message } },
    { code: 'NOT_FOUND', message, upstream: { protocol: 'openai-chat', status: 404 } },
    { provider: { id: 'mine', base_url: BASE }, method, url: `${BASE}${path}`, isForwarded },
  )?.message;

describe('a forwarded request', () => {
  test.each(['/completions', '/moderations', '/audio/transcriptions', '/images/generations'])(
    'to %s: no such endpoint',
    (path) => {
      expect(find('POST', path, { isForwarded: true })).toContain(`provider "mine" has no POST /v1${path} (404)`);
    },
  );

  test.each([
    ['GET', '/files'],
    ['GET', '/files/file-abc123'],
    ['DELETE', '/files/file-abc123'],
    ['POST', '/batches/batch_67f1/cancel'],
    ['POST', '/vector_stores/vs_1/search'],
    ['POST', '/models/imagen-4:predict'],
  ])('%s %s keeps the error of the upstream: the object may be missing', (method, path) => {
    expect(find(method, path, { isForwarded: true })).toBeUndefined();
  });
});

test('a request of the gateway names the endpoint, whatever its path', () => {
  expect(find('POST', '/models/gemini-3:generateContent', { isForwarded: false })).toContain('has no POST /v1/models/gemini-3');
});

test.each([
  'The model `gpt-9` does not exist or you do not have access to it.',
  'model "llama4" not found, try pulling it first',
  'No such File object: file-abc123',
  'model: claude-9',
])('%j is not about the endpoint', (message) => {
  expect(find('POST', '/chat/completions', { isForwarded: false, message })).toBeUndefined();
});
