import { ConfigError } from '../config/problem.ts';
import type { Running, RunOptions } from '../server/run.ts';
import { UsageError } from './arguments.ts';
import { oneLine } from './escape.ts';
import { type CliIo, systemCode } from './io.ts';
import { explainListenError } from './port.ts';

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
