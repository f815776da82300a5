import type { Command } from './command.ts';
import { assemble } from './commands/assemble.ts';

/** The table of commands: one line each. */
export const COMMANDS: Readonly<Record<string, Command>> = { assemble };
