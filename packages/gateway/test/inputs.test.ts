import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { jsonLines, run, systemError, type World } from './fake-io.ts';
import * as streams from './streams.ts';

/** Every command that reads responses, with the arguments around its inputs. */
const COMMANDS = {
  assemble: (words: string[]) => ['assemble', ...words],
  'assemble --json': (words: string[]) => ['assemble', '--json', ...words],
  doctor: (words: string[]) => ['doctor', ...words],
  'doctor --json': (words: string[]) => ['doctor', '--json', ...words],
  'doctor --html': (words: string[]) => ['doctor', '--html', ...words],
  'repair --json': (words: string[]) => ['repair', '--json', ...words],
  'repair --out': (words: string[]) => ['repair', '--out', join(folder, 'repaired'), ...words],
  'convert stream': (words: string[]) => ['convert', 'stream', '--to', 'anthropic', ...words],
  'convert stream --from': (words: string[]) => ['convert', 'stream', '--from', 'openai', '--to', 'gemini', '--json', ...words],
  prove: (words: string[]) => ['prove', ...words],
  'prove --json': (words: string[]) => ['prove', '--json', ...words],
  diff: (words: string[]) => ['diff', ...words, 'good.sse'],
  shrink: (words: string[]) => ['shrink', '--until', 'chat/ended-early', '--out', join(folder, 'shrunk'), ...words],
  'replay --list': (words: string[]) => ['replay', '--list', ...words],
} as const satisfies Record<string, (words: string[]) => string[]>;

type CommandName = keyof typeof COMMANDS;

const ALL = Object.keys(COMMANDS) as CommandName[];

/** The commands that read several inputs. */
const MANY = ALL.filter((name) => !['diff', 'shrink', 'replay --list'].includes(name));

interface Row {
  input: string;
  words: string[];
  world?: World;
  code: number;
  commands?: readonly CommandName[];
  /** Other exit codes, by command. */
  but?: Partial<Record<CommandName, number>>;
}

// No stream here ends early but "cut.sse", so that "shrink" finds nothing in the others.
const ROWS: Row[] = [
  { input: 'a file', words: ['good.sse'], code: 0, but: { shrink: 1 } },
  { input: 'a folder', words: ['folder'], code: 0, but: { shrink: 1, diff: 1 } },
  { input: 'a folder with a slash', words: ['folder/'], code: 0, but: { shrink: 1, diff: 1 } },
  { input: 'a tape', words: ['tape'], code: 0, but: { shrink: 1 } },
  { input: 'standard input', words: ['-'], world: { stdin: streams.chat('hi') }, code: 0, but: { shrink: 1 } },
  { input: 'standard input without a name', words: [], world: { stdin: streams.chat('hi') }, code: 0, commands: MANY },
  { input: 'several', words: ['good.sse', 'tape', 'folder'], code: 0, commands: MANY },
  {
    input: 'a stream that ended early',
    words: ['cut.sse'],
    code: 1,
    but: { shrink: 0, prove: 0, 'prove --json': 0, 'replay --list': 0 },
  },
  { input: 'a file that is not a response', words: ['notes.txt'], code: 1, but: { 'replay --list': 2 } },
  { input: 'an empty file', words: ['empty'], code: 1, but: { 'replay --list': 2 } },
  { input: 'a folder without a response', words: ['other'], code: 1, but: { 'replay --list': 2 } },
  { input: 'a missing file', words: ['gone.sse'], code: 2 },
  { input: 'a file without permission', words: ['denied'], code: 2 },
  { input: 'an empty folder', words: ['nothing'], code: 2 },
  { input: 'a damaged tape', words: ['damaged'], code: 2 },
  // A list of exchanges reads no bodies.
  { input: 'a tape with a link to a file outside of it', words: ['linked'], code: 2, but: { 'replay --list': 0 } },
  { input: 'a tape whose facts are a link', words: ['facts'], code: 2 },
  { input: 'a missing file among others', words: ['cut.sse', 'gone.sse', 'good.sse'], code: 2, commands: MANY },
  { input: 'standard input twice', words: ['-', '-'], code: 2 },
  { input: 'nothing, on a terminal', words: [], world: { terminals: ['stdin'] }, code: 2 },
  { input: 'an unknown option', words: ['--nope', 'good.sse'], code: 2 },
];

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-inputs-'));
  const write = (path: string, text: string): void => {
    mkdirSync(join(folder, path, '..'), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  write('good.sse', streams.chat('hi'));
  write('cut.sse', streams.cutChat('so f'));
  write('notes.txt', 'Dear customer,\nall is well.\n');
  write('empty', '');
  write('folder/one.sse', streams.gemini('one'));
  write('folder/two.sse', streams.chat('two'));
  write('folder/README.txt', 'Recordings of today.\n');
  write('other/README.txt', 'No recordings.\n');
  mkdirSync(join(folder, 'nothing'));
  write('damaged/exchange.json', '{"tape":');
  write('tape/0001-chat/response.sse', streams.chat('hi'));
  write('tape/0001-chat/request.json', '{}');
  write('tape/0001-chat/exchange.json', JSON.stringify(FACTS));
  write('linked/0001-chat/request.json', '{}');
  write('linked/0001-chat/exchange.json', JSON.stringify(FACTS));
  symlinkSync(join(folder, 'good.sse'), join(folder, 'linked/0001-chat/response.sse'));
  mkdirSync(join(folder, 'facts/0001-chat'), { recursive: true });
  symlinkSync(join(folder, 'tape/0001-chat/exchange.json'), join(folder, 'facts/0001-chat/exchange.json'));
});

