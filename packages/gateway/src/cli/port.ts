import { UsageError } from './arguments.ts';
import { systemCode } from './io.ts';

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
    const code = systemCode(error);
    if (code === 'EADDRINUSE') throw new UsageError(`port ${port} is in use: name another with --port`, { cause: error });
    if (code === 'EACCES') throw new UsageError(`port ${port} may not be used: name another with --port`, { cause: error });
    throw error;
  }
}
