import pico from 'picocolors';
import type { CliIo, Output } from './io.ts';

export type Colors = ReturnType<typeof pico.createColors>;

/** Colours for a terminal that wants them (https://no-color.org); else functions that change nothing. */
export function colorsFor(output: Output, env: CliIo['env']): Colors {
  if (env['NO_COLOR']) return pico.createColors(false);
  const isForced = Boolean(env['FORCE_COLOR']) && env['FORCE_COLOR'] !== '0';
  return pico.createColors(isForced || (output.isTTY && env['TERM'] !== 'dumb'));
}
