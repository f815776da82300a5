import { describe, expect, test } from 'vitest';
import { readManifest, readRecording } from '../../../../test/corpus.ts';
import { geminiContext, type Json, SDKS } from '../../../../test/sdk/gemini.ts';
import type { CanonicalError, ErrorCode } from '../../src/canonical/notes.ts';
import { decodeErrorReply, encodeError } from '../../src/protocols/gemini/outcome.ts';

const decode = (status: number, body: unknown, headers = {}) => decodeErrorReply({ status, headers, body }, geminiContext());
const google = (code: number, status: string, message = 'm', details?: unknown[]) => ({
  error: { code, message, status, ...(details && { details }) },
});
const info = (reason: string) => ({ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason });
const retry = (retryDelay: string) => ({ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay });

test.each<[name: string, status: number, body: unknown, expected: Partial<CanonicalError>, headers?: object]>([
  ['a status', 400, google(400, 'INVALID_ARGUMENT'), { code: 'INVALID_INPUT', message: 'm', http_status: 400 }],
  [
    'a key that is none',
    400,
    google(400, 'INVALID_ARGUMENT', 'm', [info('API_KEY_INVALID')]),
    { code: 'AUTHENTICATION', http_status: 400 },
  ],
  ['no key', 401, google(401, 'UNAUTHENTICATED'), { code: 'AUTHENTICATION' }],
  ['RetryInfo', 429, google(429, 'RESOURCE_EXHAUSTED', 'm', [retry('32.5s')]), { code: 'RATE_LIMIT', retry_after_ms: 32_500 }],
  [
    'a header',
    429,
    google(429, 'RESOURCE_EXHAUSTED'),
    { retry_after_ms: 3000, request_id: 'q' },
    { 'retry-after': '3', 'x-request-id': 'q' },
  ],
  [
    'RetryInfo before the header',
    429,
    google(429, 'RESOURCE_EXHAUSTED', 'm', [retry('1s')]),
    { retry_after_ms: 1000 },
    { 'retry-after': '3' },
  ],
  [
    'a place that is not served',
    400,
    google(400, 'FAILED_PRECONDITION', 'User location is not supported for the API use.'),
    { code: 'PERMISSION' },
  ],
  ['a stream that did not begin', 503, [google(503, 'UNAVAILABLE')], { code: 'OVERLOADED', message: 'm' }],
  [
    'a context that is too long',
    400,
    google(400, 'INVALID_ARGUMENT', 'The input token count exceeds; prompt is too long'),
    { code: 'CONTEXT_LENGTH' },
  ],
  ['JSON in a text', 404, JSON.stringify(google(404, 'NOT_FOUND')), { code: 'NOT_FOUND', message: 'm' }],
  [
    'a page',
    502,
    '<html><head><title>x</title></head><body>502\nBad Gateway</body>',
    { code: 'UPSTREAM_ERROR', message: 'the server returned 502 with an HTML page' },
  ],
  ['a text', 413, 'too big', { code: 'PAYLOAD_TOO_LARGE', message: 'too big' }],
  ['nothing', 500, undefined, { code: 'UPSTREAM_ERROR', message: 'the server returned 500 without an error message' }],
])('decode: %s', (_, status, body, expected, headers) => {
  expect(decode(status, body, headers)).toMatchObject(expected);
});

const CODES: Record<ErrorCode, [code: number, status: string]> = {
  INVALID_INPUT: [400, 'INVALID_ARGUMENT'],
  MISSING_REQUIRED_FIELD: [400, 'INVALID_ARGUMENT'],
  INCOMPATIBLE_FEATURE: [400, 'INVALID_ARGUMENT'],
  TOOL_CALL_PARSE_ERROR: [400, 'INVALID_ARGUMENT'],
  JSON_PARSE_ERROR: [400, 'INVALID_ARGUMENT'],
  CONTEXT_LENGTH: [400, 'INVALID_ARGUMENT'],
  CONTENT_POLICY: [400, 'INVALID_ARGUMENT'],
  AUTHENTICATION: [401, 'UNAUTHENTICATED'],
  BILLING: [400, 'FAILED_PRECONDITION'],
  PERMISSION: [403, 'PERMISSION_DENIED'],
  NOT_FOUND: [404, 'NOT_FOUND'],
  UNSUPPORTED_INTERFACE: [404, 'NOT_FOUND'],
  CONFLICT: [409, 'ABORTED'],
  PAYLOAD_TOO_LARGE: [413, 'INVALID_ARGUMENT'],
  RATE_LIMIT: [429, 'RESOURCE_EXHAUSTED'],
  CANCELLED: [499, 'CANCELLED'],
  INTERNAL: [500, 'INTERNAL'],
  UPSTREAM_ERROR: [500, 'INTERNAL'],
  STREAM_TRUNCATED: [500, 'INTERNAL'],
  OVERLOADED: [503, 'UNAVAILABLE'],
  TIMEOUT: [504, 'DEADLINE_EXCEEDED'],
};

describe('encode', () => {
  test.each(Object.entries(CODES) as [ErrorCode, [number, string]][])('%s', async (code, [http, status]) => {
    const reply = encodeError({ code, message: 'm' }, geminiContext());
    expect(reply).toMatchObject({ status: http, body: { error: { code: http, message: expect.stringMatching(/m$/), status } } });
    for (const { generate } of SDKS)
      await expect(generate(reply.status, JSON.stringify(reply.body))).rejects.toMatchObject({ name: 'ApiError', status: http });
  });

  test('P127 statuses of others', () => {
    expect(encodeError({ code: 'OVERLOADED', message: 'm', http_status: 529 }, geminiContext()).status).toBe(503);
    expect(encodeError({ code: 'BILLING', message: 'm', http_status: 402 }, geminiContext()).status).toBe(400);
    expect(encodeError({ code: 'UPSTREAM_ERROR', message: 'm', http_status: 502 }, geminiContext()).body).toMatchObject({
      error: { code: 502 },
    });
    expect(encodeError({ code: 'UPSTREAM_ERROR', message: 'm', http_status: 200 }, geminiContext()).status).toBe(500);
  });

  test('when to come back, and whether it was the key', () => {
    const { body, headers } = encodeError(
      { code: 'RATE_LIMIT', message: 'm', retry_after_ms: 1500, request_id: 'q' },
      geminiContext(),
    );
    expect(headers).toMatchObject({ 'retry-after': '2', 'x-request-id': 'q' });
    expect(body).toMatchObject({ error: { details: [retry('1.5s')] } });
    const key = encodeError({ code: 'AUTHENTICATION', message: 'm' }, geminiContext()).body;
    expect(key).toMatchObject({ error: { details: [info('API_KEY_INVALID')] } });
  });

  test.each(readManifest().filter(({ protocol, status }) => protocol === 'gemini' && status >= 400))(
    'identity of $file',
    ({ file, status }) => {
      const body = JSON.parse(readRecording(file).toString()) as Json | Json[];
      const [error] = [body].flat();
      expect(encodeError(decode(status, body), geminiContext())).toMatchObject({ status, body: error });
    },
  );
});
