import { chooseFiles } from './choose-files.ts';
import type { CliIo } from './io.ts';

export interface Found {
  file: string;
  /** It was not named itself, but stands in a folder that was. */
  isFromFolder: boolean;
}

/** The inputs that were named, and everything in the folders that were. */
export async function findFiles(words: readonly string[], io: CliIo): Promise<Found[]> {
  const found: Found[] = [];
  for (const word of chooseFiles(words, io)) {
    const inside = word === '-' ? undefined : await io.listFolder(word);
    if (inside) found.push(...inside.map((file) => ({ file, isFromFolder: true })));
    else found.push({ file: word, isFromFolder: false });
  }
  return found;
}
