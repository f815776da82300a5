import { type CanonicalRequest, type Codec, CodecError, type Note } from '@sluice/core';
import { decodeRequest, findCodec } from '@sluice/core/engine';
import { didYouMean, oneLine, systemCode } from '@sluice/lab/text';
import { readText } from '../../terminal/inputs.ts';
import { type CliIo, findAdvice, isBrokenPipe } from '../../terminal/io.ts';
import { chooseColors } from '../../terminal/text.ts';
import { type Command, createUnknownProtocolError, defineCommand, listProtocols, UsageError } from '../command.ts';
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
import { chooseFiles } from '../inputs.ts';

const OPTIONS = {
  from: { type: 'string', value: 'P', summary: `the protocol of the inputs (${listProtocols()})` },
  to: { type: 'string', value: 'Q', summary: 'the protocol to convert to; the same one repairs' },
  request: {
    type: 'string',
    value: 'FILE',
    summary:
      'the question that a response or stream answers: what the client did not ask for is left out, and its tools get their names back',
  },
  model: {
    type: 'string',
    value: 'M',
    summary: 'the model: at the upstream for a request, as the client sees it for a response or stream',
  },
  strict: { type: 'boolean', summary: 'fail where something would be lost' },
  json: { type: 'boolean', summary: 'one line {file, body, notes, status} an input, on stdout; everything else on stderr' },
  out: { type: 'string', value: 'DIR', summary: 'write each result to DIR/<name of FILE>, with <name>.notes.json beside it' },
} as const;

/** `sluice convert`: converts requests, responses, streams and errors between protocols. */
export const convert: Command = defineCommand({
  summary: 'a request, response, stream or error from one protocol to another, and what was lost on the way',
  usage:
    'convert request|response|stream|error --from P --to Q [--request FILE] [--model M] [--strict] [--json] [--out DIR] FILE…',
  about:
    'Reads each FILE in the protocol P and writes it in the protocol Q. What Q cannot say is told as notes, on stderr, with JSON pointers into the input. Always decodes and encodes: with P = Q, what is wrong is repaired. "-" is standard input, which is also read when no FILE is named. One bad input never stops the others; the exit code is 1 when at least one could not be converted, is or ends in an error, ended early, or lost something under --strict.',
  options: OPTIONS,
  examples: [
    {
      line: 'sluice convert request --from openai --to anthropic --model claude-sonnet-5 request.json',
      what: 'what would be sent?',
    },
    {
      line: 'sluice convert stream --from gemini --to openai recorded.sse',
      what: 'a recorded stream, as another client would read it',
    },
    { line: 'curl -sN … | sluice convert stream --from openai --to openai -', what: 'repair a stream' },
    {
      line: 'sluice convert response --from anthropic --to responses --request asked.json answer.json',
      what: 'an answer to this question',
    },
    {
      line: 'sluice convert request --from anthropic --to openai --strict --json *.json',
      what: 'which requests would lose something?',
    },
  ],
  run: async ({ options, words }, io) => {
    const [word, ...rest] = words;
    const kind = chooseKind(word);
    const from = chooseCodec('from', options.from);
    const to = chooseCodec('to', options.to);
    const files = chooseFiles(rest, io);
    checkRequest(kind, options.request, files);
    if (options.out !== undefined) checkOutputs(files, options.out);
    const request = await readRequest(options.request, { from, to, model: options.model }, io);
    if (request === 'failed') return 1;
    if (options.out !== undefined) await io.makeDirectory(options.out);
    const conversion = { kind, from, to, model: options.model, isStrict: options.strict, request };
    const output = { isJson: options.json, out: options.out };
    let failed = 0;
    for (const file of files) if (!(await convertOne(file, conversion, output, io))) failed++;
    if (failed > 0 && files.length > 1) await io.stderr.write(`sluice: ${failed} of ${files.length} inputs failed\n`);
    return failed > 0 ? 1 : 0;
  },
});

const KINDS = { request: true, response: true, stream: true, error: true } satisfies Record<InputKind, true>;

const isKind = (word: string): word is InputKind => Object.hasOwn(KINDS, word);

function chooseKind(word: string | undefined): InputKind {
  const list = Object.keys(KINDS).join(', ');
  if (word === undefined) throw new UsageError(`say what to convert: ${list}`);
  if (isKind(word)) return word;
  throw new UsageError(
    `cannot convert "${oneLine(word)}"${didYouMean(word, Object.keys(KINDS))}\nWhat can be converted: ${list}`,
  );
}

function chooseCodec(option: 'from' | 'to', name: string | undefined): Codec {
  if (name === undefined) throw new UsageError(`--${option} is missing: name a protocol (${listProtocols()})`);
  const codec = findCodec(name);
  if (!codec) throw createUnknownProtocolError(name);
  return codec;
}

function checkRequest(kind: InputKind, request: string | undefined, files: readonly string[]): void {
  if (request === undefined) return;
  if (kind !== 'response' && kind !== 'stream') throw new UsageError('--request goes with a response or a stream');
  if (request === '-' && files.includes('-')) throw new UsageError('standard input ("-") can be read only once');
}

type RequestOptions = Pick<Conversion, 'from' | 'to' | 'model'>;

/** Reads `--request` in the client protocol, or else in the upstream protocol. */
async function readRequest(
  file: string | undefined,
  options: RequestOptions,
  io: CliIo,
): Promise<CanonicalRequest | undefined | 'failed'> {
  if (file === undefined) return undefined;
  try {
    return decodeEither(JSON.parse(await readText(file, io)), options);
  } catch (error) {
    const isBug = !(error instanceof CodecError || error instanceof SyntaxError || systemCode(error) !== undefined);
    if (isBug) throw error;
    const { message } = error instanceof SyntaxError ? error : describeInputFailure(error, file);
    await reportError(`--request ${oneLine(file)}: ${oneLine(message)}`, io);
    return 'failed';
  }
}

function decodeEither(body: unknown, { from, to, model = 'unknown' }: RequestOptions): CanonicalRequest {
  try {
    return decodeRequest(body, { from: to, model });
  } catch (error) {
    if (!(error instanceof CodecError) || from.id === to.id) throw error;
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

/** Converts and writes one input; false when it failed. */
async function convertOne(file: string, conversion: Conversion, output: OutputOptions, io: CliIo): Promise<boolean> {
  const sink = createSink(file, output, io);
  try {
    const result = await convertInput(file, conversion, io, (bytes) => sink.write(bytes));
    const failure = await sink.finish(result);
    if (!output.isJson && output.out === undefined) await showNotes(file, result.notes, io);
    if (!failure) return true;
    const advice = findAdvice(failure);
    await reportError(`${oneLine(file)}: ${oneLine(`${failure.code}: ${failure.message}`)}`, io);
    if (advice !== undefined && io.stderr.isTTY) await io.stderr.write(`  ${advice}\n`);
    return false;
  } catch (error) {
    // A broken output fails the remaining inputs as well. Any other error here is a bug in Sluice.
    if (isBrokenPipe(error) || systemCode(error) !== undefined) throw error;
    await io.stderr.write(formatInternalError(error, io));
    await sink.finish({ notes: [], failure: { code: 'internal_error', message: 'a bug in sluice', canonical: 'INTERNAL' } });
    return false;
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
