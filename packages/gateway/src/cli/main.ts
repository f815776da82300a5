import { didYouMean, oneLine, systemCode } from '@sluice/lab/text';
import { type CliIo, createNodeIo, isBrokenPipe, type Output } from '../terminal/io.ts';
import { chooseColors } from '../terminal/text.ts';
import { type Command, UsageError } from './command.ts';
import { serve } from './commands/serve.ts';
import { COMMANDS } from './commands.ts';
import { formatCommandHelp, formatInternalError, formatProgramHelp, type HelpStyle, readVersion } from './help.ts';

const WRONG_USAGE = 2;

/** Runs a command line (without "node" and the script) and returns the exit code. Never throws. */
export async function main(argv: readonly string[], io: CliIo = createNodeIo()): Promise<number> {
  try {
    return await dispatch(argv, io);
  } catch (error) {
    return report(error, argv[0], io);
  }
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
  return hasHelpFlag(rest) ? showHelp(first, io) : command.run(rest, io);
}

/** `sluice` without a command starts the gateway; the arguments are options of `serve`. */
async function runProgram(argv: readonly string[], io: CliIo): Promise<number> {
  if (hasHelpFlag(argv)) return showHelp(undefined, io);
  if (argv[0] !== '--version') return serve.run(argv, io);
  await io.stdout.write(`${readVersion()}\n`);
  return 0;
}

async function showHelp(name: string | undefined, io: CliIo): Promise<number> {
  const style = helpStyle(io.stdout, io);
  await io.stdout.write(name === undefined ? formatProgramHelp(COMMANDS, style) : formatCommandHelp(findCommand(name), style));
  return 0;
}

function findCommand(name: string): Command {
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command) return command;
  throw new UsageError(`unknown command "${oneLine(name)}"${didYouMean(name, Object.keys(COMMANDS))}`);
}

/** `--help` is honoured even when other arguments on the line are wrong. */
function hasHelpFlag(argv: readonly string[]): boolean {
  const end = argv.indexOf('--');
  return (end < 0 ? argv : argv.slice(0, end)).some((arg) => arg === '--help' || arg === '-h');
}

const helpStyle = (output: Output, { env }: CliIo): HelpStyle => ({ colors: chooseColors(output, env), columns: output.columns });

async function report(error: unknown, name: string | undefined, io: CliIo): Promise<number> {
  if (isBrokenPipe(error)) return 0; // the reader closed the pipe, as `head` does
  const { red } = chooseColors(io.stderr, io.env);
  if (error instanceof UsageError) {
    const help = name !== undefined && Object.hasOwn(COMMANDS, name) ? `sluice ${name} --help` : 'sluice --help';
    await io.stderr.write(`${red('sluice:')} ${error.message}\nRun "${help}" for help.\n`);
    return WRONG_USAGE;
  }
  // Commands report errors of their inputs themselves, so a system error that arrives here is one of the output.
  const isOutput = systemCode(error) !== undefined;
  await io.stderr.write(
    isOutput ? `${red('sluice:')} writing the output failed: ${oneLine(readMessage(error))}\n` : formatInternalError(error, io),
  );
  return 1;
}

const readMessage = (error: unknown): string => (error instanceof Error ? error.message : String(error));
