import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createStreamConverter, type ProtocolId } from '@sluice/core';
import { CODECS } from '@sluice/core/engine';
import { describe, expect, test } from 'vitest';
import { jsonLines, run, type World } from '../../packages/gateway/test/fake-io.ts';
import { listDifferences, readComparable } from '../../packages/lab/src/tape/compare.ts';
import { temporaryFolder } from './tapes.ts';

const chunk = (delta: object, finish: string | null = null, more: object = {}): string =>
  `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }], ...more })}\n\n`;

const END = 'data: [DONE]\n\n';

const call = (args: string, id = 'call_1'): string =>
  chunk({ tool_calls: [{ index: 0, id, type: 'function', function: { name: 'f', arguments: args } }] });

const BASE =
  chunk({ content: 'Hello' }) + chunk({ content: ' world' }) + call('{"a":1,"id":"x"}') + chunk({}, 'tool_calls') + END;

const DIFFERENT: readonly (readonly [string, string, string[]])[] = [
  ['another word', BASE.replace(' world', ' there'), ['content[0].text']],
  ['less', BASE.replace(chunk({ content: ' world' }), ''), ['content[0].text']],
  ['another argument', BASE.replace('\\"a\\":1', '\\"a\\":2'), ['content[1].input.a']],
  ['an argument that is called id', BASE.replace('\\"id\\":\\"x\\"', '\\"id\\":\\"y\\"'), ['content[1].input.id']],
  ['another stop', BASE.replace('"tool_calls"}]', '"length"}]'), ['stop_reason']],
  [
    'a usage',
    BASE.replace(END, chunk({}, null, { choices: [], usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 } }) + END),
    ['usage'],
  ],
  ['no end', chunk({ content: 'Hello world' }) + call('{"a":1,"id":"x"}'), ['stop_reason', 'complete']],
  ['no call', BASE.replace(call('{"a":1,"id":"x"}'), '').replace('"tool_calls"}]', '"stop"}]'), ['content[1]', 'stop_reason']],
];

const SAME: readonly (readonly [string, string])[] = [
  ['itself', BASE],
  [
    'other cuts',
    chunk({ content: 'Hel' }) + chunk({ content: 'lo world' }) + call('{"a":1,"id":"x"}') + chunk({}, 'tool_calls') + END,
  ],
  [
    'another id, model and time',
    BASE.replaceAll('"c1"', '"c2"')
      .replaceAll('"m"', '"n"')
      .replaceAll('"created":1', '"created":2')
      .replaceAll('call_1', 'call_2'),
  ],
  ['other line ends', BASE.replaceAll('\n', '\r\n')],
  ['arguments in another order', BASE.replace('{\\"a\\":1,\\"id\\":\\"x\\"}', '{\\"id\\":\\"x\\",\\"a\\":1}')],
  ['comments', `: hi\n\n${BASE}`],
];

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

const LOOSELY = { all: false, events: false };

const comparedAs = (text: string, how = LOOSELY): unknown => readComparable(bytesOf(text), undefined, how).value;

const pathsOf = (a: string, b: string, how = LOOSELY): string[] =>
  listDifferences(comparedAs(a, how), comparedAs(b, how)).map(({ path }) => path);

describe('comparison of results', () => {
  test.each(SAME)('the same: %s', (_, text) => {
    expect(pathsOf(BASE, text)).toEqual([]);
  });

  test.each(DIFFERENT)('different: %s', (_, text, paths) => {
    expect(pathsOf(BASE, text)).toEqual(paths);
  });

  test('different: arguments whose numbers are equal only after JSON.parse', () => {
    const whole = (id: string): string =>
      `{"id":"m","type":"message","role":"assistant","model":"c","stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2},"content":[{"type":"tool_use","id":"t","name":"f","input":{"id":${id}}}]}`;
    expect(pathsOf(whole('12345678901234567890'), whole('12345678901234567891'))).toEqual(['content[0].numbers[0]']);
    expect(pathsOf(whole('12345678901234567890'), whole('12345678901234567890 '))).toEqual([]);
    const streamed = (id: string): string => BASE.replace('\\"a\\":1', `\\"a\\":${id}`);
    expect(pathsOf(streamed('12345678901234567890'), streamed('12345678901234567891'))).toEqual(['content[1].numbers[0]']);
  });

  const [, counted = ''] = DIFFERENT.find(([title]) => title === 'a usage') ?? [];
  const IN_OTHERS = (['anthropic-messages', 'openai-responses', 'gemini'] as const).flatMap((to) => [
    [to, 'without a usage', BASE] as const,
    [to, 'with one', counted] as const,
  ]);

  test.each(IN_OTHERS)('the same in %s, %s', (to: ProtocolId, _, text) => {
    const converter = createStreamConverter({ from: CODECS['openai-chat'], to: CODECS[to] });
    const converted = Buffer.concat([...converter.push(bytesOf(text)), ...converter.end()]).toString();
    expect(pathsOf(text, converted)).toEqual([]);
  });

  test('--all compares everything', () => {
    const [, other = ''] = SAME[2] ?? [];
    expect(pathsOf(BASE, other, { all: true, events: false })).toEqual(
      expect.arrayContaining(['id', 'model', 'created', 'content[1].id']),
    );
  });

  test('--events ignores chunk boundaries and compares the order', () => {
    const [, cut = ''] = SAME[1] ?? [];
    const how = { all: false, events: true };
    expect(pathsOf(BASE, cut, how)).toEqual([]);
    expect(pathsOf(BASE, BASE.replace(' world', ' there'), how)).toEqual(['events[2].delta.text']);
  });

  test('unreadable bodies are compared by bytes', () => {
    expect(pathsOf('neither', 'neither')).toEqual([]);
    expect(pathsOf('neither', 'nor')).toEqual(['bytes']);
  });

  test('hostile keys', () => {
    expect(listDifferences(JSON.parse('{"__proto__":1}'), JSON.parse('{"constructor":2}'))).toEqual([
      { path: '__proto__', a: 1, b: undefined },
      { path: 'constructor', a: undefined, b: 2 },
    ]);
  });
});

