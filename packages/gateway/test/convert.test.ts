import { describe, expect, test } from 'vitest';
import { jsonLines, type Outcome, run, systemError, type World } from './fake-io.ts';
import * as streams from './streams.ts';

const QUESTION = JSON.stringify({ model: 'gpt-5', messages: [{ role: 'user', content: 'hi' }], max_tokens: 9 });
const LOSSY = JSON.stringify({
  model: 'gpt-5',
  messages: [{ role: 'user', content: 'hi' }],
  max_tokens: 9,
  seed: 7,
  house: 'red',
});
const ANSWER = JSON.stringify({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude',
  content: [
    { type: 'thinking', thinking: 'hm', signature: 'c2ln' },
    { type: 'text', text: 'hello' },
  ],
  stop_reason: 'end_turn',
  usage: { input_tokens: 3, output_tokens: 5 },
});
const OVERLOADED = JSON.stringify({ type: 'error', error: { type: 'overloaded_error', message: 'later' } });

const toAnthropic = ['--from', 'openai', '--to', 'anthropic'];
const toChat = ['--from', 'anthropic', '--to', 'openai'];

async function* brokenOff(): AsyncGenerator<Uint8Array, void, undefined> {
  yield new TextEncoder().encode(streams.cutChat('so far'));
  throw systemError('EIO');
}

interface Row {
  name: string;
  argv: string[];
  world?: World;
  code: number;
  /** Subsets of the lines on stdout. */
  lines: object[];
  stderr?: string[];
}

const LONG_ID = `{"id":"m","type":"message","role":"assistant","model":"c","stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2},"content":[{"type":"tool_use","id":"t","name":"f","input":{"id":12345678901234567890}}]}`;

