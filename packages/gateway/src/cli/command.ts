/** What a command is: its texts, its options, and how to load it. */

import type { CliIo } from '../terminal/io.ts';

/** The groups of commands, in the order of the help, with their titles. */
export const GROUPS = { gateway: 'Gateway', usage: 'Usage and keys', streams: 'Streams' } as const;

/** A group of commands. */
export type Group = keyof typeof GROUPS;

/** A row of the table of commands. Everything but `load` is data, so help and completion load no command. */
export interface Command<O extends OptionTable = OptionTable> {
  readonly group: Group;
  /** One line for the list of commands: a sentence that starts with a verb, without a full stop. */
  readonly summary: string;
  /** The lines of usage, each without "sluice". */
  readonly usage: readonly string[];
  /** A few sentences for the command's own help. */
  readonly about: string;
  readonly options: O;
  /** What its positional arguments are, for completion. */
  readonly words: Values;
  readonly examples: readonly { readonly line: string; readonly what: string }[];
  /** Loads the module of the command, which loads what it needs. */
  load(): Promise<CommandModule<O>>;
}

/** The module of a command. */
interface CommandModule<O extends OptionTable> {
  /** Resolves with the exit code. A method, so that a command may declare the options that it reads only. */
  run(args: Arguments<O>, io: CliIo): Promise<number>;
}

/** The options of a command by their long names. */
export type OptionTable = Readonly<Record<string, Option>>;

/** An option. */
export interface Option {
  readonly type: 'boolean' | 'string';
  readonly short?: string;
  /** Name of the value in the help. */
  readonly value?: string;
  readonly summary: string;
  /** What its value is, for completion. */
  readonly values?: Values;
  /** Whether it may be repeated; the values are joined by commas. */
  readonly isList?: true;
}

/** What can be typed at some place of the command line. */
export type Values = 'nothing' | 'files' | 'folders' | 'clients' | readonly string[];

/** Parsed arguments. Options that are absent are undefined, or false when they are switches. */
export interface Arguments<O extends OptionTable> {
  options: { [K in keyof O]: O[K]['type'] extends 'string' ? string | undefined : boolean };
  /** Positional arguments, in order. */
  words: string[];
}

/** The commands of each group, in the order of the help. */
export const listGroups = (
  commands: Readonly<Record<string, Command>>,
): { title: string; rows: (readonly [name: string, command: Command])[] }[] =>
  Object.entries(GROUPS).map(([group, title]) => ({
    title,
    rows: Object.entries(commands).filter(([, command]) => command.group === group),
  }));
