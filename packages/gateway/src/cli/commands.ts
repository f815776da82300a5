/** The table of commands. Running one loads its modules only; help, completion and docs/cli.md need this file and its tables alone. */

import type { Command } from './command.ts';
import { GATEWAY_COMMANDS } from './tables/gateway.ts';
import { defineIn } from './tables/options.ts';
import { STREAM_COMMANDS } from './tables/streams.ts';
import { USAGE_COMMANDS } from './tables/usage.ts';

/** All commands by name, in the order of the help. */
export const COMMANDS: Readonly<Record<string, Command>> = {
  ...GATEWAY_COMMANDS,
  completion: defineIn('gateway')({
    summary: 'Print a completion script for bash, zsh or fish',
    usage: ['completion bash|zsh|fish'],
    about:
      'Prints a script that completes commands, options, protocols, clients and files. Evaluate it in the startup file of the shell.',
    options: {},
    words: ['bash', 'zsh', 'fish'],
    examples: [
      { line: 'eval "$(sluice completion bash)"', what: 'In ~/.bashrc' },
      { line: 'eval "$(sluice completion zsh)"', what: 'In ~/.zshrc, after compinit' },
      { line: 'sluice completion fish | source', what: 'In ~/.config/fish/config.fish' },
    ],
    load: async () => {
      const { createRun } = await import('./commands/completion.ts');
      return { run: createRun(COMMANDS) };
    },
  }),
  ...USAGE_COMMANDS,
  ...STREAM_COMMANDS,
};
