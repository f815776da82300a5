import { basename, join, resolve } from 'node:path';
import type { AssembledError, Note } from '@sluice/core';
import { UsageError } from './arguments.ts';
import type { Result } from './convert-input.ts';
import { oneLine, printable, safeJson } from './escape.ts';
import { describeSystemError } from './failures.ts';
import { indentJson } from './indent-json.ts';
import { type CliIo, type OutputFile, systemCode } from './io.ts';
import { jsonLine } from './json-line.ts';

/** Where the result of one input goes. */
export interface Sink {
  /** The bytes of a stream, as they come. */
  write(bytes: Uint8Array): Promise<void>;
  /** Gives what went wrong with the output, or with the input before. */
  finish(result: Result): Promise<AssembledError | undefined>;
}

export interface OutputOptions {
  isJson: boolean;
  /** The directory of `--out`. */
  out: string | undefined;
}

export function createSink(file: string, { isJson, out }: OutputOptions, io: CliIo): Sink {
  const shown = isJson ? new JsonSink(file, io) : out === undefined ? new PlainSink(io) : undefined;
  return out === undefined ? (shown ?? new PlainSink(io)) : new FileSink(outputPath(file, out), shown, io);
}

const TOO_LONG: AssembledError = {
  code: 'too_large',
  message: 'the result is too long for a line of JSON; without --json it can be written',
  canonical: 'PAYLOAD_TOO_LARGE',
};

/** The body on standard output. */
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

  async finish({ body, failure }: Result): Promise<AssembledError | undefined> {
    if (body !== undefined) await this.#io.stdout.write(`${this.#json(body)}\n`);
    return failure;
  }

  /** For people spread over lines, for programs a line. */
  #json(body: unknown): string {
    const text = JSON.stringify(body);
    return this.#io.stdout.isTTY ? safeJson(indentJson(text)) : text;
  }
}

/** One line of JSON on standard output. */
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

  async finish({ body = this.#text ?? null, notes, status, failure }: Result): Promise<AssembledError | undefined> {
    const line = jsonLine({ file: this.#file, body, notes, status, error: failure });
    if (!line) return this.finish({ body: null, notes: [], failure: TOO_LONG });
    for (const piece of line) await this.#io.stdout.write(piece);
    return failure;
  }
}

/** Files in the directory of `--out`: the body, and beside it the notes. Each is there whole or not at all. */
class FileSink implements Sink {
  readonly #path: string;
  readonly #shown: Sink | undefined;
  readonly #io: CliIo;
  #file: OutputFile | undefined;
  #failure: AssembledError | undefined;

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

  async finish(result: Result): Promise<AssembledError | undefined> {
    const { body, notes } = result;
    if (body !== undefined) await this.#try(() => this.#writeWhole(this.#path, `${JSON.stringify(body)}\n`));
    const hasResult = body !== undefined || this.#file !== undefined;
    await this.#try(async () => this.#file?.commit());
    if (hasResult) await this.#try(() => this.#writeWhole(`${this.#path}.notes.json`, `${JSON.stringify(notes, null, 2)}\n`));
    if (this.#failure) await this.#file?.discard().catch(() => undefined);
    const failure = this.#failure ?? result.failure;
    await this.#shown?.finish(failure ? { ...result, failure } : result);
    if (hasResult && !this.#failure) await this.#io.stderr.write(`sluice: ${oneLine(this.#path)}: ${countOf(notes)}\n`);
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

  /** A file that cannot be written fails its input, and no other. After the first failure nothing more is tried. */
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

const countOf = ({ length }: readonly Note[]): string =>
  length === 0 ? 'written, nothing lost' : `written, ${length} note${length === 1 ? '' : 's'}`;

const outputPath = (file: string, out: string): string => join(out, file === '-' ? 'stdin' : basename(file));

/** Two inputs must not share a result, and no result may take the place of an input. */
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
