/** What a command is: its texts, its options and how they are parsed. */

import { parseArgs } from 'node:util';
import { PROTOCOLS } from '@sluice/core';
import { PROTOCOL_ALIASES } from '@sluice/core/engine';
import { didYouMean, oneLine } from '@sluice/lab/text';
import type { CliIo } from '../terminal/io.ts';

/** Builds a command whose `run` receives arguments that are parsed and typed by its own option table. */
export function defineCommand<O extends OptionTable>(spec: CommandSpec<O>): Command {
  return { ...spec, run: (argv, io) => spec.run(parseArguments(spec.options, argv), io) };
}

/** A row of the table of commands. */
export interface Command extends CommandText<OptionTable> {
  /** Resolves with the exit code. */
  run(argv: readonly string[], io: CliIo): Promise<number>;
}

interface CommandSpec<O extends OptionTable> extends CommandText<O> {
  run(args: Arguments<O>, io: CliIo): Promise<number>;
}

interface CommandText<O extends OptionTable> {
  /** One line for the list of commands. */
  summary: string;
  /** What follows "sluice" on the usage line. */
  usage: string;
  /** A few sentences for the command's own help. */
  about: string;
  options: O;
  examples: readonly { line: string; what: string }[];
}

/** The options of a command by their long names. */
export type OptionTable = Readonly<Record<string, Option>>;

interface Option {
  type: 'boolean' | 'string';
  short?: string;
  /** Name of the value in the help. */
  value?: string;
  summary: string;
}

/** Parsed arguments. Options that are absent are undefined, or false when they are switches. */
export interface Arguments<O extends OptionTable> {
  options: { [K in keyof O]: O[K]['type'] extends 'string' ? string | undefined : boolean };
  /** Positional arguments, in order. */
  words: string[];
}

/** A mistake on the command line: it is shown without a stack trace and the exit code is 2. */
export class UsageError extends Error {}

/** Parses arguments by a table. `node:util` tokenizes; the messages are ours because they suggest corrections. */
function parseArguments<O extends OptionTable>(table: O, argv: readonly string[]): Arguments<O> {
  const { tokens } = parseArgs({ args: [...argv], options: parserOptions(table), strict: false, tokens: true });
  const options: Record<string, string | boolean | undefined> = {};
  for (const [name, { type }] of Object.entries(table)) options[name] = type === 'string' ? undefined : false;
  const words: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value);
    if (token.kind === 'option') options[token.name] = readOption(table, token);
  }
  return { options: options as Arguments<O>['options'], words }; // filled from the same table as the type
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

const addDashes = (name: string): string => `--${name}`;

/** Protocol names for help texts. */
export const listProtocols = (): string => Object.keys(PROTOCOLS).join(', ');

/** The error for a protocol name that does not exist, with a suggestion and the known names. */
export function createUnknownProtocolError(name: string): UsageError {
  const aliases = Object.entries(PROTOCOL_ALIASES);
  const list = Object.keys(PROTOCOLS).map((id) =>
    [id, ...aliases.flatMap(([alias, of]) => (of === id ? [alias] : []))].join(' or '),
  );
  const names = [...Object.keys(PROTOCOLS), ...Object.keys(PROTOCOL_ALIASES)];
  return new UsageError(`unknown protocol "${oneLine(name)}"${didYouMean(name, names)}\nKnown protocols: ${list.join(', ')}`);
}
