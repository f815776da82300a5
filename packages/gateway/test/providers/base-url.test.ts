import type { ProtocolId } from '@sluice/core';
import { describe, expect, test } from 'vitest';
import { completeBaseUrl, findUrlFault, isLoopback, parseHost, pointsAt } from '../../src/providers/base-url.ts';
import { findRow } from '../../src/providers/lookup.ts';

test.each([
  ['https://api.example.com', undefined],
  ['http://127.0.0.1:9999/v1/', undefined],
  ['api.example.com/v1', 'starting with http'],
  ['localhost:8080', 'starting with http'],
  ['ftp://example.com', 'starting with http'],
  ['', 'starting with http'],
  ['https://user:hunter2@example.com', 'a user or password'],
  ['https://user@example.com', 'a user or password'],
  ['https://example.com/?key=hunter2', 'a query'],
  ['https://example.com/#x', 'a query'],
  ['https://example.com/v1/chat/completions', 'remove /chat/completions'],
  ['https://example.com/v1/messages/', 'remove /messages'],
  ['https://example.com/v1beta/models', 'remove /models'],
])('%s: %s', (url, fault) => {
  if (fault === undefined) expect(findUrlFault(url)).toBeUndefined();
  else expect(findUrlFault(url)).toContain(fault);
  expect(findUrlFault(url) ?? '').not.toContain('hunter2');
});

interface Completion {
  protocol: ProtocolId;
  url: string;
  row?: string;
  api_version?: string;
  is: string;
  path?: string;
}

const COMPLETIONS: Completion[] = [
  { protocol: 'openai-chat', url: 'http://127.0.0.1:8080', is: 'http://127.0.0.1:8080/v1' },
  { protocol: 'openai-chat', url: 'http://127.0.0.1:8080/', is: 'http://127.0.0.1:8080/v1' },
  { protocol: 'openai-chat', url: 'http://x/api/paas/v4/', is: 'http://x/api/paas/v4' },
  { protocol: 'openai-chat', url: 'http://x/inference', is: 'http://x/inference' },
  { protocol: 'openai-responses', url: 'https://api.openai.com', is: 'https://api.openai.com/v1' },
  { protocol: 'anthropic-messages', url: 'https://api.anthropic.com', is: 'https://api.anthropic.com/v1' },
  { protocol: 'anthropic-messages', url: 'https://api.anthropic.com/v1', is: 'https://api.anthropic.com/v1' },
  { protocol: 'anthropic-messages', url: 'https://api.deepseek.com/anthropic', is: 'https://api.deepseek.com/anthropic/v1' },
  {
    protocol: 'gemini',
    url: 'https://generativelanguage.googleapis.com',
    is: 'https://generativelanguage.googleapis.com/v1beta',
  },
  { protocol: 'gemini', url: 'https://x/v1alpha', is: 'https://x/v1alpha' },
  { protocol: 'gemini', url: 'https://x/proxy', is: 'https://x/proxy/v1beta' },
  { protocol: 'openai-chat', row: 'perplexity', url: 'https://api.perplexity.ai', is: 'https://api.perplexity.ai', path: '' },
  { protocol: 'openai-chat', row: 'azure', url: 'https://r.openai.azure.com', is: 'https://r.openai.azure.com/openai/v1' },
  {
    protocol: 'openai-chat',
    row: 'azure',
    url: 'https://r.openai.azure.com/',
    api_version: '2024-10-21',
    is: 'https://r.openai.azure.com',
  },
];

test.each(COMPLETIONS)('$protocol $row $url is $is', ({ protocol, url, row, api_version, is, path }) => {
  const completed = completeBaseUrl(url, { protocol, api_version, row: row === undefined ? undefined : findRow(row) });
  expect(completed).toEqual({ base_url: is, ...(path !== undefined && { path }) });
});

test.each([
  ['127.0.0.1', 'http://127.0.0.1:11434'],
  ['127.0.0.1:80', 'http://127.0.0.1'],
  ['myhost:9000', 'http://myhost:9000'],
  [':9000', 'http://127.0.0.1:9000'],
  ['0.0.0.0', 'http://127.0.0.1:11434'],
  ['0.0.0.0:9000', 'http://127.0.0.1:9000'],
  ['[::]:9000', 'http://[::1]:9000'],
  ['http://myhost', 'http://myhost'],
  ['https://myhost/ollama/', 'https://myhost/ollama'],
  ['http://myhost:9000/v1', 'http://myhost:9000/v1'],
  ['not a host', 'not a host'],
])('OLLAMA_HOST=%s is %s', (host, url) => expect(parseHost(host, 11434)).toBe(url));

describe('loopback addresses', () => {
  test.each([
    '127.0.0.1',
    '127.1.2.3',
    'localhost',
    'LOCALHOST',
    'localhost.',
    '::1',
    '[::1]',
    '::ffff:127.0.0.1',
    '[::ffff:7f00:1]',
  ])('%s is loopback', (host) => expect(isLoopback(host)).toBe(true));
  test.each([
    '0.0.0.0',
    '::',
    '10.0.0.1',
    'example.com',
    '127.evil.com',
    'localhost.evil.com',
    '',
    '1127.0.0.1',
    '127.0.0.256',
    '::ffff:10.0.0.1',
  ])('%j is not loopback', (host) => expect(isLoopback(host)).toBe(false));
});

test.each([
  ['http://127.0.0.1:4141', true],
  ['http://127.0.0.1:4141/v1', true],
  ['http://localhost:4141/anthropic', true],
  ['http://[::1]:4141', true],
  ['http://0.0.0.0:4141', true],
  ['http://gate.example:4141', true],
  ['http://127.0.0.1:4142', false],
  ['http://other.example:4141', false],
  ['https://api.openai.com/v1', false],
  ['nonsense', false],
])('%s is the address of the gateway: %s', (url, isOurs) =>
  expect(pointsAt(url, { host: 'gate.example', port: 4141 })).toBe(isOurs),
);

test('port 0 matches no address', () => expect(pointsAt('http://127.0.0.1:0', { host: '127.0.0.1', port: 0 })).toBe(false));
