import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { UsageError } from '../../src/terminal/errors.ts';
import { buildBatchLine, isPassedOn, planWindowsStart } from '../../src/terminal/windows.ts';

const NPM = 'C:\\Users\\Ann Lee\\AppData\\Roaming\\npm';

const ENV = { Path: `C:\\Windows;"${NPM}";D:\\tools`, SystemRoot: 'C:\\Windows' };

const plan = (command: string, files: readonly string[], env: Record<string, string> = ENV, args: string[] = []) =>
  planWindowsStart({ command, args, env }, (path) => files.some((file) => file.toLowerCase() === path.toLowerCase()));

describe('the file of a command', () => {
  test.each<[what: string, command: string, files: string[], found: string | undefined, env?: Record<string, string>]>([
    ['a program', 'node', ['D:\\tools\\node.exe'], 'D:\\tools\\node.exe'],
    ['the first folder of PATH', 'node', ['D:\\tools\\node.exe', `${NPM}\\node.exe`], `${NPM}\\node.exe`],
    ['not a shell script without extension', 'claude', [`${NPM}\\claude`], undefined],
    ['not a script that needs another host', 'claude', [`${NPM}\\claude.ps1`, `${NPM}\\claude.js`], undefined],
    ['the order of PATHEXT', 'a', ['D:\\tools\\a.exe', 'D:\\tools\\a.com'], 'D:\\tools\\a.exe', { ...ENV, PATHEXT: '.EXE;.COM' }],
    ['a name with its extension', 'a.exe', ['D:\\tools\\a.exe'], 'D:\\tools\\a.exe'],
    ['a dot in the name is no extension', 'a.b', ['D:\\tools\\a.b.exe'], 'D:\\tools\\a.b.exe'],
    ['a path', 'C:\\x\\a', ['C:\\x\\a.exe'], 'C:\\x\\a.exe'],
    ['a path with slashes', './bin/a.exe', ['./bin/a.exe'], './bin/a.exe'],
    ['not the working folder', 'a', ['a.exe', '.\\a.exe'], undefined],
    ['no relative folder of PATH', 'a', ['bin\\a.exe'], undefined, { Path: 'bin;.' }],
    ['the name of the variable in any case', 'a', ['E:\\a.exe'], 'E:\\a.exe', { PATH: 'E:\\' }],
    ['nothing', 'gone', [], undefined],
  ])('%s', (_what, command, files, found, env) => {
    const start = plan(command, files, env);
    expect(start?.file.toLowerCase()).toBe(found?.toLowerCase());
    if (start) expect(start).toMatchObject({ args: [], isVerbatim: false });
  });

  test('a batch file is started by cmd.exe', () => {
    expect(plan('claude', [`${NPM}\\claude.cmd`], ENV, ['-p', 'a & b'])).toEqual({
      file: 'C:\\Windows\\System32\\cmd.exe',
      args: ['/d', '/e:on', '/v:off', '/s', '/c', `""${NPM}\\claude.cmd" "-p" "a & b""`],
      isVerbatim: true,
    });
  });
});

// ---- a model of the readers of a command line

const VARIABLES: Readonly<Record<string, string>> = { PATH: 'C:\\Windows', cd: 'C:\\work', A: '&calc' };

/** Expands `%NAME%` and `%NAME:~from,length%` as `cmd.exe` does in a command line; unknown names stay as they are. */
function expandVariables(line: string): string {
  let text = '';
  for (let at = 0; at < line.length; ) {
    const match = /^%([^%:]+)(?::~(\d*),(\d*))?%/.exec(line.slice(at));
    const value = match?.[1] === undefined ? undefined : VARIABLES[match[1]];
    if (!match || value === undefined) text += line[at++];
    else {
      at += match[0].length;
      // An empty length is zero.
      text += match[0].includes(':~') ? value.slice(Number(match[2]), Number(match[2]) + Number(match[3])) : value;
    }
  }
  return text;
}

/** What remains of a line when `cmd.exe` has read it as one command. Throws when it is more than that. */
function readCommand(line: string): string {
  let text = '';
  let isQuoted = false;
  for (let at = 0; at < line.length; at++) {
    const char = line[at] ?? '';
    if (char === '"') isQuoted = !isQuoted;
    if (!isQuoted && /[&|<>()\r\n]/.test(char)) throw new Error(`another command begins at ${line.slice(at)}`);
    if (!isQuoted && char === '^') text += line[++at] ?? '';
    else text += char;
  }
  if (isQuoted) throw new Error('the quotes are not closed');
  return text;
}

