import type { ProviderProfile } from '@sluice/core';
import { colorsFor } from '../cli/colors.ts';
import { oneLine } from '../cli/escape.ts';
import { describeSystemError } from '../cli/failures.ts';
import { type CliIo, systemCode } from '../cli/io.ts';

/** Writes what was learned; false when the file could not be written. */
export async function writeProfile(path: string, profile: Partial<ProviderProfile>, io: CliIo): Promise<boolean> {
  const { green, red } = colorsFor(io.stderr, io.env);
  try {
    const file = await io.createFile(path);
    await file.write(new TextEncoder().encode(`${JSON.stringify(profile, null, 2)}\n`));
    await file.commit();
  } catch (error) {
    const code = systemCode(error);
    if (code === undefined) throw error;
    await io.stderr.write(`${red('sluice:')} ${oneLine(path)}: ${oneLine(describeSystemError(code, error, path).message)}\n`);
    return false;
  }
  const fields = Object.keys(profile);
  const learned = fields.length === 0 ? 'nothing that differs was learned' : `learned ${fields.join(', ')}`;
  await io.stderr.write(`${green('sluice:')} ${oneLine(path)}: ${learned}\n`);
  return true;
}
