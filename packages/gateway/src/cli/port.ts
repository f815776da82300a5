import { UsageError } from './arguments.ts';
import { oneLine } from './escape.ts';

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
