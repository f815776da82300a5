import { parseArgs } from 'node:util';
import { oneLine } from './escape.ts';
import { didYouMean } from './suggest.ts';

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
export function parseArguments<O extends OptionTable>(table: O, argv: readonly string[]): Arguments<O> {
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
