import { type AccumulatedError, findProtocol, PROTOCOLS, type Protocol } from '@sluice/core';
import { oneLine, printable, systemCode } from '@sluice/lab/text';
import { type Repaired, repairStream } from '../../doctor/repair.ts';
import { readInput } from '../../terminal/inputs.ts';
import { type CliIo, describeFailure, describeSystemError, findAdvice } from '../../terminal/io.ts';
import { chooseColors } from '../../terminal/text.ts';
import { type Command, createUnknownProtocolError, defineCommand, listProtocols, UsageError } from '../command.ts';
import { chooseFiles } from '../inputs.ts';

const OPTIONS = {
  protocol: {
    type: 'string',
    value: 'P',
    summary: `the protocol of the stream (${listProtocols()}); told from the bytes when left out`,
  },
  all: { type: 'boolean', summary: 'bring in line what is merely unusual, too (severity info)' },
  quiet: { type: 'boolean', summary: 'say nothing about what was repaired' },
} as const;

/** `sluice repair`: rewrites a recorded stream without its departures from the standard. */
export const repair: Command = defineCommand({
  summary: 'the stream again, as its protocol wants it; one that conforms stays as it is, byte for byte',
  usage: 'repair [--protocol P] [--all] [--quiet] [FILE]',
  about:
    'Reads a recorded stream to its end and writes it again in the same protocol, without the departures that clients break on: ids and indexes are filled in, arguments joined, frames and envelopes completed. What was done is told on stderr. A stream that conforms is passed on untouched. "-" is standard input, which is also read when no FILE is named. What the stream never said cannot be repaired: one that failed or ended early ends in an error of its protocol, and the exit code is 1.',
  options: OPTIONS,
  examples: [
    { line: 'sluice repair broken.sse > good.sse', what: 'a stream that an SDK can read' },
    { line: 'curl -sN https://… | sluice repair | sluice assemble', what: 'on the way' },
    { line: 'sluice doctor broken.sse', what: 'what is wrong with it, first' },
  ],
  run: async ({ options, words }, io) => {
    const protocols = chooseProtocols(options.protocol);
    const [file = '-', another] = chooseFiles(words, io);
    if (another !== undefined) throw new UsageError('one stream at a time: name one FILE');
    const chunks = await readChunks(file, io);
    if ('code' in chunks) return reportError(file, chunks, io);
    const result = repairStream(chunks, { protocols, all: options.all });
    await writeChunks(result.chunks ?? [], io);
    if (!options.quiet) await printRepairs(file, result, io);
    const { message } = result.examination;
    if (describeFailure(message) === undefined) return 0;
    return reportError(file, message.error ?? ENDED_EARLY, io);
  },
});

const ENDED_EARLY: AccumulatedError = {
  code: 'ended_early',
  message: 'the stream ended early: no finish reason and no end marker',
  canonical: 'STREAM_TRUNCATED',
};

function chooseProtocols(name: string | undefined): readonly Protocol[] {
  if (name === undefined) return Object.values(PROTOCOLS);
  const found = findProtocol(name);
  if (found) return [found];
  throw createUnknownProtocolError(name);
}

/** Reads the whole input: whether a stream conforms is known only at its end. */
async function readChunks(file: string, io: CliIo): Promise<Uint8Array[] | AccumulatedError> {
  const chunks: Uint8Array[] = [];
  try {
    for await (const chunk of readInput(file, io)) chunks.push(chunk);
    return chunks;
  } catch (error) {
    const code = systemCode(error);
    if (code === undefined) throw error;
    return describeSystemError(code, error, file, 'repair');
  }
}

async function writeChunks(chunks: readonly Uint8Array[], { stdout }: CliIo): Promise<void> {
  // A conforming stream is passed on unchanged, including a byte order mark.
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  for (const chunk of chunks) {
    const text = decoder.decode(chunk, { stream: true });
    await stdout.write(stdout.isTTY ? printable(text) : text);
  }
}

/** Prints one line for each departure and for each note of the encoder. */
async function printRepairs(file: string, { chunks, repaired, notes }: Repaired, io: CliIo): Promise<void> {
  const { yellow, green, dim } = chooseColors(io.stderr, io.env);
  const name = dim(`${oneLine(file)}:`);
  for (const { rule, count, offset, remedy } of repaired)
    await io.stderr.write(`${name} ${yellow(rule)} ${count > 1 ? `×${count}, from ` : ''}byte ${offset}: ${remedy}\n`);
  for (const { code, path, message } of notes)
    await io.stderr.write(`${name} ${yellow(code)} ${oneLine(path === '' ? '/' : path)}: ${oneLine(message)}\n`);
  if (chunks && repaired.length === 0) await io.stderr.write(`${name} ${green('conforms')}: passed on as it is\n`);
}

async function reportError(file: string, error: AccumulatedError, io: CliIo): Promise<number> {
  const advice = findAdvice(error);
  await io.stderr.write(
    `${chooseColors(io.stderr, io.env).red('sluice:')} ${oneLine(file)}: ${oneLine(`${error.code}: ${error.message}`)}\n`,
  );
  if (advice !== undefined && io.stderr.isTTY) await io.stderr.write(`  ${advice}\n`);
  return 1;
}
