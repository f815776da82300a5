import {
  type Assembled,
  type AssembledError,
  Assembler,
  type CanonicalStreamEvent,
  type Protocol,
  StreamValidator,
  withTitle,
} from '@sluice/core';
import { describeSystemError } from './failures.ts';
import { internalError } from './internal-error.ts';
import { type CliIo, systemCode } from './io.ts';
import { readInput } from './read-input.ts';

/** Reads an input to its end. Whatever happens there is a result: a file that cannot be read has its error, too. */
export async function readMessage(file: string, protocols: readonly Protocol[], io: CliIo): Promise<Assembled> {
  const assembler = new Assembler({ protocol: protocols, ...(io.env['SLUICE_DEBUG'] === '1' && { onEvent: validator() }) });
  try {
    await readInto(assembler, file, io);
    return withTitles(assembler.end());
  } catch (error) {
    const code = systemCode(error);
    // What came before a read error is kept; after a bug of ours nothing can be trusted.
    if (code !== undefined) return failed(assembler, protocols, describeSystemError(code, error, file));
    await io.stderr.write(internalError(error, io));
    return emptyMessage(protocols, { code: 'internal_error', message: 'internal error: a bug in sluice', canonical: 'INTERNAL' });
  }
}

/** In debug mode a decoder that breaks a rule of the canonical stream is caught in the act. */
function validator(): (event: CanonicalStreamEvent) => void {
  const stage = new StreamValidator();
  return (event) => void stage.push(event);
}

async function readInto(assembler: Assembler, file: string, io: CliIo): Promise<void> {
  for await (const chunk of readInput(file, io)) {
    assembler.push(chunk);
    if (assembler.hasFailed) break;
  }
}

const withTitles = (result: Assembled): Assembled => ({ ...result, diagnostics: result.diagnostics.map(withTitle) });

function failed(assembler: Assembler, protocols: readonly Protocol[], error: AssembledError): Assembled {
  const read = withTitles(assembler.fail(error.message));
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
