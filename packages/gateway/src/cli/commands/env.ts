import { basename } from 'node:path';
import { didYouMean, oneLine, safeJson } from '@sluice/lab/text';
import {
  type Client,
  chooseClient,
  chooseModel,
  chooseUrl,
  SHELLS,
  type Shell,
  setupLines,
  type Target,
} from '../../clients/clients.ts';
import { EXIT, UsageError } from '../../terminal/errors.ts';
import type { CliIo } from '../../terminal/io.ts';

interface Options {
  shell: string | undefined;
  url: string | undefined;
  model: string | undefined;
  key: string | undefined;
  file: boolean;
  json: boolean;
}

/** `sluice env`: prints the variables or settings that point a client at the gateway. */
export async function run({ options, words }: { options: Options; words: string[] }, io: CliIo): Promise<number> {
  const { id, client } = chooseClient(words[0]);
  const shell = chooseShell(options.shell, io.env);
  const target = {
    url: chooseUrl(options.url),
    key: options.key ?? (io.env['SLUICE_KEY'] || 'any'),
    ...chooseModel(client, options.model),
  };
  const lines = options.json
    ? [formatJson(id, client, target)]
    : options.file
      ? [formatFile(id, client, target)]
      : setupLines(client, target, shell);
  await io.stdout.write(`${lines.join('\n')}\n`);
  return EXIT.ok;
}

const isShell = (name: string): name is Shell => Object.hasOwn(SHELLS, name);

/** The named shell, or that of $SHELL; POSIX shells other than bash and zsh read the lines of bash. */
function chooseShell(name: string | undefined, env: CliIo['env']): Shell {
  if (name === undefined) {
    const own = basename(env['SHELL'] ?? '').replace(/^pwsh$/, 'powershell');
    return isShell(own) ? own : 'bash';
  }
  if (isShell(name)) return name;
  const list = Object.keys(SHELLS);
  throw new UsageError(`unknown shell "${oneLine(name)}"${didYouMean(name, list)}\nKnown shells: ${list.join(', ')}`);
}

function formatFile(id: string, { file }: Client, target: Target): string {
  if (file) return file.text(target);
  throw new UsageError(`"${id}" has no settings file; omit --file`);
}

function formatJson(id: string, { env: variables, unset = [], args, file, snippet }: Client, target: Target): string {
  const setup = {
    env: variables?.(target) ?? {},
    unset,
    args: args?.(target) ?? [],
    file: file ? { path: file.home, text: file.text(target) } : null,
    snippet: snippet?.(target) ?? null,
  };
  return safeJson(JSON.stringify({ client: id, ...target, model: target.model ?? null, ...setup }));
}
