import { editDistance, suggest } from '@sluice/lab/text';
import { describe, expect, test } from 'vitest';
import { GROUPS } from '../src/cli/command.ts';
import { COMMANDS } from '../src/cli/commands.ts';
import { run, type World } from './fake-io.ts';

interface Row {
  argv: string[];
  world?: World;
  code: number;
  stdout?: string[];
  stderr?: string[];
}

const CONVERT = ['convert', 'request', '--from', 'openai', '--to', 'anthropic'];

const ROWS: Row[] = [
  { argv: ['--help'], code: 0, stdout: ['Usage', 'assemble', 'Exit codes', 'Without a command, the gateway starts'] },
  { argv: ['--port', '80', '--help'], code: 0, stdout: ['Usage', 'Exit codes'] },
  { argv: ['-h'], code: 0, stdout: ['Usage'] },
  { argv: ['help'], code: 0, stdout: ['Usage'] },
  { argv: ['help', '--json'], code: 0, stdout: ['Usage'] },
  { argv: ['help', 'assemble'], code: 0, stdout: ['sluice assemble [--protocol P]', 'Examples'] },
  { argv: ['assemble', '--help'], code: 0, stdout: ['--split-think', 'Examples', 'sluice assemble --json'] },
  { argv: ['assemble', '--wrong', '-h'], code: 0, stdout: ['Examples'] },
  { argv: ['--version'], code: 0, stdout: ['0.2.0'] },
  { argv: ['-V'], code: 0, stdout: ['0.2.0'] },
  { argv: ['--port', 'many'], code: 2, stderr: ['--port must be a number', 'sluice --help'] },
  { argv: ['asemble'], code: 2, stderr: ['unknown command "asemble"; did you mean "assemble"?', 'sluice --help'] },
  { argv: ['hlep'], code: 2, stderr: ['did you mean "help"?'] },
  { argv: ['serve', 'sluice.yaml'], code: 2, stderr: ['unexpected argument "sluice.yaml"', '--config FILE'] },
  { argv: ['repair', 'a', 'b'], code: 2, stderr: ['use --out DIR or --json'] },
  { argv: ['repair', '--out', 'd', 'x/a', 'y/a'], code: 2, stderr: ['"x/a" and "y/a"', 'd/a'] },
  { argv: ['repair', '--out', '.', 'a'], code: 2, stderr: ['would overwrite the input'] },
  { argv: ['zzz'], code: 2, stderr: ['unknown command "zzz"\n'] },
  { argv: ['constructor'], code: 2, stderr: ['unknown command "constructor"'] },
  { argv: ['x\u001b[2J'], code: 2, stderr: ['x\\u001b[2J'] },
  { argv: ['--jsn'], code: 2, stderr: ['unknown option "--jsn"'] },
  { argv: ['help', 'asemble'], code: 2, stderr: ['did you mean "assemble"?'] },
  {
    argv: ['assemble', '--jsn', 'a'],
    code: 2,
    stderr: ['unknown option "--jsn"; did you mean "--json"?', 'sluice assemble --help'],
  },
  { argv: ['assemble', '--protcol', 'gemini'], code: 2, stderr: ['did you mean "--protocol"?'] },
  { argv: ['assemble', '-x'], code: 2, stderr: ['unknown option "-x"'] },
  { argv: ['assemble', '--__proto__=1'], code: 2, stderr: ['unknown option "--__proto__"'] },
  { argv: ['assemble', '--json=yes', 'a'], code: 2, stderr: ['option "--json" takes no value'] },
  { argv: ['assemble', 'a', '--protocol'], code: 2, stderr: ['option "--protocol" needs a value'] },
  { argv: ['assemble', '--protocol', '--json', 'a'], code: 2, stderr: ['option "--protocol" needs a value'] },
  {
    argv: ['assemble', '--protocol', 'opnai', 'a'],
    code: 2,
    stderr: ['unknown protocol "opnai"; did you mean "openai"?', 'openai-chat or openai', 'gemini'],
  },
  { argv: ['assemble', '--protocol', 'toString', 'a'], code: 2, stderr: ['unknown protocol "toString"'] },
  { argv: ['assemble'], world: { terminals: ['stdin'] }, code: 2, stderr: ['no input', 'sluice assemble --help'] },
  { argv: ['assemble', '-', 'a', '-'], code: 2, stderr: ['only once'] },
  { argv: ['convert', '--help'], code: 0, stdout: ['--request FILE', '--strict', 'Examples', 'sluice convert stream'] },
  { argv: ['help', 'convert'], code: 0, stdout: ['sluice convert stream|response [--from P] --to Q'] },
  { argv: ['convert'], code: 2, stderr: ['name what to convert: request, response, stream, error', 'sluice convert --help'] },
  { argv: ['convert', 'requst'], code: 2, stderr: ['cannot convert "requst"; did you mean "request"?'] },
  { argv: ['convert', 'toString'], code: 2, stderr: ['cannot convert "toString"'] },
  { argv: ['convert', 'request', 'a'], code: 2, stderr: ['--from is required'] },
  { argv: ['convert', 'request', '--from', 'openai', 'a'], code: 2, stderr: ['--to is required'] },
  {
    argv: ['convert', 'request', '--from', 'openai', '--to', 'anthropc', 'a'],
    code: 2,
    stderr: ['unknown protocol "anthropc"; did you mean "anthropic"?'],
  },
  { argv: ['convert', 'request', '--form', 'openai'], code: 2, stderr: ['unknown option "--form"; did you mean "--from"?'] },
  { argv: [...CONVERT, '--request', 'q', 'a'], code: 2, stderr: ['--request requires a response or a stream'] },
  { argv: CONVERT, world: { terminals: ['stdin'] }, code: 2, stderr: ['no input'] },
  { argv: [...CONVERT, '-', '-'], code: 2, stderr: ['only once'] },
  {
    argv: ['convert', 'stream', '--from', 'openai', '--to', 'gemini', '--request=-', '-'],
    code: 2,
    stderr: ['only once'],
  },
  { argv: [...CONVERT, '--out', 'd', 'x/a.json', 'y/a.json'], code: 2, stderr: ['"x/a.json" and "y/a.json"', 'd/a.json'] },
  { argv: [...CONVERT, '--out', '.', 'a.json'], code: 2, stderr: ['would overwrite the input'] },
  { argv: [...CONVERT, '--out', 'x', './x/../x/a.json'], code: 2, stderr: ['would overwrite the input'] },
];

