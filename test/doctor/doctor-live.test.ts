import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { convertRequest } from '@sluice/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadConfig } from '../../packages/gateway/src/config/load.ts';
import { jsonLines, run } from '../../packages/gateway/test/fake-io.ts';
import { anthropic, chat, chatCall, gemini, responses } from '../../packages/gateway/test/streams.ts';

const KEY = 'sk-doctor-0123456789abcdef';

interface Asked {
  path: string;
  headers: IncomingMessage['headers'];
  body: Record<string, unknown>;
}

type Answer = (asked: Asked, response: ServerResponse) => void;

let server: Server;

let url = '';

let asked: Asked[] = [];

let answer: Answer = () => undefined;

beforeAll(async () => {
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const one = { path: request.url ?? '', headers: request.headers, body: JSON.parse(Buffer.concat(chunks).toString() || '{}') };
    asked.push(one);
    answer(one, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(() => new Promise((resolve) => server.close(resolve)));

const stream = (response: ServerResponse, body: string): void => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.end(body);
};

const refuse = (response: ServerResponse, status: number, body: object): void => {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
};

const isNobody = ({ body, path }: Asked): boolean => String(body['model'] ?? path).includes('no-such-model');

/** A server that does what it is asked for: calls when there are tools, thinks when told to. */
const goodChat: Answer = (one, response) => {
  if (one.path !== '/v1/chat/completions') return refuse(response, 404, { error: { message: 'no such endpoint' } });
  if (isNobody(one))
    return refuse(response, 404, { error: { message: 'no such model', type: 'invalid_request_error', code: 'model_not_found' } });
  if (one.body['tools']) return stream(response, chatCall('{"city":"Paris"}'));
  return stream(response, chat('hello'));
};

async function visit(argv: string[], given: Answer, env: Record<string, string> = {}): Promise<Awaited<ReturnType<typeof run>>> {
  asked = [];
  answer = given;
  return run(['doctor', ...argv, '--model', 'm-1'], { env });
}

describe('sluice doctor --url', () => {
  test('sends seven probes and reports what each response showed', async () => {
    const outcome = await visit(['--url', `${url}/v1`, '--protocol', 'openai', '--json'], goodChat);
    expect(jsonLines(outcome).map(({ probe, status, outcome: what }) => [probe, status, what])).toEqual([
      ['text', 200, 'shown'],
      ['tool', 200, 'shown'],
      ['parallel-tools', 200, 'not-shown'],
      ['tool-without-arguments', 200, 'shown'],
      ['reasoning', 200, 'not-shown'],
      ['usage', 200, 'not-shown'],
      ['error', 404, 'shown'],
    ]);
    expect(outcome.code).toBe(3);
    expect(asked).toHaveLength(7);
    expect(asked.map(({ body }) => body['stream'])).toEqual(Array(7).fill(true));
  });

  test.each([
    ['openai-chat', '/v1/chat/completions', chat('hi')],
    ['anthropic-messages', '/v1/messages', anthropic('hi')],
    ['openai-responses', '/v1/responses', responses('hi')],
    ['gemini', '/v1beta/models/m-1:streamGenerateContent?alt=sse', gemini('hi')],
  ])('detects that a server uses %s', async (protocol, path, body) => {
    const outcome = await visit(['--url', url, '--json'], (one, response) =>
      one.path === path ? stream(response, body) : refuse(response, 404, { error: { message: 'not here' } }),
    );
    expect(jsonLines(outcome)[0]).toMatchObject({ probe: 'text', outcome: 'shown', protocol });
  });

  test('accepts the full URL of an endpoint', async () => {
    const outcome = await visit(['--url', `${url}/v1/chat/completions`, '--json'], goodChat);
    expect(jsonLines(outcome)[0]).toMatchObject({ probe: 'text', outcome: 'shown', protocol: 'openai-chat' });
    expect(new Set(asked.map(({ path }) => path))).toEqual(new Set(['/v1/chat/completions']));
  });

  test('reports violations', async () => {
    const outcome = await visit(['--url', `${url}/v1`, '--protocol', 'openai'], (one, response) =>
      one.body['tools'] ? stream(response, chatCall('{}').replaceAll('"index":0,"id"', '"id"')) : goodChat(one, response),
    );
    expect(outcome.stdout).toContain('chat/tool-index-missing');
    expect(outcome.code).toBe(1);
  });

  test.each<[what: string, argv: string[], answer: Answer, text: string]>([
    [
      'no endpoint of any protocol',
      [],
      (_, response) => response.writeHead(404).end('nothing here'),
      'has none of POST /v1/chat/completions, /v1/messages, /v1/responses, ',
    ],
    [
      'no endpoint of the protocol',
      ['--protocol', 'openai'],
      (_, response) => response.writeHead(404).end('nothing here'),
      'has no POST /v1/chat/completions (404); correct the path of --url, or name another protocol with --protocol',
    ],
    [
      'a page',
      ['--protocol', 'openai'],
      (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>hello</html>'),
      'not as an API of models: check the port and the path of --url',
    ],
    [
      'no key',
      ['--protocol', 'openai'],
      (_, response) => refuse(response, 401, { error: { message: 'no key', type: 'invalid_request_error' } }),
      'name the variable that holds it with --key-env',
    ],
  ])('a server with %s: what to do', async (_, argv, answer, text) => {
    const outcome = await visit(['--url', `${url}/v1`, ...argv], answer);
    expect(outcome.stdout).toContain(text);
    expect(outcome.stdout).not.toContain('status page');
    expect(outcome.code).toBe(1);
  });

  test('an unreachable server is an error', async () => {
    const outcome = await visit(['--url', 'http://127.0.0.1:1', '--protocol', 'openai'], goodChat);
    expect(outcome.stdout).toMatch(/no response/);
    expect(outcome.stdout).toMatch(/ECONNREFUSED/);
    expect(outcome.code).toBe(1);
  });

  test('an error in another format is reported', async () => {
    const outcome = await visit(['--url', `${url}/v1`, '--protocol', 'openai', '--json'], (one, response) =>
      isNobody(one) ? refuse(response, 500, { detail: 'oops' }) : goodChat(one, response),
    );
    expect(jsonLines(outcome).at(-1)).toMatchObject({ probe: 'error', status: 500, outcome: 'not-shown' });
  });
});

/** A server that shows all that it is asked for. */
const bestChat: Answer = (one, response) => {
  if (isNobody(one) || one.path !== '/v1/chat/completions') return goodChat(one, response);
  const tools = Array.isArray(one.body['tools']) ? one.body['tools'].length : 0;
  if (tools === 2) return stream(response, twoCalls);
  if (tools === 1) return stream(response, chatCall('{}'));
  return stream(response, counted(one.body['reasoning_effort'] === undefined ? 'hello' : 'ten', { reasoning_tokens: 7 }));
};

const chunks = (...payloads: object[]): string =>
  `${payloads.map((payload) => `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', ...payload })}\n\n`).join('')}data: [DONE]\n\n`;

const choice = (delta: object, finish_reason: string | null = null): object => ({
  choices: [{ index: 0, delta, finish_reason }],
});

const toolCall = (index: number): object => ({
  index,
  id: `call_${index}`,
  type: 'function',
  function: { name: 'get_time', arguments: '{}' },
});

const twoCalls = chunks(
  choice({ role: 'assistant', content: null }),
  choice({ tool_calls: [toolCall(0)] }),
  choice({ tool_calls: [toolCall(1)] }),
  choice({}, 'tool_calls'),
);

const counted = (content: string, details: object): string =>
  chunks(choice({ role: 'assistant', content }), choice({}, 'stop'), {
    choices: [],
    usage: { prompt_tokens: 1, completion_tokens: 9, total_tokens: 10, completion_tokens_details: details },
  });

/** An answer in which nothing of what was asked for is found. */
const silent: Answer = (_, response) => stream(response, chunks(choice({ role: 'assistant', content: '' }), choice({}, 'stop')));

describe('features without a probe result are unknown', () => {
  const argv = (): string[] => ['--url', `${url}/v1`, '--protocol', 'openai'];

  test('a server that passes every probe is clean', async () => {
    const outcome = await visit(argv(), bestChat);
    expect(outcome.stdout).toContain('overall   100 of 100 · no violations');
    expect(outcome.stdout).toContain('7 of 7 probes');
    expect(outcome.stdout).not.toContain('not known');
    expect(outcome.code).toBe(0);
  });

  test('a server without probe results has no score', async () => {
    const outcome = await visit(argv(), silent);
    expect(outcome.stdout).not.toMatch(/\d+ of 100/);
    expect(outcome.stdout).toContain('overall   not known');
    expect(outcome.stdout).toContain('0 of 7 probes');
    expect(outcome.code).toBe(3);
  });

  test('partial results limit the score', async () => {
    const outcome = await visit(argv(), goodChat);
    expect(outcome.stdout).toContain('overall   at most 100 of 100');
    expect(outcome.stdout).toContain('not known: parallel-tools, reasoning, usage');
    expect(outcome.code).toBe(3);
  });

  test('an error outweighs unknown results', async () => {
    const outcome = await visit(argv(), (one, response) =>
      one.body['tools'] ? stream(response, chatCall('{}').replaceAll('"index":0,"id"', '"id"')) : silent(one, response),
    );
    expect(outcome.code).toBe(1);
  });

  test('--json prints null for unknown', async () => {
    const lines = jsonLines(await visit([...argv(), '--json'], goodChat));
    expect(lines.map(({ probe, score }) => [probe, score])).toEqual([
      ['text', 100],
      ['tool', 100],
      ['parallel-tools', null],
      ['tool-without-arguments', 100],
      ['reasoning', null],
      ['usage', null],
      ['error', null],
    ]);
  });

  test('the HTML page shows unknown results', async () => {
    const nothing = await visit([...argv(), '--html'], silent);
    expect(nothing.stdout).not.toMatch(/<span class="score[^>]*>\d/);
    expect(nothing.stdout).toContain('not known');
    const part = await visit([...argv(), '--html'], goodChat);
    expect(part.stdout).toContain('at most <span class="score fair">100</span> of 100');
  });
});

describe('the key in other forms', () => {
  const SPECIAL = 'sk/doctor+0123456789=abc&"q';
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  const escaped = [...SPECIAL].map((character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');

  /** The key as a server may write it into JSON text. `core` must not be shown. */
  test.each<[string, string, string]>([
    ['as it is', JSON.stringify(SPECIAL).slice(1, -1), 'sk/doctor'],
    ['URL-encoded', encodeURIComponent(SPECIAL), 'sk%2Fdoctor'],
    ['URL-encoded in lower case', encodeURIComponent(SPECIAL).replaceAll(/%\w\w/g, (code) => code.toLowerCase()), 'sk%2fdoctor'],
    ['base64', base64(SPECIAL), base64(SPECIAL).slice(0, 12)],
    ['base64 with the scheme', base64(`Bearer ${SPECIAL}`), base64(`Bearer ${SPECIAL}`).slice(12, 24)],
    ['base64url', Buffer.from(SPECIAL).toString('base64url'), base64(SPECIAL).slice(0, 12)],
    ['hex', Buffer.from(SPECIAL).toString('hex'), Buffer.from(SPECIAL).toString('hex').slice(0, 16)],
    ['escaped for JSON in full', escaped, escaped.slice(0, 24)],
    ['with escaped slashes', JSON.stringify(SPECIAL).slice(1, -1).replaceAll('/', '\\/'), 'sk\\/doctor'],
  ])('%s is not shown', async (_, form, core) => {
    const repeat: Answer = (one, response) => {
      if (isNobody(one)) {
        response.writeHead(401, { 'content-type': 'application/json' });
        response.end(`{"error":{"message":"bad key ${form}","type":"x"}}`);
      } else stream(response, chat('hi').replaceAll('"index":0,', `"key":"${form}",`).replaceAll('"m-1"', `"m ${form}"`));
    };
    for (const style of [['--json'], ['--html'], []]) {
      const argv = ['--url', `${url}/v1`, '--protocol', 'openai', '--key-env', 'K', ...style];
      const { stdout, stderr } = await visit(argv, repeat, { K: SPECIAL });
      expect(stdout).toContain('chat/choice-index-missing');
      for (const shown of [stdout, stderr]) {
        expect(shown).not.toContain('sk/doctor');
        expect(shown).not.toContain(core);
        // As the excerpt stands in a line of JSON.
        expect(shown).not.toContain(JSON.stringify(core).slice(1, -1));
      }
    }
    expect(asked[0]?.headers.authorization).toBe(`Bearer ${SPECIAL}`);
  });
});

describe('the key', () => {
  test.each([
    ['the environment', ['--key-env', 'MY_KEY'], { MY_KEY: KEY }, undefined],
    ['standard input', ['--key-stdin'], {}, `${KEY}\n`],
  ])('is read from %s, sent to the server, and never shown', async (_, argv, env, stdin) => {
    asked = [];
    // A server that repeats the key wherever it can.
    answer = (one, response) =>
      isNobody(one)
        ? refuse(response, 401, { error: { message: `bad key ${KEY}`, type: 'x' } })
        : stream(response, chat(`your key is ${KEY}`).replaceAll('"index":0,', `"key":"${KEY}",`));
    for (const form of [['--json'], ['--html'], []]) {
      const outcome = await run(['doctor', '--url', `${url}/v1`, '--protocol', 'openai', '--model', 'm', ...argv, ...form], {
        env,
        ...(stdin !== undefined && { stdin }),
      });
      expect(outcome.stdout + outcome.stderr).not.toContain(KEY);
      expect(outcome.stdout).toContain('chat/choice-index-missing');
    }
    expect(asked[0]?.headers.authorization).toBe(`Bearer ${KEY}`);
  });

  test('is not sent to a redirect target', async () => {
    const outcome = await visit(
      ['--url', `${url}/v1`, '--protocol', 'openai', '--key-env', 'K', '--json'],
      (_, response) => {
        response.writeHead(307, { location: `${url}/elsewhere` });
        response.end();
      },
      { K: KEY },
    );
    expect(new Set(asked.map(({ path }) => path))).toEqual(new Set(['/v1/chat/completions']));
    expect(jsonLines(outcome)[0]).toMatchObject({ probe: 'text', status: 307, outcome: 'refused' });
  });
});

/** The profile as the gateway has it when the file stands in its configuration. */
function configured(profile: object): unknown {
  const yaml = `providers:\n  mine: { protocol: openai, base_url: http://127.0.0.1/v1, profile: ${JSON.stringify(profile)} }\n`;
  const { mine } = loadConfig('sluice.yaml', yaml, {}).options.providers;
  return mine ? mine.profile : undefined;
}

describe('--profile', () => {
  const profileOf = async (given: Answer): Promise<{ profile: Record<string, unknown>; stderr: string }> => {
    const { files, stderr } = await visit(['--url', `${url}/v1`, '--protocol', 'openai', '--profile', 'p.json'], given);
    return { profile: JSON.parse(files['p.json'] ?? 'null') as Record<string, unknown>, stderr };
  };

  const thinking = (field: string): string => chat('hello').replace('"content":"hello"', `"${field}":"hm","content":"hello"`);

  test.each<[string, Answer, Record<string, unknown>]>([
    ['a server that is like all', goodChat, {}],
    [
      'a server that wants max_completion_tokens',
      (one, response) =>
        'max_tokens' in one.body
          ? refuse(response, 400, {
              error: { message: "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", type: 'x' },
            })
          : goodChat(one, response),
      { max_tokens_field: 'max_completion_tokens' },
    ],
    [
      'a server without sampling and without usage',
      (one, response) => {
        if ('temperature' in one.body)
          return refuse(response, 400, { error: { message: 'temperature is not supported', type: 'x' } });
        if ('stream_options' in one.body)
          return refuse(response, 422, { error: { message: 'extra field stream_options', type: 'x' } });
        return goodChat(one, response);
      },
      { supports_sampling: false, stream_usage: false },
    ],
    [
      'a server that thinks in "reasoning"',
      (one, response) => (one.body['tools'] || isNobody(one) ? goodChat(one, response) : stream(response, thinking('reasoning'))),
      { reasoning_field: 'reasoning' },
    ],
  ])('%s', async (_, given, expected) => {
    const { profile } = await profileOf(given);
    expect(profile).toEqual(expected);
    expect(configured(profile)).toEqual(expected);
  });

  test('the library accepts the profile', async () => {
    const { profile } = await profileOf((one, response) =>
      'max_tokens' in one.body
        ? refuse(response, 400, { error: { message: 'use max_completion_tokens', type: 'x' } })
        : goodChat(one, response),
    );
    const question = { model: 'm', max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] };
    const { body } = convertRequest(question, { from: 'anthropic', to: 'openai-chat', profile });
    expect(body).toMatchObject({ max_completion_tokens: 5 });
  });

  test('reports what it wrote', async () => {
    const { stderr } = await profileOf(goodChat);
    expect(stderr).toContain('p.json: nothing was learned that differs from the defaults');
  });
});