const ROWS: Row[] = [
  {
    name: 'a response with a number that JSON.parse changes',
    argv: ['response', ...toChat, '--strict', 'a'],
    world: { files: { a: LONG_ID } },
    code: 0,
    lines: [
      {
        body: { choices: [{ message: { tool_calls: [{ function: { arguments: '{"id":12345678901234567890}' } }] } }] },
        notes: [],
      },
    ],
  },
  {
    name: 'the same for a client that takes values: --strict rejects it',
    argv: ['response', '--from', 'anthropic', '--to', 'gemini', '--strict', 'a'],
    world: { files: { a: LONG_ID } },
    code: 1,
    lines: [{ error: { message: expect.stringContaining('loses precision') } }],
  },
  {
    name: 'a request',
    argv: ['request', ...toAnthropic, 'a'],
    world: { files: { a: QUESTION } },
    code: 0,
    lines: [{ file: 'a', body: { model: 'gpt-5', max_tokens: 9, messages: [{ role: 'user' }] }, notes: [] }],
  },
  {
    name: 'with the model of the upstream',
    argv: ['request', ...toAnthropic, '--model', 'claude-haiku-4-5', 'a'],
    world: { files: { a: QUESTION } },
    code: 0,
    lines: [{ body: { model: 'claude-haiku-4-5' } }],
  },
  {
    name: 'losses, each with its place',
    argv: ['request', ...toAnthropic, 'a'],
    world: { files: { a: LOSSY } },
    code: 0,
    lines: [
      {
        notes: expect.arrayContaining([
          expect.objectContaining({ code: 'DROPPED', path: '/seed', feature: 'parameters.seed' }),
          expect.objectContaining({ code: 'DROPPED', path: '/house', feature: 'unknown.house' }),
        ]),
      },
    ],
  },
  {
    name: 'losses under --strict, and one bad file stops no other',
    argv: ['request', ...toAnthropic, '--strict', 'a', 'gone', 'b'],
    world: { files: { a: LOSSY, b: QUESTION } },
    code: 2,
    lines: [
      { file: 'a', body: null, error: { code: 'INCOMPATIBLE_FEATURE' } },
      { file: 'gone', body: null, error: { code: 'ENOENT' } },
      { file: 'b', body: { max_tokens: 9 } },
    ],
    stderr: ['sluice: a: INCOMPATIBLE_FEATURE', 'sluice: gone: ENOENT: no such file', '2 of 3 inputs failed'],
  },
  {
    name: 'a request that is wrong',
    argv: ['request', ...toAnthropic, 'a'],
    world: { files: { a: '{"model":"m"}' } },
    code: 1,
    lines: [{ body: null, error: { code: 'MISSING_REQUIRED_FIELD', param: 'messages' } }],
  },
  {
    name: 'no JSON, nothing at all, and a stream',
    argv: ['request', ...toAnthropic, 'a', 'b', 'c'],
    world: { files: { a: '{"model"', b: ' ', c: streams.chat('hi') } },
    code: 1,
    lines: [
      { error: { code: 'not_json', message: expect.stringContaining('not JSON') } },
      { error: { message: 'the input is empty' } },
      { error: { message: expect.stringContaining('sluice convert stream') } },
    ],
  },
  {
    name: 'the same protocol: repair',
    argv: ['request', '--from', 'openai', '--to', 'openai', '-'],
    world: { stdin: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x' }], tools: [], tool_choice: 'auto' }) },
    code: 0,
    lines: [{ file: '-', body: { model: 'm', messages: [{ role: 'user', content: 'x' }] } }],
  },
  {
    name: 'a request of Gemini, which names no model',
    argv: ['request', '--from', 'gemini', '--to', 'openai', '--model', 'gpt-5', 'a'],
    world: { files: { a: JSON.stringify({ contents: [{ role: 'user', parts: [{ text: 'hi' }] }] }) } },
    code: 0,
    lines: [{ body: { model: 'gpt-5', messages: [{ role: 'user', content: 'hi' }] } }],
  },
  {
    name: 'a response',
    argv: ['response', ...toChat, 'a'],
    world: { files: { a: ANSWER } },
    code: 0,
    lines: [{ body: { object: 'chat.completion', choices: [{ message: { content: 'hello', reasoning_content: 'hm' } }] } }],
  },
  {
    name: 'a response, under the name that the client asked for',
    argv: ['response', ...toChat, '--request', 'q', 'a'],
    world: { files: { a: ANSWER, q: QUESTION } },
    code: 0,
    lines: [{ body: { model: 'gpt-5', choices: [{ message: { content: 'hello' } }] } }],
  },
  {
    name: 'an error in the place of a response',
    argv: ['response', ...toChat, 'a'],
    world: { files: { a: OVERLOADED } },
    code: 1,
    lines: [{ body: { error: { message: 'later' } }, status: 503, error: { code: 'OVERLOADED' } }],
  },
  {
    name: 'an error: its body alone, and the answer around it',
    argv: ['error', ...toChat, 'a', 'b'],
    world: {
      files: { a: OVERLOADED, b: JSON.stringify({ status: 529, headers: { 'Retry-After': '3' }, body: JSON.parse(OVERLOADED) }) },
    },
    code: 0,
    lines: [
      { status: 503, body: { error: { message: 'later' } } },
      { status: 503, body: { error: { message: 'later' } } },
    ],
  },
  {
    name: 'a stream is one text',
    argv: ['stream', ...toAnthropic, 'a'],
    world: { files: { a: streams.chat('hi') } },
    code: 0,
    lines: [{ body: expect.stringMatching(/^event: message_start\n[\s\S]*"hi"[\s\S]*event: message_stop\n/), notes: [] }],
  },
  {
    name: 'streams that fail, end early, break off, or are none',
    argv: ['stream', ...toAnthropic, 'a', 'b', 'c', 'd', 'e'],
    world: { files: { a: streams.chatError('slow down'), b: streams.cutChat('so f'), c: brokenOff, d: 'hello', e: '' } },
    code: 2,
    lines: [
      { body: expect.stringContaining('event: error'), error: { canonical: 'RATE_LIMIT' } },
      { body: expect.stringMatching(/"so f"[\s\S]*event: error/), error: { canonical: 'STREAM_TRUNCATED' } },
      { body: expect.stringMatching(/"so far"[\s\S]*event: error/), error: { code: 'EIO' } },
      { body: expect.stringContaining('event: error'), error: { code: 'not_a_stream' } },
      { body: expect.stringContaining('event: error'), error: { code: 'empty_stream' } },
    ],
  },
  {
    name: 'a stream under --strict',
    argv: ['stream', '--from', 'openai', '--to', 'anthropic', '--strict', 'a'],
    world: { files: { a: streams.chatAudio } },
    code: 1,
    lines: [{ body: expect.stringContaining('event: error'), error: { code: 'INCOMPATIBLE_FEATURE' } }],
  },
  {
    name: 'a request at the upstream will do for --request',
    argv: ['stream', '--from', 'gemini', '--to', 'openai', '--request', 'q', 'a'],
    world: { files: { a: streams.gemini('hi'), q: JSON.stringify({ contents: [{ role: 'user', parts: [{ text: 'x' }] }] }) } },
    code: 0,
    lines: [{ body: expect.stringContaining('"hi"') }],
  },
];

describe('sluice convert --json', () => {
  test.each(ROWS)('$name', async ({ argv, world, code, lines, stderr = [] }) => {
    const outcome = await run(['convert', ...argv, '--json'], world);
    expect(jsonLines(outcome)).toMatchObject(lines);
    expect(outcome.code).toBe(code);
    for (const piece of stderr) expect(outcome.stderr).toContain(piece);
    if (code === 0) expect(outcome.stderr).toBe('');
  });
});

describe('sluice convert for people', () => {
  const convert = (argv: string[], world: World): Promise<Outcome> => run(['convert', ...argv], world);

  test('a body a line, notes beside it', async () => {
    const { code, stdout, stderr } = await convert(['request', ...toAnthropic, 'a'], { files: { a: LOSSY } });
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ model: 'gpt-5' });
    expect(stdout.split('\n')).toHaveLength(2);
    expect(stderr).toContain('a: DROPPED /seed: ');
    expect(stderr).toContain('a: DROPPED /house: field "house" is specific to openai-chat; dropped\n');
  });

  test('spread over lines on a terminal, without anything that it obeys', async () => {
    const a = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x\u202e\u001b[2J' }], max_tokens: 1 });
    const { stdout } = await convert(['request', ...toAnthropic, 'a'], { files: { a }, terminals: ['stdout'] });
    expect(stdout).toContain('\n  "model": "m"');
    for (const mark of ['\u001b', '\u202e']) expect(stdout).not.toContain(mark);
  });

  test('a stream is its bytes', async () => {
    const { code, stdout, stderr } = await convert(['stream', '--from', 'openai', '--to', 'gemini', 'a'], {
      files: { a: streams.chat('grüße') },
    });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^data: \{[^\n]*"text":"grüße"[^\n]*\r\n\r\n/);
  });

  test('a stream on a terminal has nothing that it obeys', async () => {
    const { stdout } = await convert(['stream', ...toAnthropic, 'a'], {
      files: { a: streams.chat('x\u202e') },
      terminals: ['stdout'],
    });
    expect(stdout).not.toContain('\u202e');
  });

  test('what failed, and what to do', async () => {
    const { code, stdout, stderr } = await convert(['response', ...toChat, 'a'], {
      files: { a: OVERLOADED },
      terminals: ['stderr'],
      env: { NO_COLOR: '1' },
    });
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ error: { message: 'later' } });
    expect(stderr).toContain('sluice: a: OVERLOADED: later\n  The provider is overloaded; wait, then retry.\n');
  });

  test.each([
    ['gone', {}, 2, 'no such file'],
    ['q', { q: '{' }, 1, '--request q:'],
    ['q', { q: '{"model":"m"}' }, 1, 'messages: is required'],
  ])('a --request that cannot be read: %s', async (name, files, expected, words) => {
    const { code, stdout, stderr } = await convert(['response', ...toChat, '--request', name, 'a'], {
      files: { a: ANSWER, ...files },
    });
    expect({ code, stdout }).toEqual({ code: expected, stdout: '' });
    expect(stderr).toContain(words);
  });

  test('exits quietly on EPIPE', async () => {
    const world = { files: { a: QUESTION }, stdoutError: systemError('EPIPE') };
    expect(await convert(['request', ...toAnthropic, 'a', 'a'], world)).toMatchObject({ code: 0, stderr: '' });
  });
});

