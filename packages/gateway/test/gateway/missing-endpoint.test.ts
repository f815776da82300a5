import { expect, test } from 'vitest';
import { findMissingEndpoint } from '../../src/exchange/missing-endpoint.ts';

const BASE = 'http://127.0.0.1:8000/v1';

const find = (status: number, message: string, body: unknown = { error: { message } }) =>
  findMissingEndpoint(
    { status, headers: {}, body },
    { code: 'NOT_FOUND', message, upstream: { protocol: 'openai-chat', status } },
    { provider: { id: 'mine', base_url: BASE }, method: 'POST', url: `${BASE}/chat/completions` },
  )?.message;

test.each([
  [404, 'Not Found'],
  [404, '404 page not found'],
  [404, 'Invalid URL (POST /v1/chat/completions)'],
  [405, 'Method Not Allowed'],
])('%i %j is about the endpoint', (status, message) => {
  expect(find(status, message)).toMatch(/^provider "mine" has no POST \/v1\/chat\/completions \(40[45]\): check its base_url/);
});

test.each(['<html>Not here</html>', ''])('a page is about the endpoint: %j', (body) => {
  expect(find(404, 'the server reported an error', body)).toContain('has no POST');
  expect(find(405, 'the server reported an error', body)).toContain('has no POST');
});

test.each([
  [404, 'The model `gpt-9` does not exist or you do not have access to it.'],
  [404, 'model "llama4" not found, try pulling it first'],
  [404, 'No such File object: file-abc123'],
  [404, 'model: claude-9'],
  [405, 'model does not support streaming'],
  [400, 'Not Found'],
])('%i %j is not about the endpoint', (status, message) => {
  expect(find(status, message)).toBeUndefined();
});
