import { describe, expect, test } from 'vitest';
import { readManifest, readRecording } from '../../../../test/corpus.ts';
import { chatContext, type Json, SDKS } from '../../../../test/sdk/chat.ts';
import type { CanonicalError, ErrorCode } from '../../src/canonical/notes.ts';
import { decodeErrorReply, encodeError } from '../../src/protocols/openai-chat/outcome.ts';

const decode = (status: number, body: unknown, headers: Record<string, string> = {}): CanonicalError =>
  decodeErrorReply({ status, headers, body }, chatContext());

const SHAPES: { name: string; status: number; body: unknown; want: object }[] = [
  {
    name: 'the official object',
    status: 429,
    body: { error: { message: 'm', type: 'tokens', param: null, code: 'rate_limit_exceeded' } },
    want: {
      code: 'RATE_LIMIT',
      message: 'm',
      http_status: 429,
      param: null,
      upstream: { type: 'tokens', code: 'rate_limit_exceeded', status: 429 },
    },
  },
  {
    name: 'a text in error',
    status: 404,
    body: { error: 'no such model', code: 'Some requested entity was not found' },
    want: { code: 'NOT_FOUND', message: 'no such model' },
  },
  {
    name: '{message}',
    status: 400,
    body: { object: 'error', message: 'm', type: 'invalid_model', code: '1500' },
    want: { code: 'INVALID_INPUT', message: 'm' },
  },
  { name: '{detail}', status: 422, body: { detail: 'm' }, want: { code: 'INVALID_INPUT', message: 'm' } },
  {
    name: '{detail: […]}',
    status: 422,
    body: { detail: [{ msg: 'm' }] },
    want: { code: 'INVALID_INPUT', message: '[{"msg":"m"}]' },
  },
  {
    name: '[{error}]',
    status: 400,
    body: [{ error: { code: 400, message: 'm', status: 'INVALID_ARGUMENT' } }],
    want: { code: 'INVALID_INPUT', message: 'm' },
  },
  {
    name: 'a text',
    status: 500,
    body: 'upstream connect error',
    want: { code: 'UPSTREAM_ERROR', message: 'upstream connect error' },
  },
  { name: 'JSON in a text', status: 401, body: '{"error":{"message":"m"}}', want: { code: 'AUTHENTICATION', message: 'm' } },
  {
    name: 'HTML',
    status: 503,
    body: `<!DOCTYPE html><html><head><style>a{}</style><title>t</title></head><body><script>if (a<b) {}</script><h1>Busy</h1>\n ${'x'.repeat(600)}</body></html>`,
    want: { code: 'OVERLOADED', message: 'the server returned 503 with an HTML page' },
  },
  {
    name: 'nothing',
    status: 504,
    body: undefined,
    want: { code: 'TIMEOUT', message: 'the server returned 504 without an error message' },
  },
  { name: 'an empty text', status: 502, body: '', want: { code: 'UPSTREAM_ERROR' } },
  {
    name: '#78 the context length',
    status: 400,
    body: { error: { message: 'm', code: 'context_length_exceeded' } },
    want: { code: 'CONTEXT_LENGTH' },
  },
  {
    name: 'the context length in words',
    status: 400,
    body: { error: { message: 'prompt too long; exceeded max context length by 1 tokens', type: 'invalid_request_error' } },
    want: { code: 'CONTEXT_LENGTH' },
  },
  {
    name: '401 of the live API',
    status: 401,
    body: { error: { message: 'm', type: 'invalid_request_error', code: 'invalid_api_key' } },
    want: { code: 'AUTHENTICATION' },
  },
  {
    name: '401 whose code says something else',
    status: 401,
    body: { error: { message: 'm', type: 'authentication_error', code: 'invalid_request_error' } },
    want: { code: 'AUTHENTICATION' },
  },
  {
    name: '#79 any 403',
    status: 403,
    body: { error: { message: 'm', type: 'invalid_request_error', code: null } },
    want: { code: 'PERMISSION' },
  },
  {
    name: '#79 404 without a code',
    status: 404,
    body: { error: { message: 'm', type: 'invalid_request_error' } },
    want: { code: 'NOT_FOUND' },
  },
  { name: '#80 402', status: 402, body: { error: { message: 'm' } }, want: { code: 'BILLING' } },
  {
    name: '#80 429 without quota',
    status: 429,
    body: { error: { message: 'm', type: 'insufficient_quota', code: 'insufficient_quota' } },
    want: { code: 'BILLING' },
  },
  { name: '#80 409', status: 409, body: { error: { message: 'm', type: 'invalid_request_error' } }, want: { code: 'CONFLICT' } },
  {
    name: '#80 413',
    status: 413,
    body: { error: { message: 'm', type: 'invalid_request_error' } },
    want: { code: 'PAYLOAD_TOO_LARGE' },
  },
  { name: '#80 422', status: 422, body: { error: { message: 'm' } }, want: { code: 'INVALID_INPUT' } },
  { name: '#80 504', status: 504, body: { error: { message: 'm', type: 'server_error' } }, want: { code: 'TIMEOUT' } },
  { name: '#80 P127 529', status: 529, body: { error: { message: 'm' } }, want: { code: 'OVERLOADED', http_status: 529 } },
  {
    name: 'an error with status 200',
    status: 200,
    body: { error: { message: 'm', code: 502 } },
    want: { http_status: 502, upstream: { code: 502 } },
  },
  {
    name: 'Azure',
    status: 400,
    body: { error: { message: 'm', type: null, param: 'prompt', code: 'content_filter', innererror: {} } },
    want: { code: 'CONTENT_POLICY', param: 'prompt' },
  },
];

