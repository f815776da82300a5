import { describe, expect, test } from 'vitest';
import { jsonLines, type Outcome, run, systemError, type World } from './fake-io.ts';
import * as streams from './streams.ts';

interface Row {
  name: string;
  argv?: string[];
  world: World;
  code: number;
  /** One for every line on stdout, in order: subsets. */
  lines: object[];
  stderr?: string[];
}

const GOOD = { error: null, complete: true, finish_reason: 'stop' };

async function* brokenOff(): AsyncGenerator<Uint8Array, void, undefined> {
  yield new TextEncoder().encode(streams.cutChat('so far'));
  throw systemError('EIO');
}

const ROWS: Row[] = [
  {
    name: 'chat',
    world: { files: { a: streams.chat('hi') } },
    code: 0,
    lines: [{ file: 'a', protocol: 'openai-chat', id: 'chatcmpl-1', model: 'm-1', text: 'hi', ...GOOD }],
  },
  {
    name: 'anthropic, detected from the bytes',
    world: { files: { a: streams.anthropic('hi') } },
    code: 0,
    lines: [{ protocol: 'anthropic-messages', id: 'msg_1', text: 'hi', ...GOOD }],
  },
  {
    name: 'responses, detected from the bytes',
    world: { files: { a: streams.responses('hi') } },
    code: 0,
    lines: [{ protocol: 'openai-responses', id: 'resp_1', text: 'hi', ...GOOD }],
  },
  {
    name: 'gemini, detected from the bytes',
    world: { files: { a: streams.gemini('hi') } },
    code: 0,
    lines: [{ protocol: 'gemini', text: 'hi', ...GOOD }],
  },
  {
    name: 'an alias as the protocol',
    argv: ['--protocol', 'openai', 'a'],
    world: { files: { a: streams.chat('hi') } },
    code: 0,
    lines: [{ protocol: 'openai-chat', text: 'hi' }],
  },
  {
    name: 'the option after the file',
    argv: ['a', '--protocol=anthropic'],
    world: { files: { a: streams.anthropic('hi') } },
    code: 0,
    lines: [{ protocol: 'anthropic-messages' }],
  },
  { name: '- is stdin', argv: ['-'], world: { stdin: streams.chat('in') }, code: 0, lines: [{ file: '-', text: 'in' }] },
  { name: 'no file: stdin', argv: [], world: { stdin: streams.chat('in') }, code: 0, lines: [{ file: '-', text: 'in' }] },
  {
    name: 'a file named like an option',
    argv: ['--', '--json'],
    world: { files: { '--json': streams.chat('x') } },
    code: 0,
    lines: [{ file: '--json', text: 'x' }],
  },
  {
    name: 'the file as it was given',
    argv: ['./a//b.sse'],
    world: { files: { './a//b.sse': streams.chat('x') } },
    code: 0,
    lines: [{ file: './a//b.sse' }],
  },
  {
    name: 'a missing file',
    world: {},
    code: 2,
    lines: [
      {
        file: 'a',
        protocol: null,
        text: '',
        complete: false,
        finish_reason: null,
        error: { code: 'ENOENT', canonical: 'NOT_FOUND' },
      },
    ],
    stderr: ['sluice: a: ENOENT: no such file'],
  },
  {
    name: 'a missing file of a known protocol',
    argv: ['--protocol', 'gemini', 'a'],
    world: {},
    code: 2,
    lines: [{ file: 'a', protocol: 'gemini', error: { code: 'ENOENT' }, message: { error: { code: 'NOT_FOUND' } } }],
  },
  {
    name: 'a directory',
    world: { files: { a: systemError('EISDIR') } },
    code: 2,
    lines: [{ error: { code: 'EISDIR', canonical: 'INVALID_INPUT' } }],
    stderr: ['name a file in it'],
  },
  {
    name: 'no permission',
    world: { files: { a: systemError('EACCES') } },
    code: 2,
    lines: [{ error: { code: 'EACCES', canonical: 'PERMISSION' } }],
    stderr: ['permission denied'],
  },
  {
    name: 'an error without a known code',
    world: { files: { a: systemError('ESTALE') } },
    code: 2,
    lines: [{ error: { code: 'ESTALE', canonical: 'INTERNAL', message: expect.stringContaining('ESTALE: made up') } }],
  },
  {
    name: 'a URL',
    argv: ['https://x.test/v1'],
    world: {},
    code: 2,
    lines: [{ file: 'https://x.test/v1', error: { code: 'ENOENT', message: expect.stringContaining('curl -N') } }],
  },
  {
    name: 'an empty file',
    world: { files: { a: '' } },
    code: 1,
    lines: [{ error: { code: 'empty_stream' }, complete: false, finish_reason: null }],
  },
  {
    name: 'HTML',
    world: { files: { a: '<!doctype html><h1>502</h1>' } },
    code: 1,
    lines: [{ error: { code: 'not_a_stream', message: expect.stringContaining('HTML') } }],
  },
  {
    name: 'prose',
    world: { files: { a: 'Dear customer,\nall is well.\n' } },
    code: 1,
    lines: [{ error: { code: 'not_a_stream' } }],
  },
  {
    name: 'binary',
    world: { files: { a: Uint8Array.from({ length: 4096 }, (_, i) => (i * 197) % 256) } },
    code: 1,
    lines: [{ error: { code: expect.stringMatching(/^(not_a_stream|empty_stream)$/) }, text: '' }],
  },
  {
    name: 'a stream that ends early',
    world: { files: { a: streams.cutChat('so far') } },
    code: 1,
    lines: [{ text: 'so far', complete: false, finish_reason: null, error: null }],
    stderr: ['sluice: a: the stream ended early'],
  },
  {
    name: 'an error in the stream',
    world: { files: { a: streams.chatError('slow down') } },
    code: 1,
    lines: [{ error: { code: 'rate_limit_exceeded', message: 'slow down', canonical: 'RATE_LIMIT' } }],
    stderr: ['rate_limit_exceeded: slow down'],
  },
  {
    name: 'a read error in the middle',
    world: { files: { a: brokenOff } },
    code: 2,
    lines: [{ text: 'so far', complete: false, error: { code: 'EIO' } }],
  },
  {
    name: 'truncated arguments are listed and do not fail the command',
    world: { files: { a: streams.chatCall('{"city": "Os', 'length') } },
    code: 0,
    lines: [{ invalid_arguments: [0], tool_calls: [{ arguments: '{"city": "Os' }], finish_reason: 'length' }],
  },
  {
    name: 'one bad among good ones',
    argv: ['a', 'gone', 'cut', 'b'],
    world: { files: { a: streams.chat('1'), cut: streams.cutChat('2'), b: streams.chat('3') } },
    code: 2,
    lines: [
      { file: 'a', text: '1', ...GOOD },
      { file: 'gone', error: { code: 'ENOENT' } },
      { file: 'cut', text: '2', complete: false },
      { file: 'b', text: '3', ...GOOD },
    ],
    stderr: ['2 of 4 inputs failed'],
  },
  {
    name: 'the same file twice',
    argv: ['a', 'a'],
    world: { files: { a: streams.chat('1') } },
    code: 0,
    lines: [{ text: '1' }, { text: '1' }],
  },
  {
    name: '--split-think with tags',
    argv: ['--split-think', 'a'],
    world: { files: { a: streams.chat('<think>hm</think>yes') } },
    code: 0,
    lines: [{ text: '<think>hm</think>yes', extras: { think_split: { reasoning: 'hm', text: 'yes' } } }],
  },
  {
    name: '--split-think without tags',
    argv: ['--split-think', 'a'],
    world: { files: { a: streams.chat('yes') } },
    code: 0,
    lines: [{ text: 'yes', extras: { think_split: { reasoning: '', text: 'yes' } } }],
  },
];

