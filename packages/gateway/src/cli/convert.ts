/** Converts one input of `sluice convert`, and writes its result to stdout, as a JSON line or to files. */

import { constants, isUtf8 } from 'node:buffer';
import { basename, join, resolve } from 'node:path';
import {
  type AccumulatedError,
  type CanonicalError,
  type CanonicalRequest,
  type Codec,
  CodecError,
  convertError,
  convertRequest,
  convertResponse,
  createStreamConverter,
  type Note,
  PROTOCOLS,
} from '@sluice/core';
import { CODECS, encodeError, StreamAccumulator } from '@sluice/core/engine';
import { StreamValidator } from '@sluice/core/internal';
import { oneLine, safeJson, systemCode } from '@sluice/lab/text';
import { describeWriteError, UnreadableError, UsageError } from '../terminal/errors.ts';
import { readBytes, type Source } from '../terminal/inputs.ts';
import type { CliIo, OutputFile } from '../terminal/io.ts';
import { indentJson } from '../terminal/json.ts';
import { formatJsonLine, StreamOutput } from '../terminal/text.ts';

/** Converts one input. Failures of the input are part of the result; only errors of the output are thrown. */
export async function convertInput(source: Source, conversion: Conversion, io: CliIo, write: Write): Promise<ConversionResult> {
  try {
    if (conversion.kind === 'stream') return await convertStream(source, conversion, io, write);
    return convertBytes(await readBytes(source), conversion);
  } catch (error) {
    return { notes: [], ...describeInputFailure(error) };
  }
}

/** What to convert, and how. */
export interface Conversion {
  kind: InputKind;
  /** Undefined: detected from the bytes. */
  from: Codec | undefined;
  to: Codec;
  model: string | undefined;
  isStrict: boolean;
  /** The client's request that the response or stream belongs to, if it was given. */
  request: CanonicalRequest | undefined;
}

/** What an input holds. */
export type InputKind = 'request' | 'response' | 'stream' | 'error';

/** What became of one input. */
export interface ConversionResult {
  /** Undefined for streams, which are written as they are converted, and for failures. */
  body?: unknown;
  notes: Note[];
  /** The HTTP status that belongs to a converted error. */
  status?: number;
  failure?: AccumulatedError;
  /** The input could not be read, or not to its end. */
  isUnreadable?: boolean;
}

/** A conversion whose source protocol is known. */
type Detected = Conversion & { from: Codec; text?: string | undefined };

type Write = (bytes: Uint8Array) => Promise<void>;

function convertBytes(bytes: Buffer, conversion: Conversion): ConversionResult {
  if (bytes.length > constants.MAX_STRING_LENGTH) throw new InputError('too_large', 'the document is too long to be parsed');
  const text = bytes.toString().replace(/^\ufeff/, '');
  const body = parseJson(text);
  const from = conversion.from ?? detectCodec(bytes);
  if (!from) throw new InputError('unknown_protocol', UNKNOWN_PROTOCOL);
  const isLossy = !isUtf8(bytes);
  if (isLossy && conversion.isStrict) return { notes: [], failure: INVALID_UTF8 };
  const result = convertDocument(body, { ...conversion, from, text });
  return isLossy ? { ...result, notes: [NOT_UTF8, ...result.notes] } : result;
}

/** Bytes that are not UTF-8 cannot be represented in JSON. */
const NOT_UTF8: Note = {
  code: 'REPAIRED',
  path: '',
  feature: 'encoding',
  message: 'the input is not valid UTF-8; invalid bytes are replaced with U+FFFD',
};

const INVALID_UTF8: AccumulatedError = {
  code: 'invalid_utf8',
  message: 'the input is not valid UTF-8; fix the input, or omit --strict to replace invalid bytes with U+FFFD',
  canonical: 'INVALID_INPUT',
};

/** Recognises the protocol of a response, or of the beginning of a stream. */
function detectCodec(bytes: Uint8Array): Codec | undefined {
  const accumulator = new StreamAccumulator({ protocol: Object.values(PROTOCOLS) });
  accumulator.push(bytes);
  const { protocol } = accumulator.finish();
  return protocol === null ? undefined : CODECS[protocol];
}

const UNKNOWN_PROTOCOL = 'the protocol cannot be detected from the bytes; name it with --from';

