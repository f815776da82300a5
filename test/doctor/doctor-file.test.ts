import { RULES } from '@sluice/core';
import { describe, expect, test } from 'vitest';
import { jsonLines, run, systemError, type World } from '../../packages/gateway/test/fake-io.ts';
import { anthropic, chat, chatCall, chatError, cutChat, gemini, responses } from '../../packages/gateway/test/streams.ts';

const noIndex = chatCall('{}').replaceAll('"index":0,"id"', '"id"');

describe('sluice doctor FILE', () => {
  test.each([
    ['openai-chat', chat('hi')],
    ['anthropic-messages', anthropic('hi')],
    ['openai-responses', responses('hi')],
    ['gemini', gemini('hi')],
  ])('finds nothing in a clean stream of %s and detects the protocol', async (protocol, body) => {
    const outcome = await run(['doctor', '--json', 'a.sse'], { files: { 'a.sse': body } });
    expect(jsonLines(outcome)).toEqual([
      expect.objectContaining({ file: 'a.sse', protocol, score: 100, findings: [], error: null }),
    ]);
    expect(outcome).toMatchObject({ code: 0, stderr: '' });
  });

  test('reports a violation with rule, offset, effect on clients and remedy', async () => {
    const outcome = await run(['doctor', '--json', '-'], { stdin: noIndex });
    const [line] = jsonLines(outcome);
    expect(line).toMatchObject({ file: '-', score: 80 });
    expect(line?.['findings']).toEqual([
      {
        rule: 'chat/tool-index-missing',
        severity: 'error',
        title: RULES['chat/tool-index-missing'].title,
        message: RULES['chat/tool-index-missing'].title,
        offset: 0,
        count: 1,
        excerpt: expect.stringContaining('"tool_calls":[{"id":"call_1"'),
        remedy: RULES['chat/tool-index-missing'].remedy,
        breaks: expect.arrayContaining([{ client: 'openai 6.49', effect: 'loses a call' }]),
      },
    ]);
    expect(outcome.code).toBe(1);
  });

  test('prints a readable report', async () => {
    const { stdout, code } = await run(['doctor', 'a.sse'], { files: { 'a.sse': noIndex } });
    expect(stdout).toContain('a.sse · openai-chat · m-1');
    expect(stdout).toContain('score     80 of 100 · 1 error');
    expect(stdout).toContain('error     chat/tool-index-missing  (byte 0)');
    expect(stdout).toContain('breaks    openai 6.49: loses a call');
    expect(code).toBe(1);
  });

  test('fits the terminal width, and uses colour only on a terminal', async () => {
    const world = { files: { 'a.sse': noIndex }, terminals: ['stdout'] as const, columns: 60 };
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours
    const plain = (text: string): string => text.replaceAll(/\u001b\[\d+m/g, '');
    const { stdout } = await run(['doctor', 'a.sse'], world);
    expect(stdout).toContain('\u001b[31m');
    const wide = plain(stdout)
      .split('\n')
      .filter((line) => line.length > 60 && !line.startsWith('a.sse'));
    expect(wide).toEqual([]);
    expect((await run(['doctor', 'a.sse'], { ...world, env: { NO_COLOR: '1' } })).stdout).toBe(plain(stdout));
  });

  test.each<[string, World['files'] & object, RegExp, number?]>([
    ['a file that is not there', {}, /not found|no such file/i, 2],
    ['an error in the stream', { 'a.sse': chatError('slow down') }, /slow down/],
    ['a stream that was cut', { 'a.sse': cutChat('he') }, /chat\/ended-early/],
    ['an empty body', { 'a.sse': '' }, /sse\/empty-stream/],
    ['a page of a proxy', { 'a.sse': '<html><body>Bad gateway</body></html>' }, /sse\/not-a-stream/],
  ])('%s is a failure', async (_, files, words, expected = 1) => {
    const { stdout, stderr, code } = await run(['doctor', 'a.sse'], { files });
    expect(stdout + stderr).toMatch(words);
    expect(code).toBe(expected);
  });

  test('one bad input does not stop the others', async () => {
    const outcome = await run(['doctor', '--json', 'gone', 'a.sse'], { files: { 'a.sse': chat('hi') } });
    expect(jsonLines(outcome).map(({ file, score }) => [file, score])).toEqual([
      ['gone', null],
      ['a.sse', 100],
    ]);
    expect(outcome.stderr).toMatch(/^sluice: gone: /);
    expect(outcome.code).toBe(2);
  });

  test('summarises several inputs; a violation counts once', async () => {
    const { stdout } = await run(['doctor', 'a', 'b', 'c'], { files: { a: noIndex, b: noIndex, c: chat('hi') } });
    expect(stdout).toContain('overall   80 of 100 · 1 error\n');
  });

  test('--whole: a JSON body is expected', async () => {
    const body = JSON.stringify({
      id: 'c-1',
      object: 'chat.completion',
      created: 1,
      model: 'm-1',
      choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
    });
    const rulesOf = async (argv: string[]): Promise<unknown> =>
      jsonLines(await run(['doctor', '--json', ...argv], { stdin: body }))[0]?.['findings'];
    expect(await rulesOf(['--whole'])).toEqual([]);
    expect(await rulesOf([])).toEqual([expect.objectContaining({ rule: 'sse/json-body-instead-of-stream' })]);
  });

  test('exits quietly on EPIPE', async () => {
    const { code, stderr } = await run(['doctor', 'a.sse'], {
      files: { 'a.sse': chat('hi') },
      stdoutError: systemError('EPIPE'),
    });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });

  test('control characters of a stream do not reach the terminal', async () => {
    const evil = noIndex.replaceAll('get_weather', '\\u001b[2Jget\u202e');
    const { stdout } = await run(['doctor', 'a.sse'], { files: { 'a.sse': evil } });
    // biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be there
    expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/);
  });
});

