import { colorsFor } from './colors.ts';
import { oneLine, printable } from './escape.ts';
import type { CliIo } from './io.ts';

/** What is said about an exception that nobody expected: a bug of ours. The stack is for those who ask for it. */
export function internalError(error: unknown, io: CliIo): string {
  const { red } = colorsFor(io.stderr, io.env);
  const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const stack = io.env['SLUICE_DEBUG'] === '1' && error instanceof Error ? `${printable(error.stack ?? '')}\n` : '';
  return `${red('sluice:')} internal error: ${oneLine(message)} – a bug in sluice; please report it with the input that caused it (SLUICE_DEBUG=1 shows the stack)\n${stack}`;
}