function convertDocument(body: unknown, conversion: Detected): ConversionResult {
  const { kind, from, to } = conversion;
  switch (kind) {
    case 'request':
      return convertRequest(body, buildOptions(conversion));
    case 'response':
      return convertReply(body, conversion);
    case 'error': {
      const reply = convertError(readReply(body), { from, to });
      return { body: reply.body, notes: [], status: reply.status };
    }
    case 'stream':
      throw new TypeError('a stream is not a document');
    default:
      return kind satisfies never;
  }
}

/** An upstream error, or a loss that is not allowed, is converted to an error body of the client protocol. */
function convertReply(body: unknown, conversion: Detected): ConversionResult {
  try {
    return convertResponse(body, buildOptions(conversion));
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    const reply = encodeError(error.error, conversion);
    return { body: reply.body, status: reply.status, notes: [], failure: describeError(error.error) };
  }
}

/** Accepts the body of an error alone, or an object with `status`, `headers` and `body`. */
function readReply(value: unknown): { status?: number; headers?: Record<string, string>; body: unknown } {
  const reply = typeof value === 'object' && value !== null && 'status' in value && 'body' in value ? value : undefined;
  if (!reply || typeof reply.status !== 'number') return { body: value };
  return { status: reply.status, headers: readHeaders(reply), body: reply.body };
}

function readHeaders(reply: object): Record<string, string> {
  if (!('headers' in reply) || typeof reply.headers !== 'object' || reply.headers === null) return {};
  return Object.fromEntries(Object.entries(reply.headers).map(([name, value]) => [name.toLowerCase(), String(value)]));
}

function buildOptions({ from, to, model, isStrict, request, text }: Detected) {
  return { from, to, text, policy: { strict: isStrict }, ...(model !== undefined && { model }), ...(request && { request }) };
}

async function convertStream(source: Source, conversion: Conversion, io: CliIo, write: Write): Promise<ConversionResult> {
  const chunks = source.read();
  // A file of a folder may be anything, so that it is recognised even if --from is given.
  const isDetected = conversion.from === undefined || source.isFound;
  const detected = isDetected ? await detectFrom(chunks) : undefined;
  const from = conversion.from ?? detected?.from;
  if (!from) throw new TypeError('the protocol is given or detected');
  const head = detected?.head ?? [];
  const converter = createStreamConverter({
    ...buildOptions({ ...conversion, from }),
    ...(io.env['SLUICE_DEBUG'] === '1' && { onEvent: createValidator() }),
  });
  const send = async (pieces: Iterable<Uint8Array>): Promise<void> => {
    for (const piece of pieces) await write(piece);
  };
  for (const chunk of head) await send(converter.push(chunk));
  for (let isRead = head.length > 0; ; isRead = true) {
    const next = await chunks.next().catch(describeInputFailure);
    if ('failure' in next) {
      // What was read before a read error is kept, unless the file could not be opened at all.
      if (isRead) await send(converter.fail(next.failure.message));
      return { notes: converter.notes, ...next };
    }
    if (next.done || converter.hasFailed) break;
    await send(converter.push(next.value));
  }
  await chunks.return();
  await send(converter.end());
  const { notes, error, diagnostics } = converter;
  const isLossy = diagnostics.some(({ rule }) => rule === 'sse/invalid-utf8');
  const failure = error ? describeError(error) : isLossy && conversion.isStrict ? INVALID_UTF8 : undefined;
  return { notes: isLossy ? [NOT_UTF8, ...notes] : notes, ...(failure && { failure }) };
}

/** Reads as much of a stream as is needed to recognise its protocol. */
async function detectFrom(chunks: AsyncIterator<Uint8Array>): Promise<{ from: Codec; head: Uint8Array[] }> {
  const head: Uint8Array[] = [];
  let length = 0;
  for (let tried = 0; length < MAX_DETECTION_BYTES; ) {
    const next = await chunks.next();
    if (!next.done) {
      head.push(next.value);
      length += next.value.length;
    }
    // At least twice as much as the time before, so that small chunks do not cost quadratic time.
    const from = next.done || length >= 2 * tried ? detectCodec(Buffer.concat(head)) : undefined;
    if (from) return { from, head };
    if (next.done) break;
    if (length >= 2 * tried) tried = length;
  }
  if (length === 0) throw new InputError('empty_stream', 'the input is empty');
  throw new InputError('not_a_stream', UNKNOWN_PROTOCOL);
}

