import {
  type AccumulatedMessage,
  type Codec,
  CodecError,
  createStreamConverter,
  type Examination,
  Examiner,
  type Finding,
  type Note,
  type Protocol,
} from '@sluice/core';
import { CODECS, convertResponseToStream, convertStreamToResponse } from '@sluice/core/engine';

/**
 * Removes the violations of a stream. One that conforms is returned byte for byte, which can be
 * decided only at its end.
 */
export function repairStream(chunks: readonly Uint8Array[], { protocols, all }: RepairOptions): Repaired {
  const examination = examine(chunks, protocols);
  const { protocol, findings } = examination;
  const repaired = Examiner.findRepairs(examination, all);
  // Without a protocol, the body is a bare error, which is passed on, or not a stream at all.
  const isNoStream = findings.some(({ rule }) => rule === 'sse/not-a-stream' || rule === 'sse/empty-stream');
  if (protocol === null) return { examination, chunks: isNoStream ? undefined : chunks, repaired: [], notes: [] };
  if (repaired.length === 0) return { examination, chunks, repaired, notes: [] };
  return { examination, repaired, ...rewrite(chunks, CODECS[protocol], examination) };
}

/** What to repair. */
export interface RepairOptions {
  protocols: readonly Protocol[];
  /** Also repair what is merely unusual (severity info). */
  all: boolean;
}

/** A repaired stream. */
export interface Repaired {
  examination: Examination;
  /** The repaired stream; undefined when the input is not a stream of any protocol. */
  chunks: readonly Uint8Array[] | undefined;
  /** What was repaired; empty for a stream that conforms. */
  repaired: Finding[];
  notes: Note[];
}

/** Strict: readers of a repaired stream expect SSE and rely on the finish reason. */
const examine = (chunks: Iterable<Uint8Array>, protocols: readonly Protocol[]): Examination =>
  Examiner.examine(chunks, { protocol: protocols, strict: true });

/**
 * Converts delta by delta if that preserves the content. Otherwise, such as for a tool call that continues after it was
 * closed, the complete message is encoded again.
 */
function rewrite(chunks: readonly Uint8Array[], codec: Codec, { message }: Examination): Pick<Repaired, 'chunks' | 'notes'> {
  const converter = createStreamConverter({ from: codec, to: codec });
  const streamed = [...chunks.flatMap((chunk) => [...converter.push(chunk)]), ...converter.end()];
  const again = examine(streamed, [codec]);
  const isWhole = summarizeContent(again.message) === summarizeContent(message) && Examiner.isRepaired(again);
  const rewritten = isWhole || message.error || !message.complete ? undefined : rewriteWhole(chunks, codec);
  return rewritten ?? { chunks: streamed, notes: converter.notes };
}

/** Text, reasoning, refusal and tool calls of a message, for comparison. */
const summarizeContent = ({ text, reasoning, refusal, tool_calls: calls }: AccumulatedMessage): string =>
  JSON.stringify([text, reasoning, refusal, calls.map(({ name, arguments: args }) => `${name} ${args}`).toSorted()]);

/** Undefined for a message that cannot be encoded as a complete response, such as an interrupted one. */
function rewriteWhole(chunks: readonly Uint8Array[], codec: Codec): Pick<Repaired, 'chunks' | 'notes'> | undefined {
  try {
    const { body, notes } = convertStreamToResponse(chunks, { from: codec, to: codec });
    const replayed = convertResponseToStream(body, { from: codec, to: codec });
    return { chunks: [replayed.body], notes: [...notes, ...replayed.notes] };
  } catch (error) {
    if (error instanceof CodecError) return undefined;
    throw error;
  }
}