describe('sluice convert --out', () => {
  const convert = (argv: string[], world: World): Promise<Outcome> => run(['convert', ...argv, '--out', 'dir'], world);

  test('a file each, with its notes beside it', async () => {
    const { code, stdout, files, stderr } = await convert(['request', ...toAnthropic, 'x/a.json', 'b.json'], {
      files: { 'x/a.json': LOSSY, 'b.json': QUESTION },
    });
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
    expect(Object.keys(files)).toEqual(['dir/a.json', 'dir/a.json.notes.json', 'dir/b.json', 'dir/b.json.notes.json']);
    expect(JSON.parse(files['dir/a.json'] ?? '')).toMatchObject({ model: 'gpt-5' });
    expect(JSON.parse(files['dir/a.json.notes.json'] ?? '')).toEqual(
      expect.arrayContaining([expect.objectContaining({ code: 'DROPPED', path: '/seed' })]),
    );
    expect(JSON.parse(files['dir/b.json.notes.json'] ?? '')).toEqual([]);
    expect(stderr).toContain('dir/b.json: written; nothing lost');
  });

  test('with --json, the lines too', async () => {
    const outcome = await convert(['request', ...toAnthropic, '--json', 'a'], { files: { a: QUESTION } });
    expect(jsonLines(outcome)).toMatchObject([{ file: 'a', body: { max_tokens: 9 }, notes: [] }]);
    expect(Object.keys(outcome.files)).toEqual(['dir/a', 'dir/a.notes.json']);
  });

  test('standard input has a name', async () => {
    const { files } = await convert(['request', ...toAnthropic], { stdin: QUESTION });
    expect(Object.keys(files)).toEqual(['dir/stdin', 'dir/stdin.notes.json']);
  });

  test('streams that fail or end early are written, ending in an error of the target', async () => {
    const { code, files } = await convert(['stream', ...toAnthropic, 'a', 'b'], {
      files: { a: streams.cutChat('so f'), b: streams.chatError('slow down') },
    });
    expect(code).toBe(1);
    expect(files['dir/a']).toMatch(/"so f"[\s\S]*event: error\n/);
    expect(files['dir/b']).toContain('event: error\n');
    expect(Object.keys(files)).toHaveLength(4);
  });

  test('what cannot be converted leaves nothing behind', async () => {
    const { code, files } = await convert(['request', ...toAnthropic, '--strict', 'a', 'gone', 'bad'], {
      files: { a: LOSSY, bad: '[' },
    });
    expect({ code, files }).toEqual({ code: 2, files: {} });
  });

  test('a file that cannot be written fails its input only', async () => {
    const { code, files, stderr } = await convert(['request', ...toAnthropic, 'a', 'b'], {
      files: { a: QUESTION, b: QUESTION },
      createErrors: { 'dir/a': systemError('EACCES') },
    });
    expect(code).toBe(1);
    expect(Object.keys(files)).toEqual(['dir/b', 'dir/b.notes.json']);
    expect(stderr).toContain('EACCES: writing dir/a failed: permission denied');
  });
});
