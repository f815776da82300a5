import { describe, expect, test } from 'vitest';
import { CodecError } from '../../src/canonical/notes.ts';
import type { InterfaceType } from '../../src/canonical/request.ts';
import type { Provider, Target } from '../../src/codec/protocol.ts';
import { anthropicMessagesCodec } from '../../src/protocols/anthropic-messages/codec.ts';

const { detectInterface, supports, buildUrl, buildHeaders } = anthropicMessagesCodec;

describe('which interface a path is', () => {
  const own = { 'anthropic-version': '2023-06-01' };
  const rows: [path: string, headers: Record<string, string>, type: InterfaceType][] = [
    ['/v1/messages', {}, 'CHAT'],
    ['/v1/messages?beta=true', {}, 'CHAT'],
    ['/anthropic/v1/messages', {}, 'CHAT'],
    ['//v1/messages/', {}, 'CHAT'],
    ['/v1/messages/count_tokens', {}, 'COUNT_TOKENS'],
    ['/v1/messages/count_tokens?beta=true', {}, 'COUNT_TOKENS'],
    ['/v1/messages/batches', {}, 'PASSTHROUGH'],
    ['/v1/threads/t/messages', {}, 'PASSTHROUGH'],
    ['/v1/models', own, 'MODELS'],
    ['/v1/models', { 'x-api-key': 'k' }, 'MODELS'],
    ['/v1/models', {}, 'PASSTHROUGH'],
    ['/v1/models/claude-opus-5', own, 'MODEL_INFO'],
    ['/v1/models/org/model', own, 'MODEL_INFO'],
    ['/v1/models/org%2Fmodel', own, 'MODEL_INFO'],
    ['/v1/files/f', own, 'PASSTHROUGH'],
    ['/v1/complete', own, 'PASSTHROUGH'],
    ['/', {}, 'PASSTHROUGH'],
  ];

  test.each(rows)('P123 P124 %s %j is %s', (path, headers, type) => {
    expect(detectInterface(path, headers)).toBe(type);
  });

  test('what it has', () => {
    const all: InterfaceType[] = [
      'CHAT',
      'COUNT_TOKENS',
      'MODELS',
      'MODEL_INFO',
      'EMBEDDINGS',
      'RERANK',
      'AUDIO',
      'IMAGES',
      'PASSTHROUGH',
    ];
    expect(all.filter(supports)).toEqual(['CHAT', 'COUNT_TOKENS', 'MODELS', 'MODEL_INFO']);
  });
});

const target = (base_url: string, more: Partial<Provider> = {}): Target => ({
  provider: { id: 'p', protocol: 'anthropic-messages', base_url, ...more },
  model: 'claude-opus-5',
  stream: true,
});

describe('URLs', () => {
  const rows: [base: string, type: InterfaceType, url: string][] = [
    ['https://api.anthropic.com', 'CHAT', 'https://api.anthropic.com/v1/messages'],
    ['https://api.anthropic.com/', 'COUNT_TOKENS', 'https://api.anthropic.com/v1/messages/count_tokens'],
    ['https://api.anthropic.com/v1', 'MODELS', 'https://api.anthropic.com/v1/models'],
    ['https://api.deepseek.com/anthropic', 'CHAT', 'https://api.deepseek.com/anthropic/v1/messages'],
    ['https://api.anthropic.com', 'MODEL_INFO', 'https://api.anthropic.com/v1/models/claude-opus-5'],
  ];

  test.each(rows)('%s %s', (base, type, url) => {
    expect(buildUrl(type, target(base))).toBe(url);
  });

  test('the operator may set the path', () => {
    expect(buildUrl('CHAT', target('https://a.org/x', { adapter_config: { path: '' } }))).toBe('https://a.org/x/messages');
  });

  test('other endpoints are called as the client did', () => {
    const url = buildUrl('PASSTHROUGH', target('https://a.org'), undefined, '/v1/files/f?limit=2&key=secret');
    expect(url).toBe('https://a.org/v1/files/f?limit=2');
  });

  test('P124 a model with a slash is one segment', () => {
    expect(buildUrl('MODEL_INFO', target('https://a.org'), 'org/model')).toBe('https://a.org/v1/models/org%2Fmodel');
  });

  test.each(['EMBEDDINGS', 'RERANK', 'AUDIO', 'IMAGES'] as const)('%s is not offered', (type) => {
    const run = () => buildUrl(type, target('https://a.org'));
    expect(run).toThrow(CodecError);
  });

  test.each([
    ['no URL', 'a.org', 'CHAT', ''],
    ['a way out', 'https://a.org', 'PASSTHROUGH', '/v1/../../admin'],
    ['no path', 'https://a.org', 'PASSTHROUGH', ''],
  ] as const)('%s is refused', (_name, base, type, path) => {
    expect(() => buildUrl(type, target(base), undefined, path)).toThrow(CodecError);
  });
});

describe('headers', () => {
  const provider = (more: Partial<Provider> = {}): Provider => ({ ...target('https://a.org').provider, api_key: ' k ', ...more });

  test('the key as x-api-key, and a version', () => {
    expect(buildHeaders(provider())).toEqual({
      'content-type': 'application/json',
      accept: 'application/json',
      'anthropic-version': '2023-06-01',
      'x-api-key': 'k',
    });
  });

  test('or as a bearer token', () => {
    const headers = buildHeaders(provider({ adapter_config: { auth: 'bearer' } }), true);
    expect(headers).toMatchObject({ authorization: 'Bearer k', accept: 'text/event-stream' });
    expect(headers).not.toHaveProperty('x-api-key');
  });

  test('the operator has the last word', () => {
    const config = { api_version: '2026-10-21', headers: { 'Anthropic-Beta': 'b' } };
    expect(buildHeaders(provider({ adapter_config: config }))).toMatchObject({
      'anthropic-version': '2026-10-21',
      'anthropic-beta': 'b',
    });
  });
});
