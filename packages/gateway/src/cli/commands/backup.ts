import { stat } from 'node:fs/promises';
import { oneLine } from '@sluice/lab/text';
import { backUp } from '../../store/index.ts';
import { describeWriteError, EXIT, UsageError } from '../../terminal/errors.ts';
import type { CliIo } from '../../terminal/io.ts';
import { formatBytes } from '../../terminal/text.ts';
import { readHome } from '../home.ts';
import { chooseFolder, type FolderOptions, reportStoreErrors, requireDatabase } from '../ledger/open.ts';

/** `sluice backup`: copies the database of a data folder, also while a gateway runs. */
export async function run({ options, words }: { options: FolderOptions; words: string[] }, io: CliIo): Promise<number> {
  const [file, more] = words;
  if (file === undefined || more !== undefined) throw new UsageError('name one file to write: sluice backup FILE');
  if (options.data === undefined && (await readHome(options.config, io)).data.kind === 'database')
    throw new UsageError('the store is a PostgreSQL database; back it up with pg_dump, or name a folder with --data');
  const folder = await chooseFolder(options, io);
  requireDatabase(folder);
  return reportStoreErrors(io, async () => {
    await backUp(folder, file).catch((error: unknown) => {
      const failure = describeWriteError(error);
      throw failure === undefined ? error : new UsageError(`writing ${oneLine(file)} failed: ${failure}`, { cause: error });
    });
    const { size } = await stat(file);
    await io.stdout.write(`Backed up ${oneLine(folder)} to ${oneLine(file)} (${formatBytes(size)}).\n`);
    return EXIT.ok;
  });
}
