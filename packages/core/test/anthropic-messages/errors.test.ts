import Anthropic from '@anthropic-ai/sdk';
import { describe, expect, test } from 'vitest';
import { messagesContext, readWhole } from '../../../../test/sdk/anthropic.ts';
import type { CanonicalError, ErrorCode } from '../../src/canonical/notes.ts';
import { anthropicMessagesCodec } from '../../src/protocols/anthropic-messages/codec.ts';

const { error: codec } = anthropicMessagesCodec;
const decode = (status: number, body: unknown, headers = {}) => codec.decode({ status, headers, body }, messagesContext());
const encode = (error: CanonicalError) => codec.encode(error, messagesContext());
const wire = (type: string, message = 'm', more = {}) => ({
  type: 'error',
  error: { type, message, ...more },
  request_id: 'req_1',
});

describe('reading', () => {
  const rows: [status: number, body: unknown, code: ErrorCode, message?: string][] = [
    [400, wire('invalid_request_error'), 'INVALID_INPUT'],
    [400, wire('invalid_request_error', 'prompt is too long: 213462 tokens > 200000 maximum'), 'CONTEXT_LENGTH'],
    [401, wire('authentication_error'), 'AUTHENTICATION'],
    [402, wire('billing_error'), 'BILLING'],
    [403, wire('permission_error'), 'PERMISSION'],
    [404, wire('not_found_error'), 'NOT_FOUND'],
    [409, wire('invalid_request_error'), 'CONFLICT'],
    [413, wire('request_too_large'), 'PAYLOAD_TOO_LARGE'],
    [429, wire('rate_limit_error'), 'RATE_LIMIT'],
    [429, wire('rate_limit_error', 'm', { details: { error_code: 'enforced_spend_limit_reached' } }), 'BILLING'],
    [500, wire('api_error'), 'UPSTREAM_ERROR'],
    [504, wire('timeout_error'), 'TIMEOUT'],
    [529, wire('overloaded_error'), 'OVERLOADED'],
    [
      503,
      '<html><head><title>x</title></head><body><h1>Service Unavailable</h1></body></html>',
      'OVERLOADED',
      'the server returned 503 with an HTML page',
    ],
    [502, '', 'UPSTREAM_ERROR', 'the server returned 502 without an error message'],
    [403, '{"error":{"type":"permission_error","message":"no"}}', 'PERMISSION', 'no'],
    [400, { message: 'bare' }, 'INVALID_INPUT', 'bare'],
  ];

  test.each(rows)('%d %j is %s', (status, body, code, message) => {
    expect(decode(status, body)).toMatchObject({
      code,
      http_status: status,
      ...(message && { message }),
      upstream: { protocol: 'anthropic-messages', status },
    });
  });

  test('error fields from headers', () => {
    const headers = {
      'retry-after': '3',
      'request-id': 'req_h',
      'x-should-retry': 'true',
      'anthropic-ratelimit-requests-limit': '5',
    };
    expect(decode(429, { error: { type: 'rate_limit_error', message: 'm' } }, headers)).toMatchObject({
      retry_after_ms: 3000,
      request_id: 'req_h',
      details: { should_retry: 'true', rate_limits: { 'anthropic-ratelimit-requests-limit': '5' } },
    });
  });
});

describe('writing', () => {
  const rows: [code: ErrorCode, status: number, type: string][] = [
    ['INVALID_INPUT', 400, 'invalid_request_error'],
    ['CONTEXT_LENGTH', 400, 'invalid_request_error'],
    ['AUTHENTICATION', 401, 'authentication_error'],
    ['BILLING', 402, 'billing_error'],
    ['PERMISSION', 403, 'permission_error'],
    ['NOT_FOUND', 404, 'not_found_error'],
    ['UNSUPPORTED_INTERFACE', 404, 'not_found_error'],
    ['CONFLICT', 409, 'invalid_request_error'],
    ['PAYLOAD_TOO_LARGE', 413, 'request_too_large'],
    ['RATE_LIMIT', 429, 'rate_limit_error'],
    ['INTERNAL', 500, 'api_error'],
    ['UPSTREAM_ERROR', 502, 'api_error'],
    ['TIMEOUT', 504, 'timeout_error'],
    ['OVERLOADED', 529, 'overloaded_error'],
  ];

  test.each(rows)('%s is %d %s', (code, status, type) => {
    const reply = encode({ code, message: 'm' });
    expect(reply.status).toBe(status);
    expect(reply.body).toMatchObject({ type: 'error', error: { type }, request_id: null });
  });

  test('P127 an overload elsewhere is 529 here', () => {
    const error: CanonicalError = { code: 'OVERLOADED', message: 'm', http_status: 503, upstream: { protocol: 'openai-chat' } };
    expect(encode({ ...error, retry_after_ms: 1500 })).toMatchObject({ status: 529, headers: { 'retry-after': '2' } });
  });

  test('money owed elsewhere is 402 here, so that nobody tries again', () => {
    expect(encode({ code: 'BILLING', message: 'm', http_status: 429, upstream: { protocol: 'openai-chat' } }).status).toBe(402);
  });

  test('a conversation that is too long is told in the words that clients look for', () => {
    const { body } = encode({
      code: 'CONTEXT_LENGTH',
      message: 'maximum context length is 8192',
      upstream: { protocol: 'openai-chat' },
    });
    expect(body).toMatchObject({ error: { message: 'prompt is too long: maximum context length is 8192' } });
  });

  test('an error of this protocol comes out as it went in', () => {
    const body = wire('rate_limit_error', 'slow down', { details: { error_code: 'x' } });
    const headers = { 'anthropic-ratelimit-requests-limit': '5', 'request-id': 'req_1' };
    const reply = encode(decode(429, body, headers));
    expect(reply.body).toEqual(body);
    expect(reply.headers).toMatchObject(headers);
  });

  test.each([
    [401, Anthropic.AuthenticationError],
    [404, Anthropic.NotFoundError],
    [429, Anthropic.RateLimitError],
    [529, Anthropic.InternalServerError],
  ])('the SDK raises the error class of %d', async (status, kind) => {
    const code = { 401: 'AUTHENTICATION', 404: 'NOT_FOUND', 429: 'RATE_LIMIT', 529: 'OVERLOADED' }[status] as ErrorCode;
    const reply = encode({ code, message: 'no' });
    await expect(readWhole(reply.body, reply.status, reply.headers)).rejects.toBeInstanceOf(kind);
  });
});
