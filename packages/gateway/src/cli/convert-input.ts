import {
  type AssembledError,
  type CanonicalError,
  type CanonicalRequest,
  type Codec,
  CodecError,
  convertError,
  convertRequest,
  convertResponse,
  encodeError,
  type Note,
  StreamValidator,
  streamConverter,
} from '@sluice/core';
import { describeSystemError } from './failures.ts';
import { type CliIo, systemCode } from './io.ts';
import { readInput, readText } from './read-input.ts';

export type Kind = 'request' | 'response' | 'stream' | 'error';

export interface Conversion {
  kind: Kind;
  from: Codec;
  to: Codec;
  model: string | undefined;
  isStrict: boolean;
  /** The client's question, when there is one. */
  request: CanonicalRequest | undefined;
}

export interface Result {
  /** Undefined for streams, which have been written, and for what could not be converted. */
  body?: unknown;
  notes: Note[];
  /** The HTTP status that goes with an error. */
  status?: number;
  failure?: AssembledError;
}

type Write = (bytes: Uint8Array) => Promise<void>;

/** Converts one input. Whatever is wrong with it is part of the result; only the output can fail. */
export async function convertInput(file: string, conversion: Conversion, io: CliIo, write: Write): Promise<Result> {
  if (conversion.kind === 'stream') return convertStream(file, conversion, io, write);
  try {
    return convertDocument(parse(await readText(file, io)), conversion);
  } catch (error) {
    return { notes: [], failure: failureOf(error, file) };
  }
}

function convertDocument(body: unknown, conversion: Conversion): Result {
  const { kind, from, to } = conversion;
  const options = optionsOf(conversion);
  switch (kind) {
    case 'request':
      return convertRequest(body, options);
    case 'response':
      return convertAnswer(body, conversion);
    case 'error': {
      const reply = convertError(replyOf(body), { from, to });
      return { body: reply.body, notes: [], status: reply.status };
    }
    case 'stream':
      throw new TypeError('a stream is no document');
    default:
      return kind satisfies never;
  }
}

/** An error in the place of an answer, or a refused loss, is an answer too: the client gets it in its own words. */
function convertAnswer(body: unknown, conversion: Conversion): Result {
  try {
    return convertResponse(body, optionsOf(conversion));
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    const reply = encodeError(error.error, conversion);
    return { body: reply.body, status: reply.status, notes: [], failure: describe(error.error) };
  }
}

/** A recorded error may be its body alone, or the answer around it. */
function replyOf(value: unknown): { status?: number; headers?: Record<string, string>; body: unknown } {
  const reply = typeof value === 'object' && value !== null && 'status' in value && 'body' in value ? value : undefined;
  if (!reply || typeof reply.status !== 'number') return { body: value };
  return { status: reply.status, headers: headersOf(reply), body: reply.body };
}

function headersOf(reply: object): Record<string, string> {
  if (!('headers' in reply) || typeof reply.headers !== 'object' || reply.headers === null) return {};
  return Object.fromEntries(Object.entries(reply.headers).map(([name, value]) => [name.toLowerCase(), String(value)]));
}

function optionsOf({ from, to, model, isStrict, request }: Conversion) {
  return { from, to, policy: { strict: isStrict }, ...(model !== undefined && { model }), ...(request && { request }) };
}

async function convertStream(file: string, conversion: Conversion, io: CliIo, write: Write): Promise<Result> {
  const converter = streamConverter({
    ...optionsOf(conversion),
    ...(io.env['SLUICE_DEBUG'] === '1' && { onEvent: validator() }),
  });
  const send = async (pieces: Iterable<Uint8Array>): Promise<void> => {
    for (const piece of pieces) await write(piece);
  };
  const source = readInput(file, io);
  for (let isRead = false; ; isRead = true) {
    const next = await source.next().catch((error: unknown) => failureOf(error, file));
    if ('code' in next) {
      // What was read before a read error is kept; of a file that cannot be opened there is nothing to keep.
      if (isRead) await send(converter.fail(next.message));
      return { notes: converter.notes, failure: next };
    }
    if (next.done || converter.hasFailed) break;
    await send(converter.push(next.value));
  }
  await source.return();
  await send(converter.end());
  const { notes, error } = converter;
  return { notes, ...(error && { failure: describe(error) }) };
}

/** In debug mode a decoder that breaks a rule of the canonical stream is caught in the act. */
function validator(): (event: Parameters<StreamValidator['push']>[0]) => void {
  const stage = new StreamValidator();
  return (event) => void stage.push(event);
}

class NotJson extends Error {}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const isStream = /^\s*(?:data|event|id|retry)?:/.test(text);
    const hint = isStream ? 'this is a stream: sluice convert stream' : String(error instanceof Error ? error.message : error);
    throw new NotJson(text.trim() === '' ? 'the input is empty' : `not JSON: ${hint}`);
  }
}

/** What can be wrong with an input. Everything else is a bug of ours, and thrown on. */
export function failureOf(error: unknown, file: string): AssembledError {
  if (error instanceof CodecError) return describe(error.error);
  if (error instanceof NotJson) return { code: 'not_json', message: error.message, canonical: 'JSON_PARSE_ERROR' };
  const code = systemCode(error);
  if (code === undefined) throw error;
  return describeSystemError(code, error, file, 'convert stream --from P --to Q');
}

/** Our own code where there is one, else the canonical. */
function describe({ code, message, param, details }: CanonicalError): AssembledError {
  const own = details?.['code'];
  return {
    code: typeof own === 'string' ? own : code,
    message,
    ...(typeof param === 'string' && { param }),
    canonical: code,
  };
}
