import type { Command } from './command.ts';
import { assemble } from './commands/assemble.ts';
import { convert } from './commands/convert.ts';
import { diff } from './commands/diff.ts';
import { doctor } from './commands/doctor.ts';
import { env } from './commands/env.ts';
import { prove } from './commands/prove.ts';
import { record } from './commands/record.ts';
import { repair } from './commands/repair.ts';
import { replay } from './commands/replay.ts';
import { run } from './commands/run.ts';
import { serve } from './commands/serve.ts';
import { shrink } from './commands/shrink.ts';

/** All commands by name, in the order of the help. */
export const COMMANDS: Readonly<Record<string, Command>> = {
  assemble,
  convert,
  doctor,
  repair,
  prove,
  serve,
  run,
  env,
  record,
  replay,
  shrink,
  diff,
};
