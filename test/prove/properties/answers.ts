import { type CanonicalStreamEvent, MessageAccumulator, type ProtocolId } from '../../../packages/core/src/index.ts';
import { seededRandom } from '../../../packages/lab/src/mutate/index.ts';
import { attempt, differences, type Failure } from '../../../packages/lab/src/prove/failure.ts';
import { normaliseMessage } from '../../../packages/lab/src/prove/normal.ts';
import { checkPair } from '../../../packages/lab/src/prove/prove-body.ts';
import { assemble, checkGrammar, decodeBody, type OnNote } from '../../../packages/lab/src/prove/wire.ts';
import { cutText, eventsOf, type Told } from '../generate/events.ts';
import { CODECS, chunksOf, contextOf, encode, streamOf } from '../wire.ts';

const bytesOf = (protocol: ProtocolId, events: readonly CanonicalStreamEvent[]): Uint8Array[] =>
  chunksOf(streamOf(protocol, encode(protocol, events, [], protocol)));

/** What a protocol writes, it reads without an objection, and its grammar accepts it. */
export function checkWritten(protocol: ProtocolId, { answer, seed }: Told): Failure | undefined {
  const events = eventsOf(answer, seed);
  const frames = encode(protocol, events, [], protocol);
  const chunks = chunksOf(streamOf(protocol, frames));
  return attempt(
    { property: 'grammar', id: `grammar/${protocol}`, protocol },
    () => decodeBody(chunks),
    () => {
      checkGrammar(protocol, frames);
      const result = assemble(protocol, chunks);
      if (result.error || !result.complete) return `read as ${JSON.stringify(result.error)}`;
      const [met] = result.diagnostics;
      return met && `${met.rule}: ${met.message}`;
    },
  );
}

export const checkGeneratedPair = (
  from: ProtocolId,
  to: ProtocolId,
  { answer, seed }: Told,
  onNote: OnNote,
): Failure | undefined => checkPair(from, to, bytesOf(from, eventsOf(answer, seed)), onNote);

/** Streamed or whole: the same message. */
export function checkCommute(protocol: ProtocolId, { answer, seed }: Told): Failure | undefined {
  const events = eventsOf(answer, seed);
  const chunks = bytesOf(protocol, events);
  return attempt(
    { property: 'commute', id: `commute/${protocol}`, protocol },
    () => decodeBody(chunks),
    () => {
      const accumulator = new MessageAccumulator();
      for (const event of events) accumulator.push(event);
      const body = CODECS[protocol].response.encode(accumulator.finish().message, contextOf(protocol, [], protocol));
      const whole = assemble(protocol, [new TextEncoder().encode(JSON.stringify(body))]);
      return differences(normaliseMessage(whole), normaliseMessage(assemble(protocol, chunks)));
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
    { property: 're-chunking', id: `rechunk/${protocol}`, protocol },
    () => decodeBody(chunks),
    () =>
      differences(normaliseMessage(assemble(protocol, bytesOf(protocol, events))), normaliseMessage(assemble(protocol, chunks))),
  );
}
