import { describe, expect, test } from 'vitest';
import { run, systemError, type World } from './fake-io.ts';
import * as streams from './streams.ts';

interface Row {
  name: string;
  argv?: string[];
  stream: string;
  world?: World;
  contains?: (string | RegExp)[];
  lacks?: (string | RegExp)[];
}

const ESC = '\u001b';
const TERMINAL: World = { terminals: ['stdout', 'stderr'] };

const ROWS: Row[] = [
  { name: 'the header', stream: streams.chat('hi'), contains: ['a · openai-chat · m-1 · chatcmpl-1\n', '\ntext\nhi\n'] },
  { name: 'no colour without a terminal', stream: streams.chat('hi'), lacks: [ESC] },
  { name: 'colour on a terminal', stream: streams.chat('hi'), world: TERMINAL, contains: [`${ESC}[1ma${ESC}[22m`] },
  {
    name: 'NO_COLOR',
    stream: streams.chat('hi'),
    world: { ...TERMINAL, env: { NO_COLOR: '1' } },
    contains: ['text\nhi'],
    lacks: [ESC],
  },
  {
    name: 'an empty NO_COLOR is none',
    stream: streams.chat('hi'),
    world: { ...TERMINAL, env: { NO_COLOR: '' } },
    contains: [ESC],
  },
  { name: 'TERM=dumb', stream: streams.chat('hi'), world: { ...TERMINAL, env: { TERM: 'dumb' } }, lacks: [ESC] },
  {
    name: 'a call with its arguments on several lines',
    stream: streams.chatCall('{"city":"Oslo","at":[1,{}]}'),
    contains: ['  get_weather(call_1)\n    {\n      "city": "Oslo",\n      "at": [\n        1,\n        {}\n      ]\n    }\n'],
  },
  {
    name: 'numbers beyond the safe range keep their digits',
    stream: streams.chatCall('{"id":12345678901234567890}'),
    contains: ['12345678901234567890'],
  },
  {
    name: 'cut arguments',
    stream: streams.chatCall('{"city": "Os', 'length'),
    contains: ['truncated; do not run', '\n    {"city": "Os\n'],
  },
  {
    name: 'the wire value is shown where it differs',
    stream: streams.chatCall('{}', 'stop'),
    contains: ['tool_calls (on the wire: "stop")'],
  },
  { name: 'the wire value is hidden where it is the same', stream: streams.chat('x'), contains: [/^finish +stop$/m] },
  { name: 'usage', stream: streams.anthropic('x'), contains: [/^usage +input 3 · output 5/m] },
  { name: 'an early end', stream: streams.cutChat('so far'), contains: ['so far', 'none: the stream ended early'] },
  {
    name: 'an error with its explanation',
    stream: streams.chatError('slow down'),
    contains: ['rate_limit_exceeded: slow down', 'wait, then retry'],
  },
  {
    name: 'violations: severity, rule, message, place',
    stream: streams.chatCall('{}').replaceAll('"index":0,"id"', '"id"'),
    contains: [/error {2}chat\/tool-index-missing {2}A tool-call delta has no index\. Sluice uses the id.* \(byte \d+\)/],
  },
  {
    name: 'violations: the form of a vendor is an info, as the doctor judges it',
    stream: streams.chatCall('{}', 'stop'),
    contains: [/info +chat\/finish-stop-with-calls {2}finish_reason is "stop" .* \(byte \d+\)/],
  },
  {
    name: '--split-think',
    argv: ['--split-think'],
    stream: streams.chat('<think>hm</think>\n\nyes'),
    contains: ['\nreasoning\nhm\n\ntext\nyes\n'],
    lacks: ['<think>'],
  },
  { name: 'think tags are kept by default', stream: streams.chat('<think>hm</think>yes'), contains: ['<think>hm</think>yes'] },
  {
    name: 'control characters in the text',
    stream: streams.chat('a\u001b[2Jb\u009bc\u0007\u007f\u202e\r\nd\te\rf'),
    contains: ['a\\u001b[2Jb\\u009bc\\u0007\\u007f\\u202e\nd\te\\rf'],
  },
  {
    name: 'control characters in the arguments',
    stream: streams.chatCall('{"a":"\u009b1m\u202e"}'),
    contains: ['"\\u009b1m\\u202e"'],
  },
  {
    name: 'control characters in the name',
    stream: streams.chatCall('{}', 'tool_calls', 'rm\u001b[8m\nok'),
    contains: ['rm\\u001b[8m\\nok(call_1)'],
  },
  {
    name: 'control characters in an error',
    stream: streams.chatError('x\u001b]0;title\u0007\ny'),
    contains: ['x\\u001b]0;title\\u0007\\ny'],
    lacks: [ESC],
  },
];

describe('assemble, human-readable output', () => {
  test.each(ROWS)('$name', async ({ argv = [], stream, world, contains = [], lacks = [] }) => {
    const { stdout } = await run(['assemble', ...argv, 'a'], { ...world, files: { a: stream } });
    for (const piece of contains) expect(stdout).toMatch(piece);
    for (const piece of lacks) expect(stdout).not.toMatch(piece);
  });

  test.each([40, 60, 80, 200])('only model text is wider than %i columns', async (columns) => {
    const world: World = {
      terminals: ['stdout'],
      columns,
      env: { NO_COLOR: '1' },
      files: { a: streams.chatCall('{}', 'stop'), b: '<html>', c: streams.cutChat('x') },
    };
    const { stdout } = await run(['assemble', 'a', 'b', 'c', 'gone'], world);
    expect(stdout.split('\n').filter((line) => line.length > columns && !line.includes('chatcmpl'))).toEqual([]);
  });

  test('control characters in the name of a file', async () => {
    const { stdout, stderr } = await run(['assemble', 'x\u001b[2J\ny']);
    expect(stdout + stderr).not.toContain(ESC);
    expect(stderr).toContain('sluice: x\\u001b[2J\\ny: ENOENT');
  });

  test('on a terminal a failure is reported once', async () => {
    const { code, stdout, stderr } = await run(['assemble', 'gone'], TERMINAL);
    expect(code).toBe(2);
    expect(stdout).toContain('ENOENT: no such file');
    expect(stderr).toBe('');
  });

  test('a full disk is reported as an I/O error', async () => {
    const { code, stderr } = await run(['assemble', 'a'], {
      files: { a: streams.chat('1') },
      stdoutError: systemError('ENOSPC'),
    });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: 'sluice: writing the output failed: no space is left on the device; free some\n',
    });
  });

  test('a closed pipe ends quietly', async () => {
    const files = { a: streams.chat('1'), b: streams.chat('2') };
    for (const argv of [['assemble', 'a', 'b'], ['assemble', '--json', 'a', 'b'], ['--help']]) {
      const { code, stderr } = await run(argv, { files, stdoutError: systemError('EPIPE') });
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    }
  });
});
