import {
  type Assembled,
  Assembler,
  CODECS,
  createSseDecoder,
  GRAMMARS,
  type Note,
  type ProtocolId,
  type SseFrame,
  StreamValidator,
  streamConverter,
} from '@sluice/core';

export const PROTOCOL_IDS = Object.keys(CODECS) as ProtocolId[]; // the keys of a record closed by its type

/** Told the notes of a conversion. */
export type OnNote = (note: Note) => void;

/** The whole message. Every event on the way is held against the rules of the canonical stream, which throws when one is broken. */
export function assemble(protocol: ProtocolId, chunks: Iterable<Uint8Array>): Assembled {
  const validator = new StreamValidator();
  const assembler = new Assembler({ protocol: CODECS[protocol], onEvent: (event) => validator.push(event) });
  for (const chunk of chunks) assembler.push(chunk);
  const result = assembler.end();
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
  const converter = streamConverter({ from: CODECS[from], to: CODECS[to], now: () => 1_700_000_000 });
  const out: Uint8Array[] = [];
  for (const chunk of chunks) out.push(...converter.push(chunk));
  out.push(...converter.end());
  for (const note of converter.notes) onNote(note);
  return out;
}

/** Frames of a body, without the places where they stood. */
export function framesOf(bytes: Uint8Array): SseFrame[] {
  const decoder = createSseDecoder();
  return [...decoder.push(bytes), ...decoder.end()].map(({ offset: _, ...frame }) => frame);
}

/** Throws when a client of the protocol could stumble over the frames. */
export function checkGrammar(protocol: ProtocolId, frames: Iterable<SseFrame>): void {
  const grammar = GRAMMARS[protocol]();
  for (const frame of frames) grammar.push(frame);
  grammar.end();
}

export const bodyOf = (chunks: readonly Uint8Array[]): string =>
  new TextDecoder('utf-8', { ignoreBOM: true }).decode(Buffer.concat(chunks));