/** How programs read their command line: the rules of Microsoft's C runtime. A piece is backslashes before a quote, spaces, or a character. */
function readArguments(line: string): string[] {
  const args: string[] = [];
  let arg: string | undefined;
  let isQuoted = false;
  const readQuotes = (slashes: number, quotes: number): string => {
    let text = '\\'.repeat(slashes >> 1) + '"'.repeat(slashes % 2);
    for (let left = quotes - (slashes % 2); left > 0; left--) {
      if (isQuoted && left-- > 1) text += '"';
      else isQuoted = !isQuoted;
    }
    return text;
  };
  for (const [piece, slashes = '', quotes = ''] of line.matchAll(/(\\*)("+)|\s+|[\s\S]/g)) {
    if (quotes !== '') arg = (arg ?? '') + readQuotes(slashes.length, quotes.length);
    else if (isQuoted || !/^\s/.test(piece)) arg = (arg ?? '') + piece;
    else {
      if (arg !== undefined) args.push(arg);
      arg = undefined;
    }
  }
  return arg === undefined ? args : [...args, arg];
}

/** What the program behind `"node" "cli.js" %*` of a batch file receives. */
function receive(line: string): string[] {
  const read = readCommand(expandVariables(line));
  const [file = ''] = /^"[^"]*"/.exec(read) ?? [];
  const [, , ...args] = readArguments(readCommand(`"node" "cli.js" ${read.slice(file.length)}`));
  return args;
}

const FILE = 'C:\\100%\\claude.cmd';

describe('arguments of a batch file', () => {
  test.each([
    '',
    'plain',
    'two words',
    '& | < > ( ) ^ ! ; , =',
    '%PATH%',
    '%A%',
    '%%',
    '100%',
    '"',
    '""',
    '"quoted" & calc',
    'a" & calc & "b',
    '\\',
    'C:\\folder\\',
    'C:\\folder with space\\',
    '\\"',
    '\\\\"',
    '{"a":"b\\\\"}',
    '^"^&',
    '*?[]',
    'ünï 日本 😀',
  ])('%j is received', (text) => {
    expect(receive(buildBatchLine(FILE, [text, '-x']))).toEqual([text, '-x']);
  });

  test('any arguments are received', () => {
    const character = fc.constantFrom(...' "%^&|<>()!\\;,=aAPTHcd:~0\t*?\'`');
    const word = fc.oneof(fc.string({ unit: character, maxLength: 30 }), fc.string({ unit: 'grapheme', maxLength: 20 }));
    const args = fc.array(
      word.filter((text) => !/[\r\n\0]/.test(text)),
      { maxLength: 5 },
    );
    fc.assert(
      fc.property(args, (list) => void expect(receive(buildBatchLine(FILE, list))).toEqual(list)),
      { numRuns: 3000 },
    );
  });

  test('the model notices arguments that are not protected', () => {
    expect(() => receive(`"${FILE}" a&calc`)).toThrow('another command begins at &calc');
    expect(() => receive(`"${FILE}" "a\\" & calc & \\"b"`)).toThrow('another command begins');
    expect(receive('"C:\\a.cmd" "%PATH%"')).toEqual(['C:\\Windows']);
    expect(readArguments('a "b c" d\\"e "f\\\\" "g""h"')).toEqual(['a', 'b c', 'd"e', 'f\\', 'g"h']);
  });

  test.each([
    ['a line break', 'a\nb', 'has a line break'],
    ['a carriage return', 'a\rb', 'has a line break'],
    ['NUL', 'a\0b', 'has a line break'],
    ['too much text', 'x'.repeat(8000), 'are too long'],
  ])('%s is refused, because cmd.exe cannot pass it on', (_, text, message) => {
    expect(() => buildBatchLine(FILE, [text])).toThrow(UsageError);
    expect(() => buildBatchLine(FILE, [text])).toThrow(message);
  });
});

test.each<[NodeJS.Signals, NodeJS.Platform, boolean, boolean]>([
  ['SIGINT', 'linux', true, false],
  ['SIGQUIT', 'darwin', true, false],
  ['SIGINT', 'linux', false, true],
  ['SIGTERM', 'linux', true, true],
  ['SIGHUP', 'linux', true, true],
  ['SIGINT', 'win32', false, false],
  ['SIGBREAK', 'win32', true, false],
  ['SIGTERM', 'win32', true, false],
])('%s on %s, with a terminal: %s, is passed on: %s', (signal, platform, hasTerminal, expected) => {
  expect(isPassedOn(signal, platform, hasTerminal)).toBe(expected);
});