test.each(SHAPES)('decode: $name', ({ status, body, want }) => {
  expect(decode(status, body)).toMatchObject(want);
});

test.each([
  { headers: { 'retry-after': '2' }, want: { retry_after_ms: 2000 } },
  { headers: { 'retry-after-ms': '150', 'retry-after': '1' }, want: { retry_after_ms: 150 } },
  { headers: { 'x-request-id': 'r' }, want: { request_id: 'r' } },
  { headers: { 'x-should-retry': 'false' }, want: { details: { should_retry: 'false' } } },
])('decode: headers $headers', ({ headers, want }) => {
  expect(decode(429, {}, headers as unknown as Record<string, string>)).toMatchObject(want);
});

test('decode: a date in retry-after is left out', () => {
  expect(decode(429, {}, { 'retry-after': 'Wed, 21 Oct 2026 07:28:00 GMT' }).retry_after_ms).toBeUndefined();
});

// What takes quadratic time here does not end before the test's own limit.
test.each([
  ['tags without an end', '<'.repeat(2_000_000)],
  ['scripts without an end', `<p>${'<script'.repeat(300_000)}`],
  ['one long tag', `<p ${'a'.repeat(2_000_000)}`],
  ['a list of lists', JSON.parse('['.repeat(1000) + ']'.repeat(1000))],
])('decode: %s is read in linear time', (_, body) => {
  expect(decode(500, body).code).toBe('UPSTREAM_ERROR');
});

const failed = readManifest().filter(({ protocol, stream, status }) => protocol === 'openai-chat' && !stream && status >= 400);

const STATUS_CODES: Record<number, ErrorCode[]> = {
  400: ['INVALID_INPUT', 'CONTEXT_LENGTH', 'TOOL_CALL_PARSE_ERROR'],
  401: ['AUTHENTICATION'],
  403: ['PERMISSION'],
  404: ['NOT_FOUND'],
  422: ['INVALID_INPUT'],
  429: ['RATE_LIMIT'],
  500: ['UPSTREAM_ERROR'],
};

describe.each(failed)('$status $file', ({ file, status }) => {
  const text = readRecording(file).toString();
  const error = decode(status, text);

  test('is understood', () => {
    expect(STATUS_CODES[status]).toContain(error.code);
    expect(error.message).not.toBe('');
    expect(error.message.length).toBeLessThan(5_000);
    expect(error.http_status).toBe(status);
  });

  test.each(SDKS)('raises in $name', async ({ create }) => {
    const reply = encodeError(error, chatContext());
    await expect(create(reply.status, reply.headers, JSON.stringify(reply.body))).rejects.toMatchObject({ status });
  });
});

