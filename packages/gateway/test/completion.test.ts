import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PROTOCOLS } from '@sluice/core';
import { PROTOCOL_ALIASES } from '@sluice/core/engine';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { needs } from '../../../test/needs/needs.ts';
import { COMMANDS } from '../src/cli/commands.ts';
import { CLIENTS } from '../src/clients/clients.ts';
import { run } from './fake-io.ts';

const NAMES = [...Object.keys(COMMANDS), 'help'];
const PROTOCOL_NAMES = [...Object.keys(PROTOCOLS), ...Object.keys(PROTOCOL_ALIASES)];
const flagsOf = (name: string): string[] => Object.keys(COMMANDS[name]?.options ?? {}).map((option) => `--${option}`);

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

let folder: string;
const scriptOf = (shell: Shell): string => join(folder, `completion.${shell}`);

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-completion-'));
  writeFileSync(join(folder, 'answer.sse'), '');
  for (const shell of SHELLS) writeFileSync(scriptOf(shell), (await run(['completion', shell])).stdout);
});

afterAll(() => rmSync(folder, { recursive: true }));

const listOutput = (command: string, args: string[]): string[] =>
  execFileSync(command, args, { cwd: folder, encoding: 'utf8', env: { PATH: process.env['PATH'], HOME: folder } })
    .split('\n')
    .filter((line) => line !== '');

/** The words that a shell offers for the last word of a command line. */
const COMPLETE = {
  bash: (words: string[]) => {
    const list = words.map((word) => `'${word}'`).join(' ');
    const script = `source ${scriptOf('bash')}; compopt() { echo "compopt $*"; }; COMP_WORDS=(${list}); COMP_CWORD=${words.length - 1}; _sluice; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return listOutput('bash', ['--norc', '-c', script]);
  },
  // The functions of the completion system are replaced by ones that print their arguments.
  zsh: (words: string[]) => {
    const list = words.map((word) => `'${word}'`).join(' ');
    const script = `compdef() { :; }
_files() { print -l answer.sse; }
_message() { :; }
compadd() { print -l -- "\${@:2}"; }
_describe() { local name=\${@[-1]}; print -l -- "\${(@)\${(P)name}%%:*}"; }
source ${scriptOf('zsh')}; words=(${list}); CURRENT=${words.length}; _sluice`;
    const prefix = words.at(-1) ?? '';
    return listOutput('zsh', ['-f', '-c', script]).filter((word) => word.startsWith(prefix));
  },
  fish: (words: string[]) =>
    listOutput('fish', ['--no-config', '-c', `source ${scriptOf('fish')}; complete -C '${words.join(' ')}'`]).map(
      (line) => line.split('\t', 1)[0] ?? '',
    ),
} as const satisfies Record<Shell, (words: string[]) => string[]>;

describe.each(SHELLS)('the completion of %s', (shell) => {
  const complete = COMPLETE[shell];

  test('has the syntax of its shell', needs(shell), () => {
    const flags = shell === 'fish' ? ['--no-execute'] : ['-n'];
    expect(spawnSync(shell, [...flags, scriptOf(shell)])).toMatchObject({ status: 0 });
  });

  test.each([
    ['commands', ['sluice', ''], NAMES],
    ['commands that begin so', ['sluice', 'co'], ['config', 'convert', 'completion']],
    ['commands after "help"', ['sluice', 'help', ''], Object.keys(COMMANDS)],
    ['protocols', ['sluice', 'assemble', '--protocol', ''], PROTOCOL_NAMES],
    ['protocols that begin so', ['sluice', 'convert', 'stream', '--to', 'open'], ['openai', 'openai-chat', 'openai-responses']],
    ['clients', ['sluice', 'env', ''], Object.keys(CLIENTS)],
    ['actions', ['sluice', 'config', 'ch'], ['check']],
    ['shells', ['sluice', 'completion', ''], ['bash', 'zsh', 'fish']],
    ...Object.keys(COMMANDS).map(
      (name) => [`options of ${name}`, ['sluice', name, '--'], flagsOf(name)] as [string, string[], string[]],
    ),
  ])('offers %s', needs(shell), (_, words, expected) => {
    // bash adds hints for its own completion of files, fish offers files beside actions.
    const found = complete(words).filter((word) => !/^compopt |^(answer|completion)\.\w+$/.test(word));
    const known = found.filter((word) => !['--help', '--version', '-h', '-V'].includes(word));
    expect(known.toSorted()).toEqual(expected.toSorted());
  });

  test('offers files as inputs', needs(shell), () => {
    const found = complete(['sluice', 'assemble', 'answ']);
    // bash completes files itself when a completion offers nothing.
    expect(found).toEqual(shell === 'bash' ? [] : ['answer.sse']);
  });

  test('offers no files as a port', needs(shell), () => {
    expect(complete(['sluice', 'serve', '--port', ''])).toEqual(shell === 'bash' ? ['compopt +o default'] : []);
  });
});

test('bash completes the value after "="', needs('bash'), () => {
  expect(COMPLETE.bash(['sluice', 'convert', 'stream', '--to', '=', 'gem'])).toEqual(['gemini']);
  expect(COMPLETE.bash(['sluice', 'convert', 'stream', '--to', '='])).toEqual(PROTOCOL_NAMES);
});

test.each([
  [['completion'], 'name a shell: bash, zsh, fish'],
  [['completion', 'fissh'], 'unknown shell "fissh"; did you mean "fish"?'],
  [['completion', 'bash', 'zsh'], 'only one shell'],
])('%j is wrong usage', async (argv, words) => {
  const { code, stderr } = await run(argv);
  expect(code).toBe(2);
  expect(stderr).toContain(words);
});
