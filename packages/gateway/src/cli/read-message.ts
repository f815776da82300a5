import {
  type Assembled,
  type AssembledError,
  Assembler,
  type CanonicalStreamEvent,
  Examiner,
  type Protocol,
  StreamValidator,
} from '@sluice/core';
import { describeSystemError } from './failures.ts';
import { internalError } from './internal-error.ts';
import { type CliIo, systemCode } from './io.ts';
import { readInput } from './read-input.ts';

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
