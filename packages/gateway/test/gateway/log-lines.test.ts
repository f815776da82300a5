import pico from 'picocolors';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createLineFormat, createLog } from '../../src/observe/log.ts';
import { Faultd } from './faultd.ts';
import { whole } from './http.ts';
import { modelOf, PAIRS, type Pair, providersAt } from './pairs.ts';
import { good } from './scripts.ts';
import { ask, type Started, startGateway } from './start.ts';

const plain = createLineFormat(pico.createColors(false));

/** The line without its time. */
const format = (record: object): string => {
  const line = plain(JSON.stringify({ level: 'info', time: 0, msg: 'answered', ...record }));
  expect(line).toMatch(/^\d\d:\d\d:\d\d [^\n]+\n$/);
  return line.slice(9, -1);
};

const REQUEST = {
  request_id: 'r',
  method: 'POST',
  path: '/v1/messages',
  status: 200,
  ending: 'answered',
  requested: 'fast',
  client_protocol: 'anthropic-messages',
  upstream_protocol: 'openai-chat',
  provider: 'groq',
  model: 'llama',
  attempts: 1,
  input_tokens: 12,
  output_tokens: 3,
  ms: 832,
};

describe('a line for a terminal', () => {
  test.each([
    ['a request', REQUEST, '200  anthropic-messages → openai-chat  fast → groq/llama  12 in, 3 out  832 ms'],
    [
      'a request that names the provider itself',
      { ...REQUEST, requested: 'groq/llama' },
      '200  anthropic-messages → openai-chat  groq/llama  12 in, 3 out  832 ms',
    ],
    [
      'an error of the upstream',
      {
        ...REQUEST,
        status: 503,
        ending: 'upstream_error',
        error: 'OVERLOADED',
        reason: 'busy',
        input_tokens: undefined,
        output_tokens: undefined,
      },
      '503  anthropic-messages → openai-chat  fast → groq/llama  832 ms  OVERLOADED: busy',
    ],
    [
      'a stream that failed after its head',
      { ...REQUEST, ending: 'upstream_error', error: 'STREAM_TRUNCATED', reason: 'ended early' },
      '200 cut  anthropic-messages → openai-chat  fast → groq/llama  12 in, 3 out  832 ms  STREAM_TRUNCATED: ended early',
    ],
    [
      'a request without a provider',
      { method: 'GET', path: '/v1/models', status: 200, ending: 'answered', ms: 2 },
      '200  GET /v1/models  2 ms',
    ],
    [
      'a refused request',
      {
        method: 'POST',
        path: '/v1/messages',
        status: 404,
        ending: 'refused',
        requested: 'gtp-5',
        error: 'NOT_FOUND',
        reason: 'no provider',
        ms: 1,
      },
      '404  POST /v1/messages  gtp-5  1 ms  NOT_FOUND: no provider',
    ],
    [
      'another event',
      { level: 'warn', msg: 'attempt failed', provider: 'groq', attempt: 1 },
      'warn attempt failed  provider=groq  attempt=1',
    ],
  ])('%s', (_, record, line) => expect(format(record)).toBe(line));

  test.each([
    ['answered', undefined, '200'],
    ['upstream_truncated', undefined, '200 cut'],
    ['upstream_error', 'STREAM_TRUNCATED', '200 cut'],
    ['upstream_error', 'OVERLOADED', '200 failed'],
    ['upstream_malformed', undefined, '200 malformed'],
    ['timeout', undefined, '200 timed out'],
    ['stopped', undefined, '200 stopped'],
    ['client_aborted', undefined, '200 left'],
    ['client_stalled', undefined, '200 stalled'],
    ['something_new', undefined, '200 failed'],
  ])('a response that ended with %s (%s) begins with %s', (ending, error, status) => {
    const colors = pico.createColors(true);
    const line = createLineFormat(colors)(JSON.stringify({ level: 'info', time: 0, msg: 'answered', ...REQUEST, ending, error }));
    expect(line).toContain(` ${(status === '200' ? colors.green : colors.yellow)(status)}  `);
  });

  test('escapes what could control the terminal', () => {
    const line = format({ ...REQUEST, requested: 'x\u001b[2J\ny', status: 500, error: 'E', reason: 'a\u202eb' });
    for (const char of ['\u001b', '\n', '\u202e']) expect(line).not.toContain(char);
  });

  test('is written instead of JSON when a format is given', () => {
    const lines: string[] = [];
    const log = createLog(
      'info',
      (text) => text.replace('secret', '***'),
      (line) => void lines.push(line),
      plain,
    );
    log.info({ url: 'http://secret' }, 'listening');
    expect(lines).toEqual([expect.stringMatching(/^\d\d:\d\d:\d\d info listening {2}url=http:\/\/\*\*\*\n$/)]);
  });
});

describe('the record of a request', () => {
  const pair = PAIRS[4] as Pair;
  let faultd: Faultd;
  let gateway: Started;

  beforeAll(async () => {
    faultd = await Faultd.start();
    const config = { providers: providersAt(faultd), models: { fast: modelOf(pair) }, limits: { retries_per_provider: 0 } };
    gateway = await startGateway({ config });
  });

  afterAll(async () => {
    await gateway.close();
    await faultd.stop();
  });

  const askFor = async (model: string) => {
    const reply = await ask(gateway.url, { client: pair.client, model, stream: false });
    return gateway.ended(reply.headers['x-sluice-request-id']);
  };

  test('names both protocols, the alias and its target', async () => {
    faultd.play(good(pair, false));
    const [provider, model] = modelOf(pair).split('/');
    expect(await askFor('fast')).toMatchObject({
      level: 'info',
      requested: 'fast',
      provider,
      model,
      client_protocol: pair.client,
      upstream_protocol: pair.upstream,
    });
  });

  test.each([
    [404, 'warn'],
    [429, 'warn'],
    [500, 'error'],
  ])('a status of %i is logged at level %s', async (status, level) => {
    if (status !== 404) faultd.play([{ send: whole(status, '{}') }]);
    expect(await askFor(status === 404 ? 'unknown' : 'fast')).toMatchObject({ status, level });
  });
});
