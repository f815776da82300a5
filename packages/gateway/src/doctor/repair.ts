import {
  type Assembled,
  CODECS,
  type Codec,
  CodecError,
  collectStream,
  type Examination,
  Examiner,
  type Finding,
  type Note,
  type Protocol,
  replayResponse,
  streamConverter,
} from '@sluice/core';

export interface Repaired {
  examination: Examination;
  /** The stream again; undefined when it is no stream of any protocol. */
  chunks: readonly Uint8Array[] | undefined;
  /** What was repaired; empty for a stream that is passed on as it came. */
  repaired: Finding[];
  notes: Note[];
}

export interface RepairOptions {
  protocols: readonly Protocol[];
  /** Whether what is merely unusual is brought in line, too. */
  all: boolean;
}

/** A stream as its protocol wants it. One that conforms comes back byte for byte: which of the two it is, only its end tells. */
export function repairStream(chunks: readonly Uint8Array[], { protocols, all }: RepairOptions): Repaired {
  const examination = examine(chunks, protocols);
  const { protocol, findings } = examination;
  const repaired = Examiner.findRepairs(examination, all);
  // An error alone has the same form in several protocols, and nothing to repair; what is no answer at all is not passed on.
  const isNothing = findings.some(({ rule }) => rule === 'sse/not-a-stream' || rule === 'sse/empty-stream');
  if (protocol === null) return { examination, chunks: isNothing ? undefined : chunks, repaired: [], notes: [] };
  if (repaired.length === 0) return { examination, chunks, repaired, notes: [] };
  return { examination, repaired, ...rewrite(chunks, CODECS[protocol], examination) };
}

/** Strict: the client that reads a repaired stream expects SSE and trusts the finish reason. */
const examine = (chunks: Iterable<Uint8Array>, protocols: readonly Protocol[]): Examination =>
  Examiner.examine(chunks, { protocol: protocols, strict: true });

/**
 * Delta by delta where that says all of it. A call that goes on after it was handed out can be said only by a stream that knows its end: then the
 * whole message is written anew.
 */
function rewrite(chunks: readonly Uint8Array[], codec: Codec, { message }: Examination): Pick<Repaired, 'chunks' | 'notes'> {
  const converter = streamConverter({ from: codec, to: codec });
  const live = [...chunks.flatMap((chunk) => [...converter.push(chunk)]), ...converter.end()];
  const again = examine(live, [codec]);
  const isWhole = saidIn(again.message) === saidIn(message) && Examiner.isRepaired(again);
  const rewritten = isWhole || message.error || !message.complete ? undefined : rewriteWhole(chunks, codec);
  return rewritten ?? { chunks: live, notes: converter.notes };
}

/** Undefined for a message that has no whole form, such as one that the provider broke off. */
function rewriteWhole(chunks: readonly Uint8Array[], codec: Codec): Pick<Repaired, 'chunks' | 'notes'> | undefined {
  try {
    const { body, notes } = collectStream(chunks, { from: codec, to: codec });
    const replayed = replayResponse(body, { from: codec, to: codec });
    return { chunks: [replayed.body], notes: [...notes, ...replayed.notes] };
  } catch (error) {
    if (error instanceof CodecError) return undefined;
    throw error;
  }
}

const saidIn = ({ text, reasoning, refusal, tool_calls: calls }: Assembled): string =>
  JSON.stringify([text, reasoning, refusal, calls.map(({ name, arguments: args }) => `${name} ${args}`).toSorted()]);
