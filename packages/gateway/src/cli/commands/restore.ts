import { access } from 'node:fs/promises';
import { oneLine } from '@sluice/lab/text';
import { restore } from '../../store/index.ts';
import { EXIT, toUnreadable, UsageError } from '../../terminal/errors.ts';
import type { CliIo } from '../../terminal/io.ts';
import { chooseFolder, reportStoreErrors } from '../ledger/open.ts';

/** `sluice restore`: replaces the database of a data folder by a backup. */
export async function run(
  { options, words }: { options: { data: string | undefined }; words: string[] },
  io: CliIo,
): Promise<number> {
  const [file, more] = words;
  if (file === undefined || more !== undefined) throw new UsageError('name one backup: sluice restore FILE');
  const folder = await chooseFolder(options.data, io.env);
  if (folder === undefined) throw new UsageError('data is kept in memory; name a folder with --data');
  await access(file).catch((error: unknown) => {
    throw toUnreadable(error, file);
  });
  return reportStoreErrors(io, async () => {
    const replaced = restore(folder, file);
    const kept =
      replaced === null ? 'The folder had no database before.' : `The replaced database is kept as ${oneLine(replaced)}.`;
    await io.stdout.write(`Restored ${oneLine(folder)} from ${oneLine(file)}. ${kept}\n`);
    return EXIT.ok;
  });
}
