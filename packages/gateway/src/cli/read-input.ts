import { oneLine } from './escape.ts';
import type { CliIo } from './io.ts';
import { Progress } from './progress.ts';

/** The chunks of an input, with progress when it is long. Rejects with the error of the system. */
export async function* readInput(file: string, io: CliIo): AsyncGenerator<Uint8Array, void, undefined> {
  const { size, chunks } = file === '-' ? io.stdin.open() : await io.openFile(file);
  const progress = new Progress(io, oneLine(file), size);
  try {
    for await (const chunk of chunks) {
      yield chunk;
      await progress.advance(chunk.length);
    }
  } finally {
    await progress.clear();
  }
}

/** The whole input as text; a byte order mark is none of it. */
export async function readText(file: string, io: CliIo): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of readInput(file, io)) text += decoder.decode(chunk, { stream: true });
  return text + decoder.decode();
}