afterAll(() => rmSync(folder, { recursive: true }));

const FACTS = {
  tape: 1,
  recorded: '2026-01-01T00:00:00.000Z',
  protocol: 'openai-chat',
  model: 'm-1',
  stream: true,
  end: 'complete',
  request: { method: 'POST', path: '/v1/chat/completions', headers: {}, body: 'request.json' },
  response: { status: 200, headers: { 'content-type': 'text/event-stream' }, body: 'response.sse', reads: [] },
};

const locate = (word: string): string => (/^[-]|^\w+:/.test(word) ? word : join(folder, word));

const start = (name: CommandName, { words, world = {} }: Pick<Row, 'words' | 'world'>) => {
  const argv = COMMANDS[name](words.map(locate)).map((word) => (word === 'good.sse' ? locate(word) : word));
  return run(argv, { ...world, hasDisk: true, files: { [join(folder, 'denied')]: systemError('EACCES') } });
};

describe.each(ROWS)('$input', (row) => {
  test.each(row.commands ?? ALL)('%s', async (name) => {
    const { code, stdout, stderr } = await start(name, row);
    expect({ code, stderr }).toEqual({ code: row.but?.[name] ?? row.code, stderr });
    // With --json, stdout has data only, one object per line.
    if (name.includes('--json')) for (const line of stdout.split('\n').slice(0, -1)) expect(() => JSON.parse(line)).not.toThrow();
    if (code === 2) expect(`${stdout}${stderr}`).not.toBe('');
    expect(stderr).not.toContain('internal error');
  });
});

test('a link that leads out of a tape is reported with its path', async () => {
  const { stdout, stderr } = await start('doctor', { words: ['linked'] });
  expect(stdout + stderr).toMatch(/response\.sse: is a link to a file outside of the tape/);
});

test.each(MANY.filter((name) => name.includes('--json')))('%s names inputs of folders and tapes by their paths', async (name) => {
  const lines = jsonLines(await start(name, { words: ['good.sse', 'folder', 'tape', 'gone.sse'] }));
  expect(lines.map(({ file }) => String(file).slice(folder.length + 1))).toEqual([
    'good.sse',
    'folder/one.sse',
    'folder/two.sse',
    'tape/0001-chat',
    'gone.sse',
  ]);
});

test('files of a folder that are not responses are counted', async () => {
  const { stderr } = await start('assemble', { words: ['folder'] });
  expect(stderr).toBe('sluice: 1 file skipped: not a response\n');
});
