/** Finds the command of a command line, parses its arguments by its table of options, runs it and reports its errors. */

import { parseArgs } from 'node:util';
import { didYouMean, oneLine } from '@sluice/lab/text';
import { describeWriteError, EXIT, isBrokenPipe, UnreadableError, UsageError } from '../terminal/errors.ts';
import { type CliIo, createNodeIo } from '../terminal/io.ts';
import { chooseColors } from '../terminal/text.ts';
import type { Arguments, Command, OptionTable } from './command.ts';
import { COMMANDS } from './commands.ts';
import { formatCommandHelp, formatInternalError, formatProgramHelp, readVersion } from './help.ts';

/** Runs a command line (without "node" and the script) and returns the exit code. Never throws. */
export async function main(argv: readonly string[], io: CliIo = createNodeIo()): Promise<number> {
  const end = findEnd(argv);
  const words = argv.filter((word, at) => word !== NO_COLOR || at > end);
  const styled = words.length === argv.length ? io : { ...io, env: { ...io.env, NO_COLOR: '1' } };
  try {
    return await dispatch(words, styled);
  } catch (error) {
    return report(error, words[0], styled);
  }
}

/** An option of all commands. */
const NO_COLOR = '--no-color';

/** The position of "--", after which nothing is an option. */
function findEnd(argv: readonly string[]): number {
  const end = argv.indexOf('--');
  return end < 0 ? argv.length : end;
}

function dispatch(argv: readonly string[], io: CliIo): Promise<number> {
  const [first, ...rest] = argv;
  if (first === 'help')
    return showHelp(
      rest.find((word) => !word.startsWith('-')),
      io,
    );
  if (first === undefined || first.startsWith('-')) return runProgram(argv, io);
  const command = findCommand(first);
  return hasHelpFlag(rest) ? showHelp(first, io) : runCommand(command, rest, io);
}

/** `sluice` without a command starts the gateway; the arguments are options of `serve`. */
async function runProgram(argv: readonly string[], io: CliIo): Promise<number> {
  if (hasHelpFlag(argv)) return showHelp(undefined, io);
  if (argv[0] !== '--version' && argv[0] !== '-V') return runCommand(findCommand('serve'), argv, io);
  await io.stdout.write(`${readVersion()}\n`);
  return EXIT.ok;
}

async function runCommand(command: Command, argv: readonly string[], io: CliIo): Promise<number> {
  const args = parseArguments(command.options, argv);
  const { run } = await command.load();
  return run(args, io);
}

async function showHelp(name: string | undefined, io: CliIo): Promise<number> {
  const style = { colors: chooseColors(io.stdout, io.env), columns: io.stdout.columns };
  await io.stdout.write(name === undefined ? formatProgramHelp(COMMANDS, style) : formatCommandHelp(findCommand(name), style));
  return EXIT.ok;
}

function findCommand(name: string): Command {
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command) return command;
  throw new UsageError(`unknown command "${oneLine(name)}"${didYouMean(name, ['help', ...Object.keys(COMMANDS)])}`);
}

/** `--help` is honoured even when other arguments on the line are wrong. */
function hasHelpFlag(argv: readonly string[]): boolean {
  return argv.slice(0, findEnd(argv)).some((arg) => arg === '--help' || arg === '-h');
}

/** Parses arguments by a table. `node:util` tokenizes; the messages are ours because they suggest corrections. */
function parseArguments(table: OptionTable, argv: readonly string[]): Arguments<OptionTable> {
  const { tokens } = parseArgs({ args: [...argv], options: parserOptions(table), strict: false, tokens: true });
  const options: Record<string, string | boolean | undefined> = {};
  for (const [name, { type }] of Object.entries(table)) options[name] = type === 'string' ? undefined : false;
  const words: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value);
    if (token.kind === 'option') options[token.name] = joinValues(table, token, options[token.name]);
  }
  return { options: options as Arguments<OptionTable>['options'], words }; // filled from the same table as the type
}

function parserOptions(table: OptionTable): Record<string, { type: 'boolean' | 'string'; short?: string }> {
  return Object.fromEntries(
    Object.entries(table).map(([name, { type, short }]) => [name, { type, ...(short !== undefined && { short }) }]),
  );
}

interface OptionToken {
  name: string;
  rawName: string;
  value?: string | undefined;
  inlineValue?: boolean | undefined;
}

function readOption(table: OptionTable, { name, rawName, value, inlineValue }: OptionToken): string | boolean {
  const option = Object.hasOwn(table, name) ? table[name] : undefined;
  if (!option)
    throw new UsageError(`unknown option "${oneLine(rawName)}"${didYouMean(rawName, Object.keys(table).map(addDashes))}`);
  if (option.type === 'boolean') {
    if (value !== undefined) throw new UsageError(`option "${rawName}" takes no value`);
    return true;
  }
  // "--protocol --json" is a forgotten value; "--protocol=--json" is accepted as meant.
  const isForgotten = value === undefined || value === '' || (!inlineValue && value.startsWith('-'));
  if (isForgotten) throw new UsageError(`option "${rawName}" needs a value: ${rawName} ${option.value ?? 'VALUE'}`);
  return value;
}

/** The value of an option, after those of the same option before if it is a list. */
function joinValues(table: OptionTable, token: OptionToken, before: string | boolean | undefined): string | boolean {
  const value = readOption(table, token);
  return table[token.name]?.isList && before !== undefined ? `${before},${value}` : value;
}

const addDashes = (name: string): string => `--${name}`;

async function report(error: unknown, name: string | undefined, io: CliIo): Promise<number> {
  if (isBrokenPipe(error)) return EXIT.ok; // the reader closed the pipe, as `head` does
  const { red } = chooseColors(io.stderr, io.env);
  if (error instanceof UnreadableError) {
    await io.stderr.write(`${red('sluice:')} ${oneLine(error.message)}\n`);
    return EXIT.unusable;
  }
  if (error instanceof UsageError) {
    const help = name !== undefined && Object.hasOwn(COMMANDS, name) ? `sluice ${name} --help` : 'sluice --help';
    await io.stderr.write(`${red('sluice:')} ${error.message}\nRun "${help}" for help.\n`);
    return EXIT.unusable;
  }
  // Commands report errors of their inputs themselves, so a system error that arrives here is one of the output.
  const failure = describeWriteError(error);
  await io.stderr.write(
    failure === undefined
      ? formatInternalError(error, io)
      : `${red('sluice:')} writing ${oneLine(readPath(error) ?? 'the output')} failed: ${oneLine(failure)}\n`,
  );
  return EXIT.failed;
}

const readPath = (error: unknown): string | undefined =>
  error instanceof Error && 'path' in error && typeof error.path === 'string' ? error.path : undefined;