describe('usage', () => {
  test.each(ROWS)('sluice $argv', async ({ argv, world, code, stdout = [], stderr = [] }) => {
    const outcome = await run(argv, world);
    expect(outcome.code).toBe(code);
    for (const piece of stdout) expect(outcome.stdout).toContain(piece);
    for (const piece of stderr) expect(outcome.stderr).toContain(piece);
    // Help is data; a complaint is not.
    expect(code === 0 ? outcome.stderr : outcome.stdout).toBe('');
  });
});

describe('help', () => {
  const NAMES = Object.keys(COMMANDS);

  test.each([
    [undefined, 80],
    [200, 80],
    [50, 50],
  ])('fits a terminal of %j columns, in %i', async (columns, width) => {
    const world: World = columns === undefined ? {} : { terminals: ['stdout'], columns, env: { NO_COLOR: '1' } };
    for (const argv of [['--help'], ...NAMES.map((name) => ['help', name])]) {
      // Examples are commands to copy, and cannot be wrapped.
      const [text = ''] = (await run(argv, world)).stdout.split('\nExamples\n');
      expect(text.split('\n').filter((line) => line.length > width)).toEqual([]);
    }
  });

  test.each([
    [['--help'], true],
    [['--help', '--no-color'], false],
    [['--no-color', '--help'], false],
    [['assemble', '--no-color', '--help'], false],
  ])('%j has colours on a terminal: %j', async (argv, hasColors) => {
    const { stdout } = await run(argv, { terminals: ['stdout'], env: { TERM: 'xterm' } });
    expect(stdout.includes('\u001b[')).toBe(hasColors);
  });

  test('--no-color after "--" is an argument', async () => {
    expect((await run(['assemble', '--', '--no-color'])).stderr).toContain('sluice: --no-color: ENOENT');
  });

  test.each(NAMES)('the summary of %s starts with a verb and has no full stop', (name) => {
    expect(COMMANDS[name]?.summary).toMatch(
      /^(Start|Print|Write|Check|Assemble|Convert|Examine|Rewrite|Prove|Compare|Shrink|Record|Serve|Show|List|Copy|Replace) .*[^.]$/,
    );
  });

  test.each(NAMES)('the examples of %s name options that exist', (name) => {
    for (const { line } of COMMANDS[name]?.examples ?? []) {
      const own =
        line
          .split(' | ')
          .find((part) => part.includes(`sluice ${name}`))
          ?.split(' -- ')[0] ?? '';
      for (const [, option = ''] of own.matchAll(/(?<=\s)--([\w-]+)/g)) expect(COMMANDS[name]?.options).toHaveProperty(option);
    }
  });
});

describe('suggestions', () => {
  test.each([
    ['', '', 0],
    ['abc', 'abc', 0],
    ['abc', '', 3],
    ['', 'abc', 3],
    ['kitten', 'sitting', 3],
    ['ab', 'ba', 1],
  ])('%j to %j takes %i edits', (a, b, distance) => expect(editDistance(a, b)).toBe(distance));

  test('a limit changes no distance below it', () => {
    const words = ['', 'a', 'ab', 'ba', 'abc', 'acb', 'kitten', 'sitting', 'gpt-4o-mini', 'gpt-4o', 'claude-sonnet'];
    for (const a of words)
      for (const b of words)
        for (let limit = 0; limit < 14; limit++) {
          const distance = editDistance(a, b);
          expect(editDistance(a, b, limit)).toBe(distance < limit ? distance : Number.POSITIVE_INFINITY);
        }
  });

  test('at most 1,000 words are compared', () => {
    let taken = 0;
    function* names(): Iterable<string> {
      for (;;) yield `model-${taken++}`;
    }
    expect(suggest('model-x', names())).toBe('model-0');
    expect(taken).toBe(1000);
  });

  test.each([
    ['gemni', 'gemini'],
    ['GEMINI', 'gemini'],
    ['anthropc', 'anthropic'],
    ['open', 'openai'],
    ['mistral', undefined],
    ['x', undefined],
    ['a'.repeat(100_000), undefined],
  ])('%.20s means %s', (word, meant) => expect(suggest(word, ['openai', 'anthropic', 'gemini'])).toBe(meant));
});

test('the help lists every command once, in the group of its row', async () => {
  const { stdout } = await run(['--help']);
  const listed = stdout.split('\n\n').flatMap((section) => {
    const [title = '', ...lines] = section.split('\n');
    return lines.flatMap(
      (line) =>
        /^ {2}([a-z]+) {2,}/
          .exec(line)
          ?.slice(1)
          .map((name) => [name, title]) ?? [],
    );
  });
  expect(listed).toEqual(Object.entries(COMMANDS).map(([name, { group }]) => [name, GROUPS[group]]));
  expect(new Set(listed.map(([, title]) => title))).toEqual(new Set(Object.values(GROUPS)));
});
