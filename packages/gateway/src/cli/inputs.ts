import {
  type Assembled,
  type AssembledError,
  Assembler,
  type CanonicalStreamEvent,
  Examiner,
  type Protocol,
  StreamValidator,
} from '@sluice/core';
import { readTape, TapeError } from '@sluice/lab/tape';
import { oneLine, systemCode } from '@sluice/lab/text';
import { readInput } from '../terminal/inputs.ts';
import { type CliIo, describeSystemError } from '../terminal/io.ts';
import { UsageError } from './command.ts';
import { internalError } from './help.ts';

/** The inputs that were named; without any, standard input. */
export function chooseFiles(words: readonly string[], { stdin }: CliIo): readonly string[] {
  if (words.length === 0 && stdin.isTTY) throw new UsageError('no input: name a FILE, or send one to standard input');
  if (words.filter((word) => word === '-').length > 1) throw new UsageError('standard input ("-") can be read only once');
  return words.length === 0 ? ['-'] : words;
}

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

/** Reads an input to its end. Whatever happens there is a result: a file that cannot be read has its error, too. */
export async function readMessage(file: string, protocols: readonly Protocol[], io: CliIo): Promise<Assembled> {
  // The examiner, and not the bare assembler: its diagnostics are those of `sluice doctor`.
  const examiner = new Examiner({ protocol: protocols, ...(io.env['SLUICE_DEBUG'] === '1' && { onEvent: validator() }) });
  try {
    await readInto(examiner, file, io);
    return examiner.end().message;
  } catch (error) {
    const code = systemCode(error);
    // What came before a read error is kept; after a bug of ours nothing can be trusted.
    if (code !== undefined) return failed(examiner, protocols, describeSystemError(code, error, file));
    await io.stderr.write(internalError(error, io));
    return emptyMessage(protocols, { code: 'internal_error', message: 'internal error: a bug in sluice', canonical: 'INTERNAL' });
  }
}

/** In debug mode a decoder that breaks a rule of the canonical stream is caught in the act. */
function validator(): (event: CanonicalStreamEvent) => void {
  const stage = new StreamValidator();
  return (event) => void stage.push(event);
}

async function readInto(examiner: Examiner, file: string, io: CliIo): Promise<void> {
  for await (const chunk of readInput(file, io)) {
    examiner.push(chunk);
    if (examiner.hasFailed) break;
  }
}

function failed(examiner: Examiner, protocols: readonly Protocol[], error: AssembledError): Assembled {
  const read = examiner.fail(error.message).message;
  const isNothing = read.message.content.length === 0 && read.id === '';
  return isNothing ? emptyMessage(protocols, error) : withError(read, error);
}

/** The result of an input that gave nothing. */
export function emptyMessage(protocols: readonly Protocol[], error: AssembledError): Assembled {
  const [protocol] = protocols;
  const empty = new Assembler({ protocol: protocols }).end();
  return { ...withError(empty, error), protocol: protocols.length === 1 && protocol ? protocol.id : null };
}

function withError(result: Assembled, error: AssembledError): Assembled {
  const { code, message, canonical } = error;
  return { ...result, error, message: { ...result.message, error: { code: canonical, message, details: { code } } } };
}

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
