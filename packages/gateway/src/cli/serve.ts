/** What the commands that start a server share: ports, listen errors, the gateway itself and its welcome text. */

import { availableParallelism } from 'node:os';
import { oneLine } from '@sluice/lab/text';
import { CLIENTS, type Target } from '../clients/clients.ts';
import { chooseExampleModel, formatPasteLine } from '../clients/setup.ts';
import { ConfigError, formatPath, type Problem } from '../config/problems.ts';
import type { ConfiguredProvider } from '../config/providers.ts';
import type { GatewayState } from '../config/resolve.ts';
import { redactPatterns } from '../config/secret-patterns.ts';
import type { Running, RunOptions } from '../server/run.ts';
import { toUnreadable, UsageError } from '../terminal/errors.ts';
import type { CliIo } from '../terminal/io.ts';
import { type Colors, formatColumns, shorten } from '../terminal/text.ts';

/** Starts the gateway. Mistakes in the configuration or the address become usage errors. */
export async function startGateway({ config, ...options }: GatewayOptions, io: CliIo): Promise<Running> {
  // Imported on demand: the gateway loads more modules than all other commands together.
  const { run } = await import('../server/run.ts');
  return explainMistakes(config, () =>
    run({ ...options, ...(config !== undefined && { config }), folder: io.folder, env: io.env }),
  );
}

/** Mistakes in the configuration or the address become usage errors. */
export async function explainMistakes<T>(config: string | undefined, start: () => Promise<T>): Promise<T> {
  try {
    return await start();
  } catch (error) {
    throw explainStartError(error, config);
  }
}

type GatewayOptions = Omit<RunOptions, 'folder' | 'env' | 'config'> & { config: string | undefined };

/** The error with a message for the user, if it is a mistake of the user. */
function explainStartError(error: unknown, config: string | undefined): unknown {
  const message = error instanceof ConfigError ? error.message : explainListenError(error);
  if (message !== undefined) return new UsageError(message, { cause: error });
  return config === undefined ? error : toUnreadable(error, config);
}

/** What `sluice serve --json` prints when the gateway listens. */
export const buildWelcome = ({ url, state, file, issueConsoleToken }: Running): object => ({
  url,
  console: buildConsoleUrl(url, issueConsoleToken()),
  config: file ?? null,
  providers: [...state.providers.values()].filter(({ isDemo }) => !isDemo).map(({ id }) => id),
  models: state.models,
  warnings: state.warnings.map(({ message }) => message),
});

/** What is printed when the gateway listens: the providers, and lines to paste for the common clients. */
export function formatWelcome(
  { url, state, keys, file, issueConsoleToken }: Running,
  { bold, dim, green, yellow }: Colors,
  { columns, env = {} }: { columns?: number | undefined; env?: CliIo['env'] } = {},
): string {
  const providers = [...state.providers.values()].filter(({ isDemo }) => !isDemo);
  const isDemo = providers.length === 0;
  const model = chooseExampleModel(state.models, providers);
  const lines = [
    `${green('●')} ${bold('Sluice')} listens on ${bold(url)}${file === undefined ? '' : dim(`  (${oneLine(file)})`)}`,
    `  Console: ${bold(buildConsoleUrl(url, issueConsoleToken()))} ${dim('(this link opens it once)')}`,
    '',
    ...(isDemo
      ? [
          'No provider key was found; the built-in demo model responds. Set OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY … and restart, or run "sluice init".',
        ]
      : ['Providers:', ...formatProviders(state, columns, dim)]),
    ...state.warnings.map((warning) => `${yellow('!')} ${describeShortly(warning)}`),
    '',
    bold('Paste one of these:'),
    '',
    ...pasteLines({ url: findReachableUrl(url), model, key: state.keys.length > 0 || keys.isUsed ? 'YOUR_KEY' : 'any' }, dim),
    '',
    `More clients: ${bold('sluice env CLIENT')} prints what to set, ${bold('sluice run CLIENT')} starts one.`,
    // "npm start" works without an installed command.
    ...(env['npm_lifecycle_event'] === 'start' ? [`To install the command: ${bold('npm run install-sluice')}`] : []),
    dim(`Metrics: ${url}/metrics   Health: ${url}/health/ready   Stop: Ctrl-C`),
    '',
  ];
  return lines.join('\n');
}

