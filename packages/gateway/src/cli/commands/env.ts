import { safeJson } from '@sluice/lab/text';
import { type Client, chooseClient, chooseModel, chooseUrl, setupLines, TARGET_OPTIONS, type Target } from '../clients.ts';
import { type Command, defineCommand, UsageError } from '../command.ts';

const OPTIONS = {
  ...TARGET_OPTIONS,
  file: { type: 'boolean', summary: 'only what belongs into the file of its settings' },
  json: { type: 'boolean', summary: '{client, url, key, model, env, unset, args, file, snippet} as one line of JSON' },
} as const;

/** `sluice env`: prints the variables or settings that point a client at the gateway. */
export const env: Command = defineCommand({
  summary: 'what makes a client ask the gateway: variables, or lines for its settings',
  usage: 'env CLIENT [--url URL] [--model M] [--key K] [--file] [--json]',
  about:
    'Prints what points CLIENT at the gateway: lines that a shell can take as they are, in which what belongs into a file stands as comments (--file: alone); for a library without variables, a few lines of code. Nothing is changed. "sluice run CLIENT" does the same for one run.',
  options: OPTIONS,
  examples: [
    { line: 'eval "$(sluice env claude)"', what: 'this shell’s Claude Code asks the gateway' },
    { line: 'sluice env codex --model anthropic/claude-sonnet-5', what: 'variables, and lines for config.toml' },
    { line: 'sluice env pi --model openai/gpt-5 --file > ~/.pi/agent/models.json', what: 'a whole file' },
    { line: 'sluice env opencode --url http://10.0.0.7:4141 --key "$KEY" --json', what: 'for a program' },
  ],
  run: async ({ options, words }, io) => {
    const { id, client } = chooseClient(words[0]);
    const target = {
      url: chooseUrl(options.url),
      key: options.key ?? (io.env['SLUICE_KEY'] || 'any'),
      ...chooseModel(client, options.model),
    };
    const lines = options.json
      ? [formatJson(id, client, target)]
      : options.file
        ? [formatFile(id, client, target)]
        : setupLines(client, target);
    await io.stdout.write(`${lines.join('\n')}\n`);
    return 0;
  },
});

function formatFile(id: string, { file }: Client, target: Target): string {
  if (file) return file.text(target);
  throw new UsageError(`"${id}" needs no file: leave out --file`);
}

function formatJson(id: string, { env: variables, unset = [], args, file, snippet }: Client, target: Target): string {
  const setup = {
    env: variables?.(target) ?? {},
    unset,
    args: args?.(target) ?? [],
    ...(file && { file: { path: file.home, text: file.text(target) } }),
    ...(snippet && { snippet: snippet(target) }),
  };
  return safeJson(JSON.stringify({ client: id, ...target, ...setup }));
}