describe('the command', () => {
  const [, changed = ''] = DIFFERENT[0] ?? [];
  const world: World = { files: { 'a.sse': BASE, 'b.sse': changed, 'c.sse': BASE } };

  test('the same', async () => {
    const outcome = await run(['diff', 'a.sse', 'c.sse'], world);
    expect(outcome).toMatchObject({ code: 0, stderr: '' });
    expect(outcome.stdout).toContain('The contents are equal.');
  });

  test('different', async () => {
    const outcome = await run(['diff', 'a.sse', 'b.sse'], world);
    expect(outcome.code).toBe(1);
    expect(outcome.stdout).toContain('content[0].text from character 6');
    expect(outcome.stdout).toContain('- "Hello world"');
    expect(outcome.stdout).toContain('+ "Hello there"');
  });

  test('JSON output, and standard input', async () => {
    const outcome = await run(['diff', '--json', 'a.sse', '-'], { ...world, stdin: changed });
    expect(outcome.code).toBe(1);
    expect(jsonLines(outcome)).toEqual([
      { a: 'a.sse', b: '-', same: false, differences: [{ path: 'content[0].text', a: 'Hello world', b: 'Hello there' }] },
    ]);
  });

  test('tapes, by name or in order', async () => {
    const [one, two] = [temporaryFolder(), temporaryFolder()];
    for (const name of ['1.sse', '2.sse', '3.sse']) writeFileSync(join(one, name), BASE);
    cpSync(one, two, { recursive: true });
    writeFileSync(join(two, '2.sse'), changed);
    writeFileSync(join(two, '4.sse'), BASE);
    const folders = { hasDisk: true } as const;
    const named = await run(['diff', '--json', one, two], folders);
    expect(named.code).toBe(1);
    expect(jsonLines(named).map(({ a, b, same }) => [a, b, same])).toEqual([
      ['1.sse', '1.sse', true],
      ['2.sse', '2.sse', false],
      ['3.sse', '3.sse', true],
      [null, '4.sse', false],
    ]);
    const shown = await run(['diff', one, two], folders);
    expect(shown.stdout).toContain('same  1.sse\n');
    expect(shown.stdout).toContain('2 of 4 differ\n');
    const other = join(temporaryFolder(), 'x');
    mkdirSync(other);
    for (const name of ['x.sse', 'y.sse', 'z.sse']) writeFileSync(join(other, name), BASE);
    expect((await run(['diff', one, other], folders)).code).toBe(0);
  });

  test.each<[string, readonly string[], string]>([
    ['one thing', ['a.sse'], 'name two'],
    ['three things', ['a.sse', 'b.sse', 'c.sse'], 'only two inputs'],
    ['stdin twice', ['-', '-'], 'only once'],
    ['no file', ['a.sse', 'd.sse'], 'no such file'],
    ['no protocol', ['--protocol', 'antropic', 'a.sse', 'b.sse'], 'did you mean "anthropic"'],
  ])('wrong usage: %s', async (_, argv, message) => {
    const outcome = await run(['diff', ...argv], world);
    expect(outcome.code).toBe(2);
    expect(outcome.stderr).toContain(message);
  });

  test('control characters do not reach the terminal', async () => {
    const hostile = BASE.replace(' world', ' \\u001b[31mred\\u202e');
    const { stdout } = await run(['diff', 'a.sse', 'h.sse'], { files: { ...world.files, 'h.sse': hostile } });
    for (const mark of ['\u001b', '\u202e']) expect(stdout).not.toContain(mark);
  });
});
