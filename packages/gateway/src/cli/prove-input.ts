import { type AssembledError, Assembler, type Protocol } from '@sluice/core';
import type { Body } from '../prove/splits.ts';
import { describeSystemError } from './failures.ts';
import { type CliIo, systemCode } from './io.ts';
import { bytes as inUnits } from './layout.ts';
import { readInput } from './read-input.ts';

/** A proof holds the body in memory, many times over. */
const MAX_PROOF_BYTES = 64 * 1024 * 1024;

/** A body whose protocol is known, or why there is none. */
export type ProveInput = Body | { error: AssembledError };

export async function readBody(file: string, protocols: readonly Protocol[], io: CliIo): Promise<ProveInput> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of readInput(file, io)) {
      chunks.push(chunk);
      length += chunk.length;
      if (length > MAX_PROOF_BYTES) return { error: tooLarge };
    }
  } catch (error) {
    const code = systemCode(error);
    if (code === undefined) throw error;
    return { error: describeSystemError(code, error, file, 'prove') };
  }
  return recognise(file, Buffer.concat(chunks), protocols);
}

const tooLarge: AssembledError = {
  code: 'too_large',
  message: `larger than ${inUnits(MAX_PROOF_BYTES)}: prove a part of it`,
  canonical: 'PAYLOAD_TOO_LARGE',
};

function recognise(name: string, bytes: Uint8Array, protocols: readonly Protocol[]): ProveInput {
  const assembler = new Assembler({ protocol: protocols });
  assembler.push(bytes);
  const { protocol, error } = assembler.end();
  if (error && isNothing(error)) return { error };
  return protocol ? { protocol, name, bytes } : { error: notKnown };
}

/** A body that says nothing, or something else: there is nothing to prove. */
const isNothing = ({ code }: AssembledError): boolean => code === 'empty_stream' || code === 'not_a_stream';

const notKnown: AssembledError = {
  code: 'not_a_stream',
  message: 'the protocol cannot be told from the bytes: name it with --protocol',
  canonical: 'INVALID_INPUT',
};
