import { UsageError } from './arguments.ts';
import type { CliIo } from './io.ts';

/** The inputs that were named; without any, standard input. */
export function chooseFiles(words: readonly string[], { stdin }: CliIo): readonly string[] {
  if (words.length === 0 && stdin.isTTY) throw new UsageError('no input: name a FILE, or send one to standard input');
  if (words.filter((word) => word === '-').length > 1) throw new UsageError('standard input ("-") can be read only once');
  return words.length === 0 ? ['-'] : words;
}