/** The first event names the protocol; a larger one is not expected. */
const MAX_DETECTION_BYTES = 16 * 1024 * 1024;

/** Debug mode checks every event of the decoder against the canonical stream grammar. */
function createValidator(): (event: Parameters<StreamValidator['push']>[0]) => void {
  const validator = new StreamValidator();
  return (event) => void validator.push(event);
}

/** An input that was read but cannot be converted. */
class InputError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const isStream = /^\s*(?:data|event|id|retry)?:/.test(text);
    const hint = isStream
      ? 'this is a stream; use "sluice convert stream"'
      : String(error instanceof Error ? error.message : error);
    throw new InputError(
      'not_json',
      text.trim() === '' ? 'the input is empty' : `not JSON: ${hint}; check that the file is whole and has the JSON body alone`,
    );
  }
}

/** The error of an input as part of a result. Rethrows anything that is not the fault of the input. */
export function describeInputFailure(error: unknown): { failure: AccumulatedError; isUnreadable?: true } {
  if (error instanceof UnreadableError) return { failure: error.failure, isUnreadable: true };
  if (error instanceof CodecError) return { failure: describeError(error.error) };
  if (!(error instanceof InputError)) throw error;
  const { code, message } = error;
  return { failure: { code, message, canonical: code === 'not_json' ? 'JSON_PARSE_ERROR' : 'INVALID_INPUT' } };
}

/** Prefers the more specific code in `details` to the canonical code. */
function describeError({ code, message, param, details }: CanonicalError): AccumulatedError {
  const own = details?.['code'];
  return {
    code: typeof own === 'string' ? own : code,
    message,
    ...(typeof param === 'string' && { param }),
    canonical: code,
  };
}

/** Chooses where the result of one input goes. */
export function createSink(file: string, { isJson, out }: OutputOptions, io: CliIo): Sink {
  const shown = isJson ? new JsonSink(file, io) : out === undefined ? new PlainSink(io) : undefined;
  return out === undefined ? (shown ?? new PlainSink(io)) : new FileSink(outputPath(file, out), shown, io);
}

/** Where the result of one input goes. */
export interface Sink {
  /** Takes bytes of a stream as they are converted. */
  write(bytes: Uint8Array): Promise<void>;
  /** Takes the result. Resolves with the failure of the output, or else of the input. */
  finish(result: ConversionResult): Promise<AccumulatedError | undefined>;
}

/** The output options of `sluice convert`. */
export interface OutputOptions {
  isJson: boolean;
  /** The directory given with `--out`. */
  out: string | undefined;
}

/** Writes the body to standard output. */
class PlainSink implements Sink {
  readonly #io: CliIo;
  readonly #output: StreamOutput;

  constructor(io: CliIo) {
    this.#io = io;
    this.#output = new StreamOutput(io.stdout);
  }

  write(bytes: Uint8Array): Promise<void> {
    return this.#output.write(bytes);
  }

  async finish({ body, failure }: ConversionResult): Promise<AccumulatedError | undefined> {
    await this.#output.end();
    if (body !== undefined) await this.#io.stdout.write(`${this.#json(body)}\n`);
    return failure;
  }

  /** Indented for a terminal, one line otherwise. */
  #json(body: unknown): string {
    const text = JSON.stringify(body);
    return this.#io.stdout.isTTY ? safeJson(indentJson(text)) : text;
  }
}

/** Writes one line of JSON to standard output. */
class JsonSink implements Sink {
  readonly #file: string;
  readonly #io: CliIo;
  readonly #chunks: Uint8Array[] = [];
  #length = 0;

  constructor(file: string, io: CliIo) {
    this.#file = file;
    this.#io = io;
  }

