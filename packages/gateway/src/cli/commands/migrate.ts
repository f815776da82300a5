import { oneLine } from '@sluice/lab/text';
import { expandReferences } from '../../config/secrets.ts';
import { describeAddress } from '../../store/postgres/address.ts';
import { EXIT, UsageError } from '../../terminal/errors.ts';
import type { CliIo } from '../../terminal/io.ts';
import { chooseFolder, type FolderOptions, reportStoreErrors, requireDatabase } from '../ledger/open.ts';

interface Options extends FolderOptions {
  to: string | undefined;
}

/** `sluice migrate`: copies a data folder to a PostgreSQL database. */
export async function run({ options, words }: { options: Options; words: string[] }, io: CliIo): Promise<number> {
  if (words[0] !== undefined) throw new UsageError(`unexpected argument "${oneLine(words[0])}"; name the database with --to`);
  if (options.to === undefined) throw new UsageError('name the database: sluice migrate --to postgres://user@host/database');
  const url = expandReferences(options.to, io.env);
  if ('fault' in url) throw new UsageError(`--to: ${url.fault}`);
  const folder = await chooseFolder(options, io);
  requireDatabase(folder);
  return reportStoreErrors(io, async () => {
    const place = describeAddress(url.text);
    // With the drivers of both databases, which no other command needs.
    const { transfer } = await import('../../store/transfer.ts');
    const counts = await transfer({ folder, url: url.text });
    const { exchanges, attempts, rollups, keys, audit, copied } = counts;
    await io.stdout.write(
      `Copied ${oneLine(folder)} to ${oneLine(place)}: ${copied} new rows. Both have the same ${keys} keys, ${exchanges} exchanges, ${attempts} attempts, ${rollups} roll-ups and ${audit} lines of the audit log.\n`,
    );
    if (keys > 0) await io.stdout.write('Give every node the pepper of this folder: set auth.pepper_file to a copy of it.\n');
    return EXIT.ok;
  });
}
