import { open } from 'node:fs/promises';
import { oneLine } from '@sluice/lab/text';
import { restore } from '../../store/index.ts';
import { EXIT, toUnreadable, UsageError } from '../../terminal/errors.ts';
import type { CliIo } from '../../terminal/io.ts';
import { chooseFolder, type FolderOptions, reportStoreErrors } from '../ledger/open.ts';

/** `sluice restore`: replaces the database of a data folder by a backup. */
export async function run({ options, words }: { options: FolderOptions; words: string[] }, io: CliIo): Promise<number> {
  const [file, more] = words;
  if (file === undefined || more !== undefined) throw new UsageError('name one backup: sluice restore FILE');
  const folder = await chooseFolder(options, io);
  await checkReadable(file);
  return reportStoreErrors(io, async () => {
    const replaced = restore(folder, file);
    const kept =
      replaced === null ? 'The folder had no database before.' : `The replaced database is kept as ${oneLine(replaced)}.`;
    await io.stdout.write(`Restored ${oneLine(folder)} from ${oneLine(file)}. ${kept}\n`);
    return EXIT.ok;
  });
}

/** SQLite words errors of files in its own way. */
async function checkReadable(file: string): Promise<void> {
  const opened = await open(file).catch((error: unknown) => {
    throw toUnreadable(error, file);
  });
  try {
    await opened.read(new Uint8Array(1));
  } catch (error) {
    throw toUnreadable(error, file);
  } finally {
    await opened.close();
  }
}