/** One line per provider: `mine  openai-chat  http://127.0.0.1:8000/v1  2 models`, and where its key comes from. */
function formatProviders(
  { providers, models, resolveModel }: GatewayState,
  columns: number | undefined,
  dim: Colors['dim'],
): string[] {
  const used = models.flatMap((name) => [...new Set(resolveModel(name)?.map(({ provider }) => provider.id))]);
  const shown = [...providers.values()].filter(({ isDemo }) => !isDemo);
  const rows = shown.map(({ id, provider: { protocol }, keyFrom }) => {
    const count = used.filter((one) => one === id).length;
    const names = count === 0 ? '' : `${count} model${count === 1 ? '' : 's'}`;
    return [shorten(oneLine(id), MAX_ID_WIDTH), protocol, names, keyFrom === undefined ? '' : `(key: ${keyFrom})`] as const;
  });
  const others = [0, 1, 2, 3].reduce((sum, at) => sum + Math.max(...rows.map((row) => row[at]?.length ?? 0)) + 2, 2);
  const room = Math.max((columns || DEFAULT_WIDTH) - others, MIN_ADDRESS_WIDTH);
  const cells = rows.map(([id, protocol, names, key], at) => [id, protocol, describeEndpoints(shown[at], room), names, key]);
  return formatColumns(cells, [String, String, String, String, dim]).map((line) => `  ${line.trimEnd()}`);
}

/** The address of a provider, and how many others it has. A path may have a key, and a query is not part of an address. */
function describeEndpoints(provider: ConfiguredProvider | undefined, width: number): string {
  const endpoints = provider ? [provider, ...(provider.others ?? [])] : [];
  const [first = '', ...others] = [...new Set(endpoints.map(({ provider: { base_url } }) => base_url))];
  const { origin, pathname } = new URL(first);
  const more = others.length === 0 ? '' : ` +${others.length}`;
  const path = pathname.replace(/\/$/, '').split('/');
  const address = redactPatterns(oneLine(origin + path.map((part) => (PLAIN_SEGMENT.test(part) ? part : '…')).join('/')));
  return shorten(address, width - more.length) + more;
}

/** A version, or short words. Anything else may be a key. */
const PLAIN_SEGMENT = /^(?:|v\d[a-z\d]{0,8}|(?=.{1,20}$)[a-z]+(?:[-_.][a-z]+)*)$/;

const MAX_ID_WIDTH = 24;

/** On a narrow terminal, lines are wrapped rather than addresses cut further. */
const MIN_ADDRESS_WIDTH = 24;

/** Without a terminal. */
const DEFAULT_WIDTH = 120;

const pasteLines = (target: Target, dim: (text: string) => string): string[] =>
  Object.values(CLIENTS)
    .filter(({ isWelcomed }) => isWelcomed)
    .flatMap((client) => [dim(`# ${client.title}`), formatPasteLine(client, target)]);

/** A warning with its place, in one line. */
const describeShortly = ({ message, path, place }: Problem): string => {
  const where = place && `${place.file}:${place.line}`;
  return [where, path.length > 0 ? formatPath(path) : undefined, message].filter((part) => part !== undefined).join(': ');
};

/** The address of the console. The token is in the fragment, which browsers do not send. */
const buildConsoleUrl = (url: string, token: string): string => `${findReachableUrl(url)}/#token=${token}`;

/** Replaces a wildcard address, which clients cannot connect to. */
const findReachableUrl = (url: string): string => url.replace(/\/\/(0\.0\.0\.0|\[::\])(?=:)/, '//127.0.0.1');

/** Parses `--port`. */
export function parsePort(text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port;
  throw new UsageError(`--port must be a number up to 65535, not "${text.slice(0, 40)}"`);
}

/** Parses `--workers`. */
export function parseWorkers(text: string): number {
  if (text === 'auto') return Math.min(availableParallelism(), MAX_WORKERS);
  const count = Number(text);
  if (/^\d{1,3}$/.test(text) && count >= 1 && count <= MAX_WORKERS) return count;
  throw new UsageError(`--workers must be "auto" or a number from 1 to ${MAX_WORKERS}, not "${oneLine(text.slice(0, 40))}"`);
}

const MAX_WORKERS = 64;

/** Starts a server. An address that cannot be used becomes a usage error. */
export async function listenOn(server: { listen(port: number): Promise<string> }, port: number): Promise<string> {
  try {
    return await server.listen(port);
  } catch (error) {
    const reason = explainListenError(error);
    if (reason === undefined) throw error;
    throw new UsageError(reason, { cause: error });
  }
}

/** Why a server could not listen and what to do about it; undefined for other errors. */
export function explainListenError(error: unknown): string | undefined {
  // Fields that node sets on errors of `listen` and of the DNS lookup before it.
  const { code, syscall, address, port, hostname } = error as Partial<Record<string, unknown>>;
  if (syscall === 'getaddrinfo')
    return `host "${oneLine(String(hostname))}" cannot be resolved (${code}); choose another with --host`;
  if (syscall !== 'listen') return undefined;
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} on ${address} is already in use; choose another with --port`;
    case 'EACCES':
      return `port ${port} on ${address} needs more permissions; choose another with --port, such as 4141`;
    case 'EADDRNOTAVAIL':
      return `this machine has no address ${address}; choose another with --host`;
    default:
      return undefined;
  }
}
