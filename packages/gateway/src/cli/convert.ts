/** Converts one input of `sluice convert`, and writes its result to stdout, as a JSON line or to files. */

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
} from '@sluice/core';
import { encodeError } from '@sluice/core/engine';
import { StreamValidator } from '@sluice/core/internal';
import { oneLine, printable, safeJson, systemCode } from '@sluice/lab/text';
import { readInput, readText } from '../terminal/inputs.ts';
import { type CliIo, describeSystemError, type OutputFile } from '../terminal/io.ts';
import { formatJsonLine, indentJson } from '../terminal/text.ts';
import { UsageError } from './command.ts';

/** Converts one input. Failures of the input are part of the result; only errors of the output are thrown. */
export async function convertInput(file: string, conversion: Conversion, io: CliIo, write: Write): Promise<ConversionResult> {
  if (conversion.kind === 'stream') return convertStream(file, conversion, io, write);
  try {
    return convertDocument(parseJson(await readText(file, io)), conversion);
  } catch (error) {
    return { notes: [], failure: describeInputFailure(error, file) };
  }
}

/** What to convert, and how. */
export interface Conversion {
  kind: InputKind;
  from: Codec;
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
}

type Write = (bytes: Uint8Array) => Promise<void>;

function convertDocument(body: unknown, conversion: Conversion): ConversionResult {
  const { kind, from, to } = conversion;
  const options = buildOptions(conversion);
  switch (kind) {
    case 'request':
      return convertRequest(body, options);
    case 'response':
      return convertReply(body, conversion);
    case 'error': {
      const reply = convertError(readReply(body), { from, to });
      return { body: reply.body, notes: [], status: reply.status };
    }
    case 'stream':
      throw new TypeError('a stream is no document');
    default:
      return kind satisfies never;
  }
}

/** An upstream error, or a loss that is not allowed, is converted to an error body of the client protocol. */
function convertReply(body: unknown, conversion: Conversion): ConversionResult {
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

function buildOptions({ from, to, model, isStrict, request }: Conversion) {
  return { from, to, policy: { strict: isStrict }, ...(model !== undefined && { model }), ...(request && { request }) };
}

async function convertStream(file: string, conversion: Conversion, io: CliIo, write: Write): Promise<ConversionResult> {
  const converter = createStreamConverter({
    ...buildOptions(conversion),
    ...(io.env['SLUICE_DEBUG'] === '1' && { onEvent: createValidator() }),
  });
  const send = async (pieces: Iterable<Uint8Array>): Promise<void> => {
    for (const piece of pieces) await write(piece);
  };
  const source = readInput(file, io);
  for (let isRead = false; ; isRead = true) {
    const next = await source.next().catch((error: unknown) => describeInputFailure(error, file));
    if ('code' in next) {
      // What was read before a read error is kept, unless the file could not be opened at all.
      if (isRead) await send(converter.fail(next.message));
      return { notes: converter.notes, failure: next };
    }
    if (next.done || converter.hasFailed) break;
    await send(converter.push(next.value));
  }
  await source.return();
  await send(converter.end());
  const { notes, error } = converter;
  return { notes, ...(error && { failure: describeError(error) }) };
}

/** Debug mode checks every event of the decoder against the canonical stream grammar. */
function createValidator(): (event: Parameters<StreamValidator['push']>[0]) => void {
  const validator = new StreamValidator();
  return (event) => void validator.push(event);
}

class NotJson extends Error {}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const isStream = /^\s*(?:data|event|id|retry)?:/.test(text);
    const hint = isStream ? 'this is a stream: sluice convert stream' : String(error instanceof Error ? error.message : error);
    throw new NotJson(text.trim() === '' ? 'the input is empty' : `not JSON: ${hint}`);
  }
}

/** The error of an input as a result. Rethrows anything that is not the fault of the input. */
export function describeInputFailure(error: unknown, file: string): AccumulatedError {
  if (error instanceof CodecError) return describeError(error.error);
  if (error instanceof NotJson) return { code: 'not_json', message: error.message, canonical: 'JSON_PARSE_ERROR' };
  const code = systemCode(error);
  if (code === undefined) throw error;
  return describeSystemError(code, error, file, 'convert stream --from P --to Q');
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
  readonly #decoder = new TextDecoder();

  constructor(io: CliIo) {
    this.#io = io;
  }

  async write(bytes: Uint8Array): Promise<void> {
    const { stdout } = this.#io;
    const text = this.#decoder.decode(bytes, { stream: true });
    await stdout.write(stdout.isTTY ? printable(text) : text);
  }

  async finish({ body, failure }: ConversionResult): Promise<AccumulatedError | undefined> {
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
  readonly #decoder = new TextDecoder();
  #text: string | undefined;

  constructor(file: string, io: CliIo) {
    this.#file = file;
    this.#io = io;
  }

  async write(bytes: Uint8Array): Promise<void> {
    this.#text = (this.#text ?? '') + this.#decoder.decode(bytes, { stream: true });
  }

  async finish({ body = this.#text ?? null, notes, status, failure }: ConversionResult): Promise<AccumulatedError | undefined> {
    const line = formatJsonLine({ file: this.#file, body, notes, status, error: failure });
    if (!line) return this.finish({ body: null, notes: [], failure: TOO_LONG });
    for (const piece of line) await this.#io.stdout.write(piece);
    return failure;
  }
}

const TOO_LONG: AccumulatedError = {
  code: 'too_large',
  message: 'the result is too long for a line of JSON; without --json it can be written',
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
      const code = systemCode(error);
      if (code === undefined) throw error;
      const { message, canonical } = describeSystemError(code, error, this.#path);
      this.#failure = { code, message: `writing ${this.#path} failed: ${message}`, canonical };
    }
  }
}

const describeCount = ({ length }: readonly Note[]): string =>
  length === 0 ? 'written, nothing lost' : `written, ${length} note${length === 1 ? '' : 's'}`;

const outputPath = (file: string, out: string): string => join(out, file === '-' ? 'stdin' : basename(file));

/** Checks that no two inputs share an output file and that no output overwrites an input. */
export function checkOutputs(files: readonly string[], out: string): void {
  const taken = new Map<string, string>();
  for (const file of files) {
    const path = outputPath(file, out);
    const other = taken.get(path);
    if (other !== undefined)
      throw new UsageError(
        `"${oneLine(other)}" and "${oneLine(file)}" would both be written to "${oneLine(path)}": convert them one by one, each with its own --out`,
      );
    if (files.some((input) => input !== '-' && resolve(input) === resolve(path)))
      throw new UsageError(`--out would write over the input "${oneLine(path)}": choose another directory`);
    taken.set(path, file);
  }
}