describe('assemble --json', () => {
  test.each(ROWS)('$name', async ({ argv = ['a'], world, code, lines, stderr = [] }) => {
    const outcome = await run(['assemble', '--json', ...argv], world);
    expect(jsonLines(outcome)).toEqual(lines.map((line) => expect.objectContaining(nested(line))));
    expect(outcome.code).toBe(code);
    for (const piece of stderr) expect(outcome.stderr).toContain(piece);
    if (code === 0) expect(outcome.stderr).toBe('');
  });

  test('the fields have the documented order', async () => {
    const [line] = jsonLines(await run(['assemble', '--json', 'a'], { files: { a: streams.chat('hi') } }));
    const contract =
      'file protocol id model role text reasoning refusal tool_calls finish_reason wire_finish_reason usage wire_usage complete invalid_arguments error extras diagnostics notes message completion';
    expect(Object.keys(line ?? {}).join(' ')).toBe(contract);
  });

  test('stdout has no control characters or line breaks, and the value is unchanged', async () => {
    const text = 'a\u001b[2J\u009b31m\u007f\u2028\u2029\u0085\u202eb\r\n\tc';
    const outcome = await run(['assemble', '--json', 'a'], { files: { a: streams.chat(text) } });
    expect(unsafeCharacters(outcome)).toEqual([]);
    expect(jsonLines(outcome)).toMatchObject([{ text }]);
  });

  test('a bug with one file does not stop the others', async () => {
    const world = { files: { bad: new TypeError('x is not a function'), a: streams.chat('1') } };
    const outcome = await run(['assemble', '--json', 'bad', 'a'], world);
    expect(jsonLines(outcome)).toMatchObject([
      { file: 'bad', error: { code: 'internal_error', canonical: 'INTERNAL' } },
      { text: '1' },
    ]);
    expect(outcome.code).toBe(1);
    expect(outcome.stderr).toContain('internal error: TypeError: x is not a function');
    expect(outcome.stderr).not.toMatch(/^\s+at /m);
    const debug = await run(['assemble', '--json', 'bad'], { ...world, env: { SLUICE_DEBUG: '1' } });
    expect(debug.stderr).toMatch(/^\s+at /m);
  });
});

/** Subset match at every level, as the rows mean it. */
function nested(value: object): Record<string, unknown> {
  const isPlain = (item: unknown): item is object =>
    typeof item === 'object' && item !== null && Object.getPrototypeOf(item) === Object.prototype;
  const subset = (item: unknown): unknown => {
    if (Array.isArray(item)) return item.map(subset);
    return isPlain(item) ? expect.objectContaining(nested(item)) : item;
  };
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, subset(item)]));
}

const unsafeCharacters = ({ stdout }: Outcome): string[] =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  stdout.slice(0, -1).match(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g) ?? [];