const ENCODE: { code: ErrorCode; status: number; type: string; word: string | null }[] = [
  { code: 'INVALID_INPUT', status: 400, type: 'invalid_request_error', word: 'invalid_value' },
  { code: 'MISSING_REQUIRED_FIELD', status: 400, type: 'invalid_request_error', word: 'missing_required_parameter' },
  { code: 'INCOMPATIBLE_FEATURE', status: 400, type: 'invalid_request_error', word: 'unsupported_value' },
  { code: 'JSON_PARSE_ERROR', status: 400, type: 'invalid_request_error', word: 'invalid_json' },
  { code: 'TOOL_CALL_PARSE_ERROR', status: 400, type: 'invalid_request_error', word: 'tool_use_failed' },
  { code: 'CONTEXT_LENGTH', status: 400, type: 'invalid_request_error', word: 'context_length_exceeded' },
  { code: 'CONTENT_POLICY', status: 400, type: 'invalid_request_error', word: 'content_policy_violation' },
  { code: 'AUTHENTICATION', status: 401, type: 'invalid_request_error', word: 'invalid_api_key' },
  { code: 'BILLING', status: 429, type: 'insufficient_quota', word: 'insufficient_quota' },
  { code: 'PERMISSION', status: 403, type: 'invalid_request_error', word: null },
  { code: 'NOT_FOUND', status: 404, type: 'invalid_request_error', word: 'model_not_found' },
  { code: 'UNSUPPORTED_INTERFACE', status: 404, type: 'invalid_request_error', word: 'unknown_url' },
  { code: 'CONFLICT', status: 409, type: 'invalid_request_error', word: null },
  { code: 'PAYLOAD_TOO_LARGE', status: 413, type: 'invalid_request_error', word: 'request_too_large' },
  { code: 'RATE_LIMIT', status: 429, type: 'rate_limit_error', word: 'rate_limit_exceeded' },
  { code: 'CANCELLED', status: 499, type: 'invalid_request_error', word: 'cancelled' },
  { code: 'INTERNAL', status: 500, type: 'server_error', word: null },
  { code: 'UPSTREAM_ERROR', status: 502, type: 'server_error', word: null },
  { code: 'STREAM_TRUNCATED', status: 502, type: 'server_error', word: 'stream_truncated' },
  { code: 'OVERLOADED', status: 503, type: 'server_error', word: 'overloaded' },
  { code: 'TIMEOUT', status: 504, type: 'server_error', word: 'timeout' },
];

/** What the wire cannot tell apart. */
const READ_AS: Partial<Record<ErrorCode, ErrorCode>> = {
  MISSING_REQUIRED_FIELD: 'INVALID_INPUT',
  INCOMPATIBLE_FEATURE: 'INVALID_INPUT',
  JSON_PARSE_ERROR: 'INVALID_INPUT',
  UNSUPPORTED_INTERFACE: 'NOT_FOUND',
  INTERNAL: 'UPSTREAM_ERROR',
  STREAM_TRUNCATED: 'UPSTREAM_ERROR',
};

describe.each(ENCODE)('#78 #79 encode: $code', ({ code, status, type, word }) => {
  const reply = encodeError({ code, message: 'm' }, chatContext());

  test('has a status and a body that agree', () => {
    expect(reply).toEqual({
      status,
      headers: { 'content-type': 'application/json' },
      body: { error: { message: 'm', type, param: null, code: word } },
    });
  });

  test('is read back', () => {
    expect(decodeErrorReply(reply, chatContext()).code).toBe(READ_AS[code] ?? code);
  });
});

test.each([
  { name: '#80 P127 529 of Anthropic', error: { code: 'OVERLOADED', http_status: 529 }, status: 503 },
  { name: '#80 402 of Anthropic', error: { code: 'BILLING', http_status: 402 }, status: 429 },
  {
    name: '402 of a chat server',
    error: { code: 'BILLING', http_status: 402, upstream: { protocol: 'openai-chat' } },
    status: 402,
  },
  { name: 'the status of the upstream', error: { code: 'INVALID_INPUT', http_status: 422 }, status: 422 },
  { name: 'an error with status 200', error: { code: 'UPSTREAM_ERROR', http_status: 200 }, status: 502 },
] satisfies { name: string; error: Omit<CanonicalError, 'message'>; status: number }[])('encode: $name', ({ error, status }) => {
  expect(encodeError({ message: 'm', ...error }, chatContext()).status).toBe(status);
});

test('encode: retry-after, request id and x-should-retry', () => {
  const error: CanonicalError = {
    code: 'RATE_LIMIT',
    message: 'm',
    retry_after_ms: 1500,
    request_id: 'r',
    details: { should_retry: 'true' },
  };
  expect(encodeError(error, chatContext()).headers).toMatchObject({
    'retry-after': '2',
    'retry-after-ms': '1500',
    'x-request-id': 'r',
    'x-should-retry': 'true',
  });
});

test('encode: what a chat server said goes through, its numbers become words', () => {
  const error = decode(401, { error: { message: 'm', code: 401, metadata: { provider_name: 'p' } } });
  expect((encodeError(error, chatContext()).body as Json)['error']).toEqual({
    message: 'm',
    type: 'invalid_request_error',
    param: null,
    code: 'invalid_api_key',
    metadata: { provider_name: 'p' },
  });
});

test('encode: what another protocol said does not', () => {
  const error: CanonicalError = {
    code: 'OVERLOADED',
    message: 'm',
    upstream: { protocol: 'anthropic-messages', type: 'overloaded_error', body: { secret: 1 } },
  };
  expect((encodeError(error, chatContext()).body as Json)['error']).toEqual({
    message: 'm',
    type: 'server_error',
    param: null,
    code: 'overloaded',
  });
});
