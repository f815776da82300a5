import { Assembler } from '../../packages/core/src/engine/assembler.ts';
import { createContext } from '../../packages/core/src/engine/context.ts';
import {
  type Assembled,
  type CanonicalStreamEvent,
  createSseDecoder,
  type Note,
  type ProtocolId,
  type SseFrame,
  StreamValidator,
} from '../../packages/core/src/index.ts';
import { CODECS } from '../../packages/core/src/protocols/codecs.ts';
import { PLAIN_FRAMING, seededRandom, type WireStream, writeStream } from '../../packages/gateway/src/mutate/index.ts';

export { CODECS };
export const PROTOCOL_IDS = Object.keys(CODECS) as ProtocolId[]; // the keys of a record closed by its type

/** A context as an answer's encoder gets it; nothing in it depends on the time or on chance. */
export function contextOf(protocol: ProtocolId, notes: Note[] = [], source?: ProtocolId): ReturnType<typeof createContext> {
  return createContext({
    note: (note) => notes.push(note),
    profile: CODECS[protocol].profileFor(''),
    now: () => 1_700_000_000,
    ...(source && { source }),
  });
}

/** Events in the words of a protocol. */
export function encode(
  protocol: ProtocolId,
  events: Iterable<CanonicalStreamEvent>,
  notes: Note[] = [],
  source?: ProtocolId,
): SseFrame[] {
  const encoder = CODECS[protocol].streamEncoder(contextOf(protocol, notes, source));
  const frames: SseFrame[] = [];
  for (const event of events) frames.push(...encoder.push(event));
  frames.push(...encoder.end());
  return frames;
}

/** The whole message. Every event on the way is held against the rules of the canonical stream, which throws when one is broken. */
export function assemble(protocol: ProtocolId, chunks: Iterable<Uint8Array>): Assembled {
  const validator = new StreamValidator();
  const assembler = new Assembler({ protocol: CODECS[protocol].protocol, onEvent: (event) => validator.push(event) });
  for (const chunk of chunks) assembler.push(chunk);
  const result = assembler.end();
  validator.end();
  return result;
}

/** Frames of a body, without the places where they stood. */
export function framesOf(bytes: Uint8Array): SseFrame[] {
  const decoder = createSseDecoder();
  return [...decoder.push(bytes), ...decoder.end()].map(({ offset: _, ...frame }) => frame);
}

export const streamOf = (protocol: ProtocolId, frames: readonly SseFrame[]): WireStream => ({
  protocol,
  frames,
  framing: PLAIN_FRAMING,
});

/** The bytes of a stream, in the reads of its framing. */
export const chunksOf = (stream: WireStream, seed = 0): Uint8Array[] => writeStream(stream, seededRandom(seed));

export const bodyOf = (chunks: readonly Uint8Array[]): string =>
  new TextDecoder('utf-8', { ignoreBOM: true }).decode(Buffer.concat(chunks));
