import { UsageError } from '../../terminal/errors.ts';
import type { CliIo } from '../../terminal/io.ts';
import { showPrices } from '../prices.ts';

interface Options {
  provider: string | undefined;
  config: string | undefined;
  json: boolean;
}

/** `sluice prices`: shows what models cost. */
export async function run({ options, words }: { options: Options; words: string[] }, io: CliIo): Promise<number> {
  if (words.length > 1) throw new UsageError('name one model');
  return showPrices({ ...options, model: words[0] }, io);
}
