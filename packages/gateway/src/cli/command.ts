import { type Arguments, type OptionTable, parseArguments } from './arguments.ts';
import type { CliIo } from './io.ts';

interface CommandText<O extends OptionTable> {
  /** One line, for the list of commands. */
  summary: string;
  /** What follows "sluice". */
  usage: string;
  /** A few sentences, for the command's own help. */
  about: string;
  options: O;
  examples: readonly { line: string; what: string }[];
}

export interface Command extends CommandText<OptionTable> {
  /** Gives the exit code. */
  run(argv: readonly string[], io: CliIo): Promise<number>;
}

interface CommandSpec<O extends OptionTable> extends CommandText<O> {
  run(args: Arguments<O>, io: CliIo): Promise<number>;
}

/** A row of the table of commands: what it is given is read by its own options, so that `run` sees typed values. */
export function defineCommand<O extends OptionTable>(spec: CommandSpec<O>): Command {
  return { ...spec, run: (argv, io) => spec.run(parseArguments(spec.options, argv), io) };
}