describe('sluice doctor --html', () => {
  const evil = `data: {"error":{"message":"<script>alert(1)</script>","code":"\\"><img src=x>"}}\n\n`;

  test('is one page that loads and runs nothing', async () => {
    const { stdout, code } = await run(['doctor', '--html', 'a.sse', 'b.sse'], { files: { 'a.sse': noIndex, 'b.sse': evil } });
    expect(stdout).toMatch(/^<!doctype html>/);
    expect(stdout).toContain(`content="default-src 'none'; style-src 'sha256-`);
    expect(stdout).not.toMatch(/<(script|img|link|iframe|object|form|a)\b|https?:|url\(|\son\w+=/i);
    expect(stdout).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
    expect(stdout).toContain('chat/tool-index-missing');
    expect(code).toBe(1);
  });

  test('file names are escaped', async () => {
    const { stdout } = await run(['doctor', '--html', '<b>.sse'], { files: { '<b>.sse': chat('hi') } });
    expect(stdout).toContain('<h2>&lt;b&gt;.sse</h2>');
  });
});

describe('sluice doctor rules', () => {
  test('lists every rule', async () => {
    const { stdout, code } = await run(['doctor', 'rules']);
    const lines = stdout.split('\n');
    for (const [rule, { title }] of Object.entries(RULES))
      expect(lines.filter((line) => line.includes(` ${rule} `) && line.endsWith(title))).toHaveLength(1);
    expect(code).toBe(0);
  });

  test('explains one', async () => {
    const { stdout } = await run(['doctor', 'rules', 'chat/tool-index-reused']);
    expect(stdout).toContain(RULES['chat/tool-index-reused'].explanation);
    expect(stdout).toContain('breaks    openai 6.49, openai 7.53: loses a call');
  });

  test('prints JSON for programs', async () => {
    const lines = jsonLines(await run(['doctor', 'rules', '--json']));
    expect(lines.map(({ rule }) => rule)).toEqual(Object.keys(RULES));
  });

  test('suggests the nearest rule', async () => {
    const { stderr, code } = await run(['doctor', 'rules', 'chat/tool-index-resued']);
    expect(stderr).toContain('did you mean "chat/tool-index-reused"?');
    expect(code).toBe(2);
  });
});

test.each([
  [['--json', '--html', 'a'], '--json and --html exclude each other'],
  [['--model', 'm', 'a'], 'require --url'],
  [['--url', 'http://127.0.0.1:1/v1'], '--model is required'],
  [['--url', 'ftp://a', '--model', 'm'], 'must start with http:// or https://'],
  [['--url', 'http://u:secret@a/v1', '--model', 'm'], 'must not contain a user or password'],
  [['--url', 'http://a/v1?key=secret', '--model', 'm'], 'must not have a query'],
  [['--url', 'http://a/v1', '--model', 'm', '--key-env', 'NOPE'], 'the environment variable NOPE is not set'],
  [['--url', 'http://a/v1', '--model', 'm', 'file'], 'exclude each other'],
  [['--protocol', 'opnai', 'a'], 'did you mean "openai"?'],
])('wrong usage: %s', async (argv, words) => {
  const { stderr, code } = await run(['doctor', ...argv]);
  expect(stderr).toContain(words);
  expect(stderr).not.toContain('secret');
  expect(code).toBe(2);
});
