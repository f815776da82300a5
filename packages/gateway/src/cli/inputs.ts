/** Finds and reads the inputs of commands: files, folders, tapes and standard input. */

import { type AccumulatedError, type AccumulatedMessage, type CanonicalStreamEvent, Examiner, type Protocol } from '@sluice/core';
import { StreamAccumulator } from '@sluice/core/engine';
import { StreamValidator } from '@sluice/core/internal';
import { readTape, TapeError } from '@sluice/lab/tape';
import { oneLine, systemCode } from '@sluice/lab/text';
import { readInput } from '../terminal/inputs.ts';
import { type CliIo, describeSystemError } from '../terminal/io.ts';
import { UsageError } from './command.ts';
import { formatInternalError } from './help.ts';

/** The named inputs; standard input when none is named. */
export function chooseFiles(words: readonly string[], { stdin }: CliIo): readonly string[] {
  if (words.length === 0 && stdin.isTTY) throw new UsageError('no input: name a FILE, or send one to standard input');
  if (words.filter((word) => word === '-').length > 1) throw new UsageError('standard input ("-") can be read only once');
  return words.length === 0 ? ['-'] : words;
}

/** The named inputs, with folders replaced by the files below them. */
export async function findFiles(words: readonly string[], io: CliIo): Promise<FoundFile[]> {
  const found: FoundFile[] = [];
  for (const word of chooseFiles(words, io)) {
    const inside = word === '-' ? undefined : await io.listFolder(word);
    if (inside) found.push(...inside.map((file) => ({ file, isFromFolder: true })));
    else found.push({ file: word, isFromFolder: false });
  }
  return found;
}

/** An input of a command that accepts folders. */
export interface FoundFile {
  file: string;
  /** Found in a folder instead of being named itself. */
  isFromFolder: boolean;
}

/** Reads an input to its end. An input that cannot be read results in a message with an error. */
export async function readMessage(file: string, protocols: readonly Protocol[], io: CliIo): Promise<AccumulatedMessage> {
  // The examiner instead of the accumulator, so that diagnostics equal those of `sluice doctor`.
  const examiner = new Examiner({ protocol: protocols, ...(io.env['SLUICE_DEBUG'] === '1' && { onEvent: createValidator() }) });
  try {
    await readInto(examiner, file, io);
    return examiner.end().message;
  } catch (error) {
    const code = systemCode(error);
    // What was read before a read error is kept; after an internal error the partial message is not reliable.
    if (code !== undefined) return buildFailedMessage(examiner, protocols, describeSystemError(code, error, file));
    await io.stderr.write(formatInternalError(error, io));
    return createEmptyMessage(protocols, {
      code: 'internal_error',
      message: 'internal error: a bug in sluice',
      canonical: 'INTERNAL',
    });
  }
}

/** Debug mode checks every event of the decoder against the canonical stream grammar. */
function createValidator(): (event: CanonicalStreamEvent) => void {
  const validator = new StreamValidator();
  return (event) => void validator.push(event);
}

async function readInto(examiner: Examiner, file: string, io: CliIo): Promise<void> {
  for await (const chunk of readInput(file, io)) {
    examiner.push(chunk);
    if (examiner.hasFailed) break;
  }
}

function buildFailedMessage(examiner: Examiner, protocols: readonly Protocol[], error: AccumulatedError): AccumulatedMessage {
  const partial = examiner.fail(error.message).message;
  const isEmpty = partial.message.content.length === 0 && partial.id === '';
  return isEmpty ? createEmptyMessage(protocols, error) : withError(partial, error);
}

/** The result for an input without any content. */
export function createEmptyMessage(protocols: readonly Protocol[], error: AccumulatedError): AccumulatedMessage {
  const [protocol] = protocols;
  const empty = new StreamAccumulator({ protocol: protocols }).finish();
  return { ...withError(empty, error), protocol: protocols.length === 1 && protocol ? protocol.id : null };
}

function withError(result: AccumulatedMessage, error: AccumulatedError): AccumulatedMessage {
  const { code, message, canonical } = error;
  return { ...result, error, message: { ...result.message, error: { code: canonical, message, details: { code } } } };
}

/**
 * The bodies of an input: one for a file or standard input, every response for a tape. Throws a usage error when
 * unreadable.
 */
export async function readStreams(input: string, io: CliIo): Promise<RecordedStream[]> {
  try {
    return [{ name: input, bytes: await readBytes(input, io) }];
  } catch (error) {
    const code = systemCode(error);
    if (code === 'EISDIR') return readResponses(input);
    if (code === undefined) throw error;
    throw new UsageError(`${oneLine(input)}: ${describeSystemError(code, error, input).message}`, { cause: error });
  }
}

/** A recorded body from a file or a tape. */
export interface RecordedStream {
  /** The path as the user gave it, or the name of the exchange. */
  name: string;
  bytes: Uint8Array;
  /** Known for tapes only. */
  status?: number;
}

async function readBytes(file: string, io: CliIo): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of readInput(file, io)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function readResponses(folder: string): Promise<RecordedStream[]> {
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
