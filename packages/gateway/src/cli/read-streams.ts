import { TapeError } from '../tape/facts-reader.ts';
import { readTape } from '../tape/read.ts';
import { UsageError } from './arguments.ts';
import { oneLine } from './escape.ts';
import { describeSystemError } from './failures.ts';
import { type CliIo, systemCode } from './io.ts';
import { readInput } from './read-input.ts';

/** A recorded body, from a file or from a tape. */
export interface RecordedStream {
  /** As the user would call it. */
  name: string;
  bytes: Uint8Array;
  /** Known of tapes only. */
  status?: number;
}

/** The bodies of an input: one for a file or standard input, all answers for a tape. What cannot be read is wrong usage. */
export async function readStreams(input: string, io: CliIo): Promise<RecordedStream[]> {
  try {
    return [{ name: input, bytes: await readBytes(input, io) }];
  } catch (error) {
    const code = systemCode(error);
    if (code === 'EISDIR') return readAnswers(input);
    if (code === undefined) throw error;
    throw new UsageError(`${oneLine(input)}: ${describeSystemError(code, error, input).message}`, { cause: error });
  }
}

async function readBytes(file: string, io: CliIo): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of readInput(file, io)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function readAnswers(folder: string): Promise<RecordedStream[]> {
  try {
    const streams: RecordedStream[] = [];
    for (const { name, response } of await readTape(folder))
      if (response) streams.push({ name, bytes: await response.readBody(), status: response.status });
    return streams;
  } catch (error) {
    if (error instanceof TapeError) throw new UsageError(error.message, { cause: error });
    throw error;
  }
}
