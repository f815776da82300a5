import { constants, isUtf8 } from 'node:buffer';
import type { AccumulatedError, Protocol } from '@sluice/core';
import { oneLine } from '@sluice/lab/text';
import { type Repaired, repairStream } from '../../doctor/repair.ts';
import { describeFailure, EXIT, findAdvice, formatInputError, UnreadableError, UsageError } from '../../terminal/errors.ts';
import {
  chooseProtocols,
  findSources,
  forEachSource,
  isNoResponse,
  isSkipped,
  readBytes,
  type Source,
} from '../../terminal/inputs.ts';
import type { CliIo } from '../../terminal/io.ts';
import { chooseColors, formatJsonLine, StreamOutput } from '../../terminal/text.ts';
import { checkOutputs, outputPath } from '../convert.ts';

interface Options {
  protocol: string | undefined;
  all: boolean;
  quiet: boolean;
  json: boolean;
  out: string | undefined;
}

/** `sluice repair`: rewrites recorded streams without their violations of the standard. */
export async function run({ options, words }: { options: Options; words: string[] }, io: CliIo): Promise<number> {
  const job = { ...options, protocols: chooseProtocols(options.protocol) };
  const sources = await findSources(words, io);
  if (sources.length > 1 && !options.json && options.out === undefined)
    throw new UsageError(`${sources.length} streams cannot share stdout; use --out DIR or --json, or name one FILE`);
  if (options.out !== undefined) {
    checkOutputs(
      sources.map(({ file }) => file),
      options.out,
    );
    await io.makeDirectory(options.out);
  }
  return forEachSource(sources, io, (source) => repairOne(source, job, io));
}

interface Job extends Options {
  protocols: readonly Protocol[];
}

/** Repairs one stream. It is read whole, because whether it conforms is known only at its end. */
async function repairOne(source: Source, job: Job, io: CliIo): Promise<number | 'skipped'> {
  const { file } = source;
  const bytes = await readBytes(source).catch((error: unknown) => {
    if (error instanceof UnreadableError) return error.failure;
    throw error;
  });
  if ('code' in bytes) return fail(file, { error: bytes, code: EXIT.unusable }, job, io);
  const result = repairStream([bytes], { protocols: job.protocols, all: job.all });
  const { message } = result.examination;
  if (isSkipped(source, message.error)) return 'skipped';
  const failure = describeFailure(message) === undefined ? undefined : (message.error ?? ENDED_EARLY);
  const error = job.json && isTooLong(result) ? TOO_LONG : failure;
  await writeResult(file, result, error, job, io);
  if (!job.quiet) await printRepairs(file, result, io);
  if (error) await reportError(file, error, io);
  return error ? EXIT.failed : EXIT.ok;
}

/** Whether the stream exceeds the maximum length of a string, as text or as base64. */
function isTooLong({ chunks = [] }: Repaired): boolean {
  const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  return length * (4 / 3) > constants.MAX_STRING_LENGTH;
}

const TOO_LONG: AccumulatedError = {
  code: 'too_large',
  message: 'the stream is too long for a line of JSON; omit --json to print it',
  canonical: 'PAYLOAD_TOO_LARGE',
};

const ENDED_EARLY: AccumulatedError = {
  code: 'ended_early',
  message: 'the stream ended early: no finish reason and no end marker',
  canonical: 'STREAM_TRUNCATED',
};

async function fail(
  file: string,
  { error, code }: { error: AccumulatedError; code: number },
  { json }: Job,
  io: CliIo,
): Promise<number> {
  if (json) await printJson({ file, protocol: null, body: null, encoding: 'utf8', repaired: [], notes: [], error }, io);
  await reportError(file, error, io);
  return code;
}

async function writeResult(
  file: string,
  { chunks, examination, repaired, notes }: Repaired,
  error: AccumulatedError | undefined,
  { json, out }: Job,
  io: CliIo,
): Promise<void> {
  const body = chunks && Buffer.concat(chunks);
  if (out !== undefined && body) {
    const target = await io.createFile(outputPath(file, out));
    await target.write(body);
    await target.commit();
  }
  if (json) {
    // A conforming stream is kept byte for byte, and JSON cannot hold bytes that are not UTF-8.
    const encoding = !body || isUtf8(body) ? 'utf8' : 'base64';
    const text = error === TOO_LONG ? null : (body?.toString(encoding) ?? null);
    const { protocol } = examination;
    await printJson({ file, protocol, body: text, encoding, repaired, notes, error: error ?? null }, io);
  } else if (out === undefined && body) {
    const output = new StreamOutput(io.stdout);
    await output.write(body);
    await output.end();
  }
}

async function printJson(record: object, { stdout }: CliIo): Promise<void> {
  for (const piece of formatJsonLine(record) ?? []) await stdout.write(piece);
}

/** Prints one line for each violation and for each note of the encoder. */
async function printRepairs(file: string, { chunks, repaired, notes }: Repaired, io: CliIo): Promise<void> {
  const { yellow, green, dim } = chooseColors(io.stderr, io.env);
  const name = dim(`${oneLine(file)}:`);
  for (const { rule, count, offset, remedy } of repaired)
    await io.stderr.write(`${name} ${yellow(rule)} ${count > 1 ? `×${count}, from ` : ''}byte ${offset}: ${remedy}\n`);
  for (const { code, path, message } of notes)
    await io.stderr.write(`${name} ${yellow(code)} ${oneLine(path === '' ? '/' : path)}: ${oneLine(message)}\n`);
  if (chunks && repaired.length === 0) await io.stderr.write(`${name} ${green('conforms')}: unchanged\n`);
}

async function reportError(file: string, error: AccumulatedError, io: CliIo): Promise<void> {
  const advice = findAdvice(error);
  await io.stderr.write(
    `${chooseColors(io.stderr, io.env).red('sluice:')} ${oneLine(file)}: ${oneLine(formatInputError(error))}\n`,
  );
  if (advice !== undefined && io.stderr.isTTY && !isNoResponse(error)) await io.stderr.write(`  ${advice}\n`);
}
