/** What the commands that start a server share: ports, listen errors, the gateway itself and its welcome text. */

import { availableParallelism } from 'node:os';
import { oneLine } from '@sluice/lab/text';
import { CLIENTS, type Target } from '../clients/clients.ts';
import { chooseExampleModel, formatPasteLine } from '../clients/setup.ts';
import type { Running, RunOptions } from '../server/run.ts';
import { toUnreadable, UsageError } from '../terminal/errors.ts';
import type { CliIo } from '../terminal/io.ts';
import type { Colors } from '../terminal/text.ts';

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
    throw await explainStartError(error, config);
  }
}

type GatewayOptions = Omit<RunOptions, 'folder' | 'env' | 'config'> & { config: string | undefined };

/** The error with a message for the user, if it is a mistake of the user. */
async function explainStartError(error: unknown, config: string | undefined): Promise<unknown> {
  const { ConfigError } = await import('../config/document.ts');
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
  env: CliIo['env'] = {},
): string {
  const providers = [...state.providers.values()].filter(({ isDemo }) => !isDemo);
  const isDemo = providers.length === 0;
  const model = chooseExampleModel(state.models, providers);
  const lines = [
    `${green('●')} ${bold('Sluice')} listens on ${bold(url)}${file === undefined ? '' : dim(`  (${file})`)}`,
    `  Console: ${bold(buildConsoleUrl(url, issueConsoleToken()))} ${dim('(this link opens it once)')}`,
    '',
    ...(isDemo
      ? [
          'No provider key was found; the built-in demo model responds. Set OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY … and restart, or run "sluice init".',
        ]
      : [
          'Providers:',
          ...providers.map(({ id, title, keyFrom }) => `  ${id.padEnd(18)} ${title}${keyFrom ? dim(`  (${keyFrom})`) : ''}`),
        ]),
    ...state.warnings.map(({ message }) => `${yellow('!')} ${message}`),
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

const pasteLines = (target: Target, dim: (text: string) => string): string[] =>
  Object.values(CLIENTS)
    .filter(({ isWelcomed }) => isWelcomed)
    .flatMap((client) => [dim(`# ${client.title}`), formatPasteLine(client, target)]);

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