  async write(bytes: Uint8Array): Promise<void> {
    this.#length += bytes.length;
    // The limit of a string: more cannot be printed.
    if (this.#length <= constants.MAX_STRING_LENGTH) this.#chunks.push(bytes);
  }

  async finish({ body = this.#text(), notes, status, failure }: ConversionResult): Promise<AccumulatedError | undefined> {
    const isTooLong = this.#length > constants.MAX_STRING_LENGTH && body !== null;
    const line = isTooLong
      ? undefined
      : formatJsonLine({ file: this.#file, body, notes, status: status ?? null, error: failure ?? null });
    if (!line) return this.finish({ body: null, notes: [], failure: TOO_LONG });
    for (const piece of line) await this.#io.stdout.write(piece);
    return failure;
  }

  /** The converted stream. Encoders write UTF-8, so decoding the whole loses nothing. */
  #text(): string | null {
    return this.#chunks.length === 0 ? null : Buffer.concat(this.#chunks).toString();
  }
}

const TOO_LONG: AccumulatedError = {
  code: 'too_large',
  message: 'the result is too long for a line of JSON; omit --json to print it',
  canonical: 'PAYLOAD_TOO_LARGE',
};

/** Writes the body and its notes as two files below the directory of `--out`, each complete or not at all. */
class FileSink implements Sink {
  readonly #path: string;
  readonly #shown: Sink | undefined;
  readonly #io: CliIo;
  #file: OutputFile | undefined;
  #failure: AccumulatedError | undefined;

  constructor(path: string, shown: Sink | undefined, io: CliIo) {
    this.#path = path;
    this.#shown = shown;
    this.#io = io;
  }

  async write(bytes: Uint8Array): Promise<void> {
    await this.#shown?.write(bytes);
    await this.#try(async () => {
      this.#file ??= await this.#io.createFile(this.#path);
      await this.#file.write(bytes);
    });
  }

  async finish(result: ConversionResult): Promise<AccumulatedError | undefined> {
    const { body, notes } = result;
    if (body !== undefined) await this.#try(() => this.#writeWhole(this.#path, `${JSON.stringify(body)}\n`));
    const hasResult = body !== undefined || this.#file !== undefined;
    await this.#try(async () => this.#file?.commit());
    if (hasResult) await this.#try(() => this.#writeWhole(`${this.#path}.notes.json`, `${JSON.stringify(notes, null, 2)}\n`));
    if (this.#failure) await this.#file?.discard().catch(() => undefined);
    const failure = this.#failure ?? result.failure;
    await this.#shown?.finish(failure ? { ...result, failure } : result);
    if (hasResult && !this.#failure) await this.#io.stderr.write(`sluice: ${oneLine(this.#path)}: ${describeCount(notes)}\n`);
    return failure;
  }

  async #writeWhole(path: string, text: string): Promise<void> {
    const file = await this.#io.createFile(path);
    try {
      await file.write(new TextEncoder().encode(text));
      await file.commit();
    } catch (error) {
      await file.discard().catch(() => undefined);
      throw error;
    }
  }

  /** Records a write error as the failure of this input; nothing is written after the first. */
  async #try(run: () => Promise<void>): Promise<void> {
    if (this.#failure) return;
    try {
      await run();
    } catch (error) {
      const message = describeWriteError(error);
      if (message === undefined) throw error;
      this.#failure = {
        code: systemCode(error) ?? '',
        message: `writing ${this.#path} failed: ${message}`,
        canonical: 'INTERNAL',
      };
    }
  }
}

const describeCount = ({ length }: readonly Note[]): string =>
  length === 0 ? 'written; nothing lost' : `written; ${length} note${length === 1 ? '' : 's'}`;

/** Where `--out` writes the result of an input. */
export const outputPath = (file: string, out: string): string => join(out, file === '-' ? 'stdin' : basename(file));

/** Checks that no two inputs share an output file and that no output overwrites an input. */
export function checkOutputs(files: readonly string[], out: string): void {
  const taken = new Map<string, string>();
  for (const file of files) {
    const path = outputPath(file, out);
    const other = taken.get(path);
    if (other !== undefined)
      throw new UsageError(
        `"${oneLine(other)}" and "${oneLine(file)}" would both be written to "${oneLine(path)}"; write them one by one, each with its own --out`,
      );
    if (files.some((input) => input !== '-' && resolve(input) === resolve(path)))
      throw new UsageError(`--out would overwrite the input "${oneLine(path)}"; choose another folder`);
    taken.set(path, file);
  }
}
