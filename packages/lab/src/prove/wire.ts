import {
  type AccumulatedMessage,
  createSseDecoder,
  createStreamConverter,
  type Note,
  type ProtocolId,
  type SseFrame,
} from '@sluice/core';
import { CODECS, StreamAccumulator } from '@sluice/core/engine';
import { GRAMMARS, StreamValidator } from '@sluice/core/internal';

/** All protocols. */
export const PROTOCOL_IDS = Object.keys(CODECS) as ProtocolId[];

// the keys of a record closed by its type

/** Called with the notes of a conversion. */
export type OnNote = (note: Note) => void;

/** Reads the whole message. Checks every event against the rules of the canonical stream; throws when one is broken. */
export function assemble(protocol: ProtocolId, chunks: Iterable<Uint8Array>): AccumulatedMessage {
  const validator = new StreamValidator();
  const accumulator = new StreamAccumulator({ protocol: CODECS[protocol], onEvent: (event) => validator.push(event) });
  for (const chunk of chunks) accumulator.push(chunk);
  const result = accumulator.finish();
  validator.end();
  return result;
}

/** A stream of one protocol as a stream of another. */
export function convert(
  from: ProtocolId,
  to: ProtocolId,
  chunks: Iterable<Uint8Array>,
  onNote: OnNote = () => undefined,
): Uint8Array[] {
  const converter = createStreamConverter({ from: CODECS[from], to: CODECS[to], now: () => 1_700_000_000 });
  const out: Uint8Array[] = [];
  for (const chunk of chunks) out.push(...converter.push(chunk));
  out.push(...converter.end());
  for (const note of converter.notes) onNote(note);
  return out;
}

/** The frames of a body, without their offsets. */
export function readFrames(bytes: Uint8Array): SseFrame[] {
  const decoder = createSseDecoder();
  return [...decoder.push(bytes), ...decoder.end()].map(({ offset: _, ...frame }) => frame);
}

/** Throws when a client of the protocol could fail on the frames. */
export function checkGrammar(protocol: ProtocolId, frames: Iterable<SseFrame>): void {
  const grammar = GRAMMARS[protocol]();
  for (const frame of frames) grammar.push(frame);
  grammar.end();
}

/** The text of a body. */
export const decodeBody = (chunks: readonly Uint8Array[]): string =>
  new TextDecoder('utf-8', { ignoreBOM: true }).decode(Buffer.concat(chunks));
