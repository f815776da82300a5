import { win32 } from 'node:path';
import { didYouMean, oneLine, safeJson } from '@sluice/lab/text';
import type { Client, Target } from '../../clients/clients.ts';
import { chooseClient, chooseModel, SHELLS, type Shell, setupLines } from '../../clients/setup.ts';
import { EXIT, UsageError } from '../../terminal/errors.ts';
import type { CliIo } from '../../terminal/io.ts';
import { chooseColors } from '../../terminal/text.ts';
import { findGateway, formatTrail } from '../find-gateway.ts';

interface Options {
  shell: string | undefined;
  url: string | undefined;
  config: string | undefined;
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
    url: await chooseAddress(options, io),
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

/** The address of the gateway, which need not run yet. */
async function chooseAddress(options: Options, io: CliIo): Promise<string> {
  const found = await findGateway(options, io);
  if (found.kind !== 'none') return found.url;
  const { url, other, trail } = found;
  if (url === undefined)
    throw new UsageError(`the address of the gateway is not known; start it, or name it with --url\n${formatTrail(trail)}`);
  const { yellow } = chooseColors(io.stderr, io.env);
  if (other !== undefined)
    await io.stderr.write(`${yellow('sluice:')} the gateway at ${other} is not the one of this configuration\n`);
  return url;
}

const isShell = (name: string): name is Shell => Object.hasOwn(SHELLS, name);

/** The named shell, or that of $SHELL, which Windows sets for Unix shells only; POSIX shells other than bash and zsh read the lines of bash. */
function chooseShell(name: string | undefined, env: CliIo['env']): Shell {
  if (name === undefined) {
    const { SHELL = env['OS'] === 'Windows_NT' ? 'powershell' : '' } = env;
    const own = win32.basename(SHELL, '.exe').replace(/^pwsh$/, 'powershell');
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

function formatJson(
  id: string,
  { env: variables, unset = [], args, file, snippet, steps, notes = [] }: Client,
  target: Target,
): string {
  const setup = {
    env: variables?.(target) ?? {},
    unset,
    args: args?.(target) ?? [],
    file: file ? { path: file.home, text: file.text(target) } : null,
    snippet: snippet?.text(target) ?? null,
    steps: steps?.(target) ?? [],
    notes,
  };
  return safeJson(JSON.stringify({ client: id, ...target, model: target.model ?? null, ...setup }));
}
