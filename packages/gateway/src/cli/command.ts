import { parseArgs } from 'node:util';
import { PROTOCOL_ALIASES, PROTOCOLS } from '@sluice/core';
import { didYouMean, oneLine } from '@sluice/lab/text';
import type { CliIo } from '../terminal/io.ts';

interface Option {
  type: 'boolean' | 'string';
  short?: string;
  /** What the value is called in the help. */
  value?: string;
  summary: string;
}

export type OptionTable = Readonly<Record<string, Option>>;

export interface Arguments<O extends OptionTable> {
  options: { [K in keyof O]: O[K]['type'] extends 'string' ? string | undefined : boolean };
  /** What is not an option, in order. */
  words: string[];
}

/** The user typed something we cannot follow: exit code 2, and never a stack trace. */
export class UsageError extends Error {}

/** Reads the arguments by a table. `node:util` cuts them; the messages are ours, because they suggest what was meant. */
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
  if (!option) throw new UsageError(`unknown option "${oneLine(rawName)}"${didYouMean(rawName, Object.keys(table).map(dashed))}`);
  if (option.type === 'boolean') {
    if (value !== undefined) throw new UsageError(`option "${rawName}" takes no value`);
    return true;
  }
  // "--protocol --json" is a forgotten value; who means it can write "--protocol=--json".
  const isForgotten = value === undefined || value === '' || (!inlineValue && value.startsWith('-'));
  if (isForgotten) throw new UsageError(`option "${rawName}" needs a value: ${rawName} ${option.value ?? 'VALUE'}`);
  return value;
}

const dashed = (name: string): string => `--${name}`;

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

/** The names a user may type, for the help. */
export const protocolList = (): string => Object.keys(PROTOCOLS).join(', ');

export function unknownProtocol(name: string): UsageError {
  const aliases = Object.entries(PROTOCOL_ALIASES);
  const list = Object.keys(PROTOCOLS).map((id) =>
    [id, ...aliases.flatMap(([alias, of]) => (of === id ? [alias] : []))].join(' or '),
  );
  const names = [...Object.keys(PROTOCOLS), ...Object.keys(PROTOCOL_ALIASES)];
  return new UsageError(`unknown protocol "${oneLine(name)}"${didYouMean(name, names)}\nKnown protocols: ${list.join(', ')}`);
}
