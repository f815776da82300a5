import { join } from 'node:path';
import { UsageError } from '../arguments.ts';
import { chooseClient, chooseModel, chooseUrl, TARGET_OPTIONS } from '../choose-client.ts';
import type { Client, Target } from '../clients.ts';
import { colorsFor } from '../colors.ts';
import { type Command, defineCommand } from '../command.ts';
import { oneLine } from '../escape.ts';
import { type CliIo, type Program, systemCode } from '../io.ts';
import { startGateway } from '../start-gateway.ts';

const OPTIONS = {
  ...TARGET_OPTIONS,
  config: { type: 'string', value: 'FILE', summary: 'the configuration of a gateway that is started for this run' },
} as const;

type Given = Readonly<Record<keyof typeof OPTIONS, string | undefined>>;

/** What a shell says when there is no such program. */
const NOT_FOUND = 127;

export const run: Command = defineCommand({
  summary: 'start a client that asks the gateway',
  usage: 'run CLIENT [--url URL] [--model M] [--key K] [--config FILE] [-- ARGUMENTS…]',
  about:
    'Starts CLIENT so that it asks the gateway, for this run only, and hands it what follows "--". Where no gateway listens, one is started on a free port and ends with the client. For a library, what follows "--" is the program to start. Signals go to the client, and its exit code is passed on (127: there is no such program). A client that keeps its settings in a file gets a folder of its own for the run.',
  options: OPTIONS,
  examples: [
    { line: 'sluice run claude', what: 'Claude Code, with whatever the gateway has' },
    { line: 'sluice run codex --model anthropic/claude-sonnet-5 -- exec "say hello"', what: 'Codex asks Claude' },
    { line: 'sluice run openai -- node program.js', what: 'a program that uses an SDK of OpenAI' },
  ],
  run: async ({ options, words: [name, ...words] }, io) => {
    const { client } = chooseClient(name);
    if (client.env === undefined && client.file === undefined)
      throw new UsageError(`"${name}" is set up in the program itself: "sluice env ${name}" shows how`);
    if (client.command === undefined && words.length === 0)
      throw new UsageError(`say which program to start: sluice run ${name} -- PROGRAM`);
    const gateway = await findGateway(options, io);
    const target = { url: gateway.url, key: gateway.key, ...chooseModel(client, options.model) };
    try {
      return await inOwnFolder(client, target, io, (own) => start(client, programOf(client, target, words, own, io), io));
    } finally {
      await gateway.close();
    }
  },
});

interface Found {
  url: string;
  key: string;
  close(): Promise<void>;
}

/** The gateway that listens there, or one for this run. */
async function findGateway({ url: given, key, config }: Given, io: CliIo): Promise<Found> {
  const url = chooseUrl(given);
  const shown = key ?? (io.env['SLUICE_KEY'] || undefined);
  if (config === undefined && (await isGateway(url))) return { url, key: shown ?? 'any', close: async () => undefined };
  // The terminal is the client's: nothing is logged to it.
  const running = await startGateway({ config, listen: { host: '127.0.0.1', port: 0 }, log: 'silent' }, io);
  const { dim } = colorsFor(io.stderr, io.env);
  await io.stderr.write(`${dim(`sluice: a gateway for this run listens on ${running.url}`)}\n`);
  return { url: running.url, key: shown ?? running.state.keys[0]?.reveal() ?? 'any', close: () => running.close(0) };
}

async function isGateway(url: string): Promise<boolean> {
  try {
    const answer = await fetch(`${url}/health/live`, { signal: AbortSignal.timeout(2000) });
    return answer.ok && (await answer.text()).trim() === 'live';
  } catch {
    return false;
  }
}

/** What the folder of its own adds to a client's environment and arguments. */
type Own = { env: Record<string, string>; args: string[] };

function inOwnFolder<T>({ file }: Client, target: Target, io: CliIo, use: (own: Own) => Promise<T>): Promise<T> {
  const apart = file?.apart;
  if (!apart) return use({ env: {}, args: [] });
  return io.inTemporaryFolder(async (folder) => {
    const path = join(folder, apart.name);
    await io.makeDirectory(join(path, '..'));
    const settings = await io.createFile(path);
    await settings.write(new TextEncoder().encode(file.text(target)));
    await settings.commit();
    return use({ env: apart.env?.(folder) ?? {}, args: apart.args?.(folder) ?? [] });
  });
}

function programOf(client: Client, target: Target, words: readonly string[], own: Own, io: CliIo): Program {
  const env = { ...io.env, ...client.env?.(target), ...own.env };
  for (const name of client.unset ?? []) delete env[name];
  const [command = '', ...args] =
    client.command === undefined ? words : [client.command, ...own.args, ...(client.args?.(target) ?? []), ...words];
  return { command, args, env };
}

async function start({ title, install }: Client, program: Program, io: CliIo): Promise<number> {
  try {
    return await io.runProgram(program);
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error;
    const { red } = colorsFor(io.stderr, io.env);
    const advice = install === undefined ? '' : `; ${title} is installed with: ${install}`;
    await io.stderr.write(`${red('sluice:')} there is no program "${oneLine(program.command)}"${advice}\n`);
    return NOT_FOUND;
  }
}
