import { createContext } from '../../packages/core/src/engine/context.ts';
import type { CanonicalStreamEvent, Note, ProtocolId, SseFrame } from '../../packages/core/src/index.ts';
import { CODECS } from '../../packages/core/src/protocols/index.ts';
import { PLAIN_FRAMING, seededRandom, type WireStream, writeStream } from '../../packages/lab/src/mutate/index.ts';
import { PROTOCOL_IDS } from '../../packages/lab/src/prove/wire.ts';

export { CODECS };

/** Every protocol with every protocol, itself included. */
export const PAIRS = PROTOCOL_IDS.flatMap((from) => PROTOCOL_IDS.map((to) => ({ from, to, name: `${from} → ${to}` })));

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

export const streamOf = (protocol: ProtocolId, frames: readonly SseFrame[]): WireStream => ({
  protocol,
  frames,
  framing: PLAIN_FRAMING,
});

/** The bytes of a stream, in the reads of its framing. */
export const chunksOf = (stream: WireStream, seed = 0): Uint8Array[] => writeStream(stream, seededRandom(seed));
