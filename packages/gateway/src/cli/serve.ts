import { oneLine, systemCode } from '@sluice/lab/text';
import { ConfigError } from '../config/document.ts';
import type { Running, RunOptions } from '../server/run.ts';
import type { CliIo } from '../terminal/io.ts';
import type { Colors } from '../terminal/text.ts';
import { CLIENTS, DEMO_MODEL, pasteLine, type Target } from './clients.ts';
import { UsageError } from './command.ts';

export function portOf(text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port;
  throw new UsageError(`--port must be a number up to 65535, not "${text.slice(0, 40)}"`);
}

/** Listens, and tells as wrong usage what the user can put right. */
export async function listenOn(server: { listen(port: number): Promise<string> }, port: number): Promise<string> {
  try {
    return await server.listen(port);
  } catch (error) {
    const reason = explainListenError(error);
    if (reason === undefined) throw error;
    throw new UsageError(reason, { cause: error });
  }
}

/** Why a server could not listen and what to do, in words; undefined for other errors. */
export function explainListenError(error: unknown): string | undefined {
  // Node sets these fields on errors of `listen` and of the lookup before it.
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

type Wishes = Omit<RunOptions, 'folder' | 'env' | 'config'> & { config: string | undefined };

/** Starts the gateway. What the user can put right is told as wrong usage. */
export async function startGateway({ config, ...wishes }: Wishes, io: CliIo): Promise<Running> {
  // The gateway brings more modules than all other commands together: they do not wait for it.
  const { run } = await import('../server/run.ts');
  try {
    return await run({ ...wishes, ...(config !== undefined && { config }), folder: process.cwd(), env: io.env });
  } catch (error) {
    throw new UsageError(reasonOf(error, config), { cause: error });
  }
}

/** Throws what is no mistake of the user's. */
function reasonOf(error: unknown, config: string | undefined): string {
  if (error instanceof ConfigError) return error.message;
  const listening = explainListenError(error);
  if (listening !== undefined) return listening;
  const code = systemCode(error);
  if (code !== undefined && config !== undefined) return `${oneLine(config)} cannot be read: ${code}`;
  throw error;
}

/** What the screen says when the gateway listens: who answers, and what to paste. */
export function welcome({ url, state, file }: Running, { bold, dim, green, yellow }: Colors): string {
  const providers = [...state.providers.values()].filter(({ isDemo }) => !isDemo);
  const isDemo = providers.length === 0;
  const model = state.models.find((name) => !name.includes('*')) ?? (isDemo ? DEMO_MODEL : `${providers[0]?.id}/MODEL`);
  const lines = [
    `${green('●')} ${bold('Sluice')} listens on ${bold(url)}${file === undefined ? '' : dim(`  (${file})`)}`,
    '',
    ...(isDemo
      ? [
          'No key was found: the built-in demo model answers. Set OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY … and start again.',
        ]
      : [
          'Providers:',
          ...providers.map(({ id, title, keyFrom }) => `  ${id.padEnd(18)} ${title}${keyFrom ? dim(`  (${keyFrom})`) : ''}`),
        ]),
    ...state.warnings.map(({ message }) => `${yellow('!')} ${message}`),
    '',
    bold('Paste one of these:'),
    '',
    ...paste({ url: reachable(url), model, key: state.keys.length > 0 ? 'YOUR_KEY' : 'any' }, dim),
    '',
    `More clients: ${bold('sluice env CLIENT')} says what to set, ${bold('sluice run CLIENT')} starts it that way.`,
    dim(`Metrics: ${url}/metrics   Health: ${url}/health/ready   Stop: Ctrl-C`),
    '',
  ];
  return lines.join('\n');
}

/** Listening everywhere is no address that a client could ask. */
const reachable = (url: string): string => url.replace(/\/\/(0\.0\.0\.0|\[::\])(?=:)/, '//127.0.0.1');

const paste = (target: Target, dim: (text: string) => string): string[] =>
  Object.values(CLIENTS)
    .filter(({ isWelcomed }) => isWelcomed)
    .flatMap((client) => [dim(`# ${client.title}`), pasteLine(client, target)]);
