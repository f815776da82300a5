import type { Stats } from 'node:fs';
import { stat } from 'node:fs/promises';

/** Identity, size and time of a file, to notice that it has changed; `absent` without one. Follows links, because Kubernetes replaces the link. */
export async function readStamp(file: string): Promise<string> {
  try {
    return formatStamp(await stat(file));
  } catch {
    return ABSENT;
  }
}

/** The same of a file that is open. */
export const formatStamp = ({ ino, size, mtimeMs }: Stats): string => `${ino} ${size} ${mtimeMs}`;

/** The stamp of a file that cannot be read. */
export const ABSENT = 'absent';
