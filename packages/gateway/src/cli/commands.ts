import type { Command } from './command.ts';
import { assemble } from './commands/assemble.ts';
import { convert } from './commands/convert.ts';
import { env } from './commands/env.ts';
import { run } from './commands/run.ts';
import { serve } from './commands/serve.ts';

/** The table of commands: one line each. */
export const COMMANDS: Readonly<Record<string, Command>> = { assemble, convert, serve, run, env };
