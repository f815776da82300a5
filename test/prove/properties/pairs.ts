import { streamConverter } from '../../../packages/core/src/engine/stream-converter.ts';
import type { CanonicalStreamEvent, Note, ProtocolId } from '../../../packages/core/src/index.ts';
import { MessageAccumulator } from '../../../packages/core/src/index.ts';
import { seededRandom } from '../../../packages/gateway/src/mutate/index.ts';
import type { Failure } from '../case.ts';
import { cutText, eventsOf, type Told } from '../generate/events.ts';
import { coreOf, normalOf } from '../normal.ts';
import { ORACLES } from '../oracles.ts';
import { assemble, bodyOf, CODECS, chunksOf, contextOf, encode, framesOf, streamOf } from '../wire.ts';

/** Notes that were met, by code and feature. */
export type NoteCount = (note: Note) => void;

/** In words, where one message is not what the other was. */
function differences<T extends object>(before: T, after: T): string | undefined {
  const differ = (Object.keys(before) as (keyof T)[]).filter(
    (part) => JSON.stringify(before[part]) !== JSON.stringify(after[part]),
  );
  const [part] = differ;
  return part === undefined
    ? undefined
    : `${differ.join(', ')}: ${JSON.stringify(after[part])} is not ${JSON.stringify(before[part])}`;
}

/** Runs a check; whatever it throws is a failure, too. */
function attempt(
  property: string,
  id: string,
  protocol: ProtocolId,
  raw: () => string,
  run: () => string | undefined,
): Failure | undefined {
  let message: string | undefined;
  try {
    message = run();
  } catch (error) {
    message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  }
  return message === undefined ? undefined : { property, id, message, protocol, raw: raw(), ...expectedOf(protocol, raw()) };
}

/** What the stream says before anything is done to it, if it can be read at all. */
function expectedOf(protocol: ProtocolId, raw: string): Pick<Failure, 'expected'> {
  try {
    return { expected: assemble(protocol, [new TextEncoder().encode(raw)]) };
  } catch {
    return {};
  }
}

const bytesOf = (protocol: ProtocolId, events: readonly CanonicalStreamEvent[]): Uint8Array[] =>
  chunksOf(streamOf(protocol, encode(protocol, events, [], protocol)));

/** A stream of one protocol as a stream of another. */
export function convert(
  from: ProtocolId,
  to: ProtocolId,
  chunks: Iterable<Uint8Array>,
  onNote: NoteCount = () => undefined,
): Uint8Array[] {
  const converter = streamConverter({ from: CODECS[from], to: CODECS[to], now: () => 1_700_000_000 });
  const out: Uint8Array[] = [];
  for (const chunk of chunks) out.push(...converter.push(chunk));
  out.push(...converter.end());
  for (const note of converter.notes) onNote(note);
  return out;
}

/** What a protocol writes, it reads without an objection, and its grammar accepts it. */
export function checkWritten(protocol: ProtocolId, { answer, seed }: Told): Failure | undefined {
  const events = eventsOf(answer, seed);
  const frames = encode(protocol, events, [], protocol);
  const chunks = chunksOf(streamOf(protocol, frames));
  return attempt(
    'grammar',
    `grammar/${protocol}`,
    protocol,
    () => bodyOf(chunks),
    () => {
      ORACLES[protocol].grammar(frames);
      const result = assemble(protocol, chunks);
      if (result.error || !result.complete) return `read as ${JSON.stringify(result.error)}`;
      const [met] = result.diagnostics;
      return met && `${met.rule}: ${met.message}`;
    },
  );
}

/** There and back: what every protocol can say is the same afterwards. To the same protocol: everything is. */
export function checkPair(
  from: ProtocolId,
  to: ProtocolId,
  chunks: readonly Uint8Array[],
  onNote: NoteCount,
): Failure | undefined {
  return attempt(
    'pair',
    `pair/${from}/${to}`,
    from,
    () => bodyOf(chunks),
    () => {
      const before = assemble(from, chunks);
      const there = convert(from, to, chunks, onNote);
      ORACLES[to].grammar(there.flatMap(framesOf));
      const after = assemble(to, there);
      if (from === to) return differences(normalOf(before), normalOf(after));
      const back = assemble(from, convert(to, from, there, onNote));
      return differences(coreOf(before), coreOf(after)) ?? differences(coreOf(before), coreOf(back));
    },
  );
}

export const checkGeneratedPair = (
  from: ProtocolId,
  to: ProtocolId,
  { answer, seed }: Told,
  onNote: NoteCount,
): Failure | undefined => checkPair(from, to, bytesOf(from, eventsOf(answer, seed)), onNote);

/** Streamed or whole: the same message. */
export function checkCommute(protocol: ProtocolId, { answer, seed }: Told): Failure | undefined {
  const events = eventsOf(answer, seed);
  const chunks = bytesOf(protocol, events);
  return attempt(
    'commute',
    `commute/${protocol}`,
    protocol,
    () => bodyOf(chunks),
    () => {
      const accumulator = new MessageAccumulator();
      for (const event of events) accumulator.push(event);
      const body = CODECS[protocol].response.encode(accumulator.finish().message, contextOf(protocol, [], protocol));
      const whole = assemble(protocol, [new TextEncoder().encode(JSON.stringify(body))]);
      return differences(normalOf(whole), normalOf(assemble(protocol, chunks)));
    },
  );
}

/** The same events in other pieces. */
function recut(events: readonly CanonicalStreamEvent[], seed: number): CanonicalStreamEvent[] {
  const random = seededRandom(seed + 1);
  return events.flatMap((event): CanonicalStreamEvent[] => {
    if (event.type !== 'content_block_delta') return [event];
    const { delta } = event;
    if (delta.type === 'text_delta') return cutText(delta.text, random).map((text) => ({ ...event, delta: { ...delta, text } }));
    if (delta.type === 'thinking_delta')
      return cutText(delta.thinking, random).map((thinking) => ({ ...event, delta: { ...delta, thinking } }));
    if (delta.type === 'input_json_delta')
      return cutText(delta.partial_json, random).map((partial_json) => ({ ...event, delta: { ...delta, partial_json } }));
    return [event];
  });
}

/** However a model's words are cut into deltas, the client reads the same message. */
export function checkRecut(protocol: ProtocolId, { answer, seed }: Told): Failure | undefined {
  const events = eventsOf(answer, seed);
  const chunks = bytesOf(protocol, recut(events, seed));
  return attempt(
    're-chunking',
    `rechunk/${protocol}`,
    protocol,
    () => bodyOf(chunks),
    () => differences(normalOf(assemble(protocol, bytesOf(protocol, events))), normalOf(assemble(protocol, chunks))),
  );
}
