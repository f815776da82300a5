import { describe, expect, test } from 'vitest';
import { jsonLines, run, type World } from '../../packages/gateway/test/fake-io.ts';
import * as streams from '../../packages/gateway/test/streams.ts';

const ANSWER = JSON.stringify({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude',
  content: [{ type: 'text', text: 'hello' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 3, output_tokens: 5 },
});

const REQUEST = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] });

const long = streams.chat('so', ...Array.from(' it goes on and on'));

const PROPERTIES = [
  'split in two',
  'byte by byte',
  'split at random',
  'written again as openai-chat',
  'to anthropic-messages and back',
  'to openai-responses and back',
  'to gemini and back',
];

const held = (names: readonly string[]) => names.map((property) => ({ property, tried: expect.any(Number), failed: 0 }));

/** A machine on which the first of every two jobs takes a hundred times as long: the longer stream is the first of them. */
function slowing(): () => number {
  let [calls, time] = [0, 0];
  return () => (time += Math.floor(calls++ / 6) % 2 === 0 ? 100 : 1);
}

interface Row {
  name: string;
  argv: string[];
  world: World;
  code: number;
  lines: object[];
  stderr?: string;
}

const ROWS: Row[] = [
  {
    name: 'a stream',
    argv: ['a'],
    world: { files: { a: streams.chat('hi') } },
    code: 0,
    lines: [
      {
        file: 'a',
        protocol: 'openai-chat',
        bytes: streams.chat('hi').length,
        properties: held(PROPERTIES),
        failures: [],
        error: null,
      },
    ],
  },
  {
    name: 'a stream that is long enough to be made longer',
    argv: ['a'],
    world: { files: { a: long } },
    code: 0,
    lines: [{ properties: [...held(PROPERTIES), { property: 'linear cost', tried: 2, failed: 0 }] }],
  },
  {
    name: 'work that grows faster than the stream',
    argv: ['a'],
    world: { files: { a: long }, cpuTime: slowing() },
    code: 1,
    lines: [{ failures: [{ property: 'linear cost', message: expect.stringContaining('times as long to read'), case: null }] }],
    stderr: 'sluice: a: linear cost: 8 times the length',
  },
  {
    name: 'a whole response from standard input',
    argv: [],
    world: { stdin: ANSWER },
    code: 0,
    lines: [{ file: '-', protocol: 'anthropic-messages', failures: [] }],
  },
  {
    name: 'a stream that ended early, and one that is an error',
    argv: ['a', 'b', '--protocol', 'openai'],
    world: { files: { a: streams.cutChat('so f'), b: streams.chatError('slow down') } },
    code: 0,
    lines: [{ failures: [] }, { failures: [] }],
  },
  {
    name: 'an error that any protocol could have written',
    argv: ['a'],
    world: { files: { a: streams.chatError('slow down') } },
    code: 1,
    lines: [{ protocol: null, error: { code: 'not_a_stream', message: expect.stringContaining('--protocol') } }],
  },
  {
    name: 'notes of conversions',
    argv: ['a'],
    world: { files: { a: streams.chatAudio } },
    code: 0,
    lines: [{ notes: { 'DROPPED content.audio': expect.any(Number) } }],
  },
  {
    name: 'missing, empty and invalid files do not stop the others',
    argv: ['gone', 'empty', 'request', 'a'],
    world: { files: { empty: '', request: REQUEST, a: streams.chat('hi') } },
    code: 2,
    lines: [
      { file: 'gone', protocol: null, properties: [], error: { code: 'ENOENT' } },
      { file: 'empty', error: { code: 'empty_stream' } },
      { file: 'request', error: { code: 'not_a_stream' } },
      { file: 'a', error: null },
    ],
    stderr: 'sluice: gone: ENOENT: no such file',
  },
  {
    name: 'a folder: files that are not responses are skipped',
    argv: ['dir'],
    world: {
      folders: { dir: ['dir/a', 'dir/b', 'dir/c'] },
      files: { 'dir/a': streams.gemini('x'), 'dir/b': REQUEST, 'dir/c': '' },
    },
    code: 0,
    lines: [{ file: 'dir/a', protocol: 'gemini' }],
    stderr: 'sluice: 2 files skipped: not a response\n',
  },
  {
    name: 'an empty folder',
    argv: ['dir'],
    world: { folders: { dir: [] } },
    code: 2,
    lines: [{ error: { code: 'empty_folder' } }],
  },
  {
    name: 'a folder without a response',
    argv: ['dir'],
    world: { folders: { dir: ['dir/b'] }, files: { 'dir/b': REQUEST } },
    code: 1,
    lines: [],
  },
];

describe('sluice prove --json', () => {
  test.each(ROWS)('$name', async ({ argv, world, code, lines, stderr = '' }) => {
    const outcome = await run(['prove', '--json', ...argv], world);
    expect(jsonLines(outcome)).toMatchObject(lines);
    expect(outcome.code).toBe(code);
    if (code === 0) expect(outcome.stderr).toBe(stderr);
    else expect(outcome.stderr).toContain(stderr);
  });
});

test('human-readable output has one line per input and a summary', async () => {
  const world = { files: { a: streams.chat('hi'), 'b\u001b': streams.gemini('x') }, folders: { dir: ['b\u001b', 'request'] } };
  const { code, stdout } = await run(['prove', 'a', 'dir', 'gone'], { ...world, files: { ...world.files, request: REQUEST } });
  expect(code).toBe(2);
  expect(stdout).toMatch(/^✓ a {2}openai-chat, \d+ checks\n✓ b\\u001b {2}gemini, \d+ checks\n✗ gone {2}ENOENT: no such file/);
  expect(stdout).toMatch(/\nproperties\n {2}split in two +\d+\n/);
  expect(stdout).toMatch(/\n2 responses, [\d,]+ checks: all hold\n$/);
});

test('an unknown protocol is a usage error', async () => {
  expect(await run(['prove', '--protocol', 'opnai', 'a'])).toMatchObject({ code: 2, stderr: expect.stringContaining('openai') });
});
