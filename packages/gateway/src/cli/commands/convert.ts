import { type CanonicalRequest, type Codec, CodecError, type Note } from '@sluice/core';
import { CODECS, decodeRequest, findCodec } from '@sluice/core/engine';
import { didYouMean, oneLine, systemCode } from '@sluice/lab/text';
import { EXIT, findAdvice, isBrokenPipe, UsageError } from '../../terminal/errors.ts';
import {
  createUnknownProtocolError,
  findSources,
  forEachSource,
  isSkipped,
  readFileBytes,
  type Source,
} from '../../terminal/inputs.ts';
import type { CliIo } from '../../terminal/io.ts';
import { chooseColors } from '../../terminal/text.ts';
import {
  type Conversion,
  checkOutputs,
  convertInput,
  createSink,
  describeInputFailure,
  type InputKind,
  type OutputOptions,
} from '../convert.ts';
import { formatInternalError } from '../help.ts';

interface Options {
  from: string | undefined;
  to: string | undefined;
  request: string | undefined;
  model: string | undefined;
  strict: boolean;
  json: boolean;
  out: string | undefined;
}

/** `sluice convert`: converts requests, responses, streams and errors between protocols. */
export async function run({ options, words }: { options: Options; words: string[] }, io: CliIo): Promise<number> {
  const [word, ...rest] = words;
  const kind = chooseKind(word);
  const from = chooseFrom(kind, options.from);
  const to = chooseCodec('to', options.to);
  const sources = await findSources(rest, io);
  const files = sources.map(({ file }) => file);
  checkRequest(kind, options.request, files);
  if (options.out !== undefined) checkOutputs(files, options.out);
  const request = await readRequest(options.request, { from, to, model: options.model }, io);
  if (typeof request === 'number') return request;
  if (options.out !== undefined) await io.makeDirectory(options.out);
  const conversion = { kind, from, to, model: options.model, isStrict: options.strict, request };
  const output = { isJson: options.json, out: options.out };
  return forEachSource(sources, io, (source) => convertOne(source, conversion, output, io));
}

const KINDS = { request: true, response: true, stream: true, error: true } satisfies Record<InputKind, true>;

const isKind = (word: string): word is InputKind => Object.hasOwn(KINDS, word);

function chooseKind(word: string | undefined): InputKind {
  const list = Object.keys(KINDS).join(', ');
  if (word === undefined) throw new UsageError(`name what to convert: ${list}`);
  if (isKind(word)) return word;
  throw new UsageError(`cannot convert "${oneLine(word)}"${didYouMean(word, Object.keys(KINDS))}\nKinds: ${list}`);
}

/** The protocol of requests and errors cannot be detected: their shapes are shared by several protocols. */
function chooseFrom(kind: InputKind, name: string | undefined): Codec | undefined {
  const isDetected = kind === 'stream' || kind === 'response';
  return name === undefined && isDetected ? undefined : chooseCodec('from', name);
}

function chooseCodec(option: 'from' | 'to', name: string | undefined): Codec {
  if (name === undefined) throw new UsageError(`--${option} is required: name a protocol (${Object.keys(CODECS).join(', ')})`);
  const codec = findCodec(name);
  if (!codec) throw createUnknownProtocolError(name);
  return codec;
}

function checkRequest(kind: InputKind, request: string | undefined, files: readonly string[]): void {
  if (request === undefined) return;
  if (kind !== 'response' && kind !== 'stream') throw new UsageError('--request requires a response or a stream');
  if (request === '-' && files.includes('-')) throw new UsageError('standard input ("-") can be read only once');
}

type RequestOptions = Pick<Conversion, 'from' | 'to' | 'model'>;

/** Reads `--request` in the client protocol, or else in the upstream protocol. Resolves with the exit code on failure. */
async function readRequest(
  file: string | undefined,
  options: RequestOptions,
  io: CliIo,
): Promise<CanonicalRequest | undefined | number> {
  if (file === undefined) return undefined;
  try {
    return decodeEither(JSON.parse((await readFileBytes(file, io)).toString().replace(/^\ufeff/, '')), options);
  } catch (error) {
    const { failure, isUnreadable = false } = error instanceof SyntaxError ? { failure: error } : describeInputFailure(error);
    await reportError(`--request ${oneLine(file)}: ${oneLine(failure.message)}`, io);
    return isUnreadable ? EXIT.unusable : EXIT.failed;
  }
}

function decodeEither(body: unknown, { from, to, model = 'unknown' }: RequestOptions): CanonicalRequest {
  try {
    return decodeRequest(body, { from: to, model });
  } catch (error) {
    if (!(error instanceof CodecError) || !from || from.id === to.id) throw error;
    return decodeOrThrow(error, () => decodeRequest(body, { from, model }));
  }
}

/** Throws the first error if this attempt fails too: it belongs to the protocol that was meant. */
function decodeOrThrow(first: CodecError, decode: () => CanonicalRequest): CanonicalRequest {
  try {
    return decode();
  } catch (error) {
    throw error instanceof CodecError ? first : error;
  }
}

/** Converts and writes one input. */
async function convertOne(source: Source, conversion: Conversion, output: OutputOptions, io: CliIo): Promise<number | 'skipped'> {
  const { file } = source;
  const sink = createSink(file, output, io);
  try {
    const result = await convertInput(source, conversion, io, (bytes) => sink.write(bytes));
    if (isSkipped(source, result.failure)) return 'skipped';
    const failure = await sink.finish(result);
    if (!output.isJson && output.out === undefined) await showNotes(file, result.notes, io);
    if (!failure) return EXIT.ok;
    const advice = findAdvice(failure);
    await reportError(`${oneLine(file)}: ${oneLine(`${failure.code}: ${failure.message}`)}`, io);
    if (advice !== undefined && io.stderr.isTTY) await io.stderr.write(`  ${advice}\n`);
    return result.isUnreadable ? EXIT.unusable : EXIT.failed;
  } catch (error) {
    // A broken output fails the remaining inputs as well. Any other error here is a bug in Sluice.
    if (isBrokenPipe(error) || systemCode(error) !== undefined) throw error;
    await io.stderr.write(formatInternalError(error, io));
    await sink.finish({ notes: [], failure: { code: 'internal_error', message: 'a bug in sluice', canonical: 'INTERNAL' } });
    return EXIT.failed;
  }
}

async function reportError(message: string, io: CliIo): Promise<void> {
  await io.stderr.write(`${chooseColors(io.stderr, io.env).red('sluice:')} ${message}\n`);
}

/** Prints one line per note: code, place in the input and message. */
async function showNotes(file: string, notes: readonly Note[], io: CliIo): Promise<void> {
  const { yellow, dim } = chooseColors(io.stderr, io.env);
  for (const { code, path, message } of notes)
    await io.stderr.write(
      `${dim(`${oneLine(file)}:`)} ${yellow(code)} ${oneLine(path === '' ? '/' : path)}: ${oneLine(message)}\n`,
    );
}
