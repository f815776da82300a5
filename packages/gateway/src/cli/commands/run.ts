import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { oneLine, systemCode } from '@sluice/lab/text';
import type { Client, Target } from '../../clients/clients.ts';
import { chooseClient, chooseModel, isStartable } from '../../clients/setup.ts';
import { KEY_VARIABLES } from '../../providers/lookup.ts';
import { UsageError } from '../../terminal/errors.ts';
import type { CliIo, Program } from '../../terminal/io.ts';
import { chooseColors } from '../../terminal/text.ts';
import { findGateway, requireGateway } from '../find-gateway.ts';
import { explainMistakes, startGateway } from '../serve.ts';

interface Options {
  url: string | undefined;
  model: string | undefined;
  key: string | undefined;
  config: string | undefined;
  data: string | undefined;
  'pass-env': string | undefined;
}

/** `sluice run`: starts a client that uses the gateway. */
export async function run({ options, words }: { options: Options; words: string[] }, io: CliIo): Promise<number> {
  const [name, ...rest] = words;
  const { client } = chooseClient(name);
  if (!isStartable(client))
    throw new UsageError(`"${name}" is set up in its own settings or in code; "sluice env ${name}" prints how`);
  if (client.command === undefined && rest.length === 0)
    throw new UsageError(`name the program to start: sluice run ${name} -- PROGRAM`);
  const inherited = await buildInheritedEnv(options, io);
  const gateway = await chooseGateway(options, io);
  const { url, key, hasWebSocket } = gateway;
  const target = { url, key, hasWebSocket, ...chooseModel(client, options.model) };
  try {
    return await withOwnSettings(client, target, io, (settings) =>
      startProgram(client, buildProgram(client, target, rest, settings, inherited), io),
    );
  } finally {
    await gateway.close();
  }
}

/** The gateway that runs, or a new one for this run. */
async function chooseGateway(options: Options, io: CliIo): Promise<Gateway> {
  if (options.url !== undefined && options.config !== undefined)
    throw new UsageError('--url names a running gateway and --config starts one; use one of them');
  const clientKey = options.key ?? (io.env['SLUICE_KEY'] || undefined);
  const found = options.config === undefined ? await findGateway(options, io) : undefined;
  if (found === undefined || found.kind === 'none') return openGateway(options, clientKey, found?.other, io);
  if (found.kind === 'named') await requireGateway(found);
  return { url: found.url, key: clientKey ?? 'any', hasWebSocket: true, close: async () => undefined };
}

/** Starts a gateway for this run. `other`: where one responds that is not the one of the configuration. */
async function openGateway(
  { config, data = 'memory' }: Options,
  clientKey: string | undefined,
  other: string | undefined,
  io: CliIo,
): Promise<Gateway> {
  // Silent, because the client uses the terminal.
  const running = await startGateway({ config, data, listen: { host: '127.0.0.1', port: 0, tls: 'off' }, log: 'silent' }, io);
  if (clientKey === undefined && running.state.keys.length === 0 && running.keys.isUsed) {
    await running.close(0);
    throw new UsageError('the gateway needs a client key; set SLUICE_KEY or --key, or omit --data');
  }
  const { dim } = chooseColors(io.stderr, io.env);
  const why = other === undefined ? '' : ` (that at ${other} is not the one of this configuration; --url uses it)`;
  await io.stderr.write(`${dim(`sluice: started a gateway for this run on ${running.url}${why}`)}\n`);
  const { keys, responses } = running.state;
  return {
    url: running.url,
    key: clientKey ?? keys[0]?.key.reveal() ?? 'any',
    hasWebSocket: responses.websocket && responses.store !== 'off',
    close: () => running.close(0),
  };
}

interface Gateway {
  url: string;
  key: string;
  /** Assumed of a gateway that runs already. */
  hasWebSocket: boolean;
  close(): Promise<void>;
}

/** Our environment without keys of providers and of the gateway; the client needs only the key that it is given. */
async function buildInheritedEnv(options: Options, { env, folder }: CliIo): Promise<CliIo['env']> {
  const passed = parsePassedNames(options['pass-env'], env);
  const removed = new Set([
    'SLUICE_KEYS',
    'SLUICE_KEY',
    'SLUICE_ADMIN_KEY',
    'SLUICE_KEYS_FILE',
    'SLUICE_ADMIN_KEY_FILE',
    ...KEY_VARIABLES,
    ...[...KEY_VARIABLES].map((name) => `${name}_FILE`),
    ...(await listConfigVariables(options.config, env, folder)),
  ]);
  return Object.fromEntries(Object.entries(env).filter(([name]) => passed.has(name) || !removed.has(name.toUpperCase())));
}

function parsePassedNames(list: string | undefined, env: CliIo['env']): ReadonlySet<string> {
  const names = (list?.split(',') ?? []).map((name) => name.trim());
  const unknown = names.find((name) => env[name] === undefined);
  if (unknown !== undefined) throw new UsageError(`--pass-env: the environment variable "${oneLine(unknown)}" is not set`);
  return new Set(names);
}

/** Variables that the configuration reads secrets from. The gateway reports a file that cannot be read. */
async function listConfigVariables(config: string | undefined, env: CliIo['env'], folder: string): Promise<string[]> {
  // Imported on demand, like the gateway.
  const { findConfig, listSecretVariables } = await import('../../config/load.ts');
  const { readSharedText } = await import('../../config/shared.ts');
  const file = config ?? findConfig(folder);
  if (file === undefined) return [];
  const text = await readFile(file, 'utf8').catch(() => '');
  const shared = await explainMistakes(file, () => readSharedText(file, text, env));
  return [text, shared].flatMap((one) => listSecretVariables(file, one, env)).map((name) => name.toUpperCase());
}

/** Writes the settings file of a client into a temporary folder that exists while `use` runs. */
function withOwnSettings<T>({ file }: Client, target: Target, io: CliIo, use: (settings: OwnSettings) => Promise<T>): Promise<T> {
  const apart = file?.apart;
  if (!apart) return use({ env: {}, args: [] });
  return io.inTemporaryFolder(async (folder) => {
    const path = join(folder, apart.name);
    await io.makeDirectory(join(path, '..'));
    const output = await io.createFile(path);
    await output.write(new TextEncoder().encode(file.text(target)));
    await output.commit();
    return use({ env: apart.env?.(folder) ?? {}, args: apart.args?.(folder) ?? [] });
  });
}

/** Environment and arguments that point a client at its temporary settings folder. */
type OwnSettings = { env: Record<string, string>; args: string[] };

function buildProgram(
  client: Client,
  target: Target,
  words: readonly string[],
  settings: OwnSettings,
  inherited: Program['env'],
): Program {
  const env = { ...inherited, ...client.env?.(target), ...settings.env };
  for (const name of client.unset ?? []) delete env[name];
  const [command = '', ...args] =
    client.command === undefined ? words : [client.command, ...settings.args, ...(client.args?.(target) ?? []), ...words];
  return { command, args, env };
}

async function startProgram({ title, install }: Client, program: Program, io: CliIo): Promise<number> {
  try {
    return await io.runProgram(program);
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error;
    const { red } = chooseColors(io.stderr, io.env);
    const advice = install === undefined ? '' : `; install ${title} with: ${install}`;
    await io.stderr.write(`${red('sluice:')} no program "${oneLine(program.command)}" was found${advice}\n`);
    return NOT_FOUND;
  }
}

/** Exit code of a shell for a program that does not exist. */
const NOT_FOUND = 127;
