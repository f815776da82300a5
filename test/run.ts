import { StreamAccumulator } from '../packages/core/src/engine/index.ts';
import { EventReader } from '../packages/core/src/engine/reader.ts';
import { type AccumulatedMessage, findProtocol, type Protocol } from '../packages/core/src/index.ts';
import { StreamValidator } from '../packages/core/src/internal.ts';

/** The names that the cases use for protocols. `sse` cases are framing, with chat payloads. */
const CASE_PROTOCOLS: Record<string, string> = { sse: 'openai-chat' };

export function protocolOf(name: string): Protocol {
  const protocol = findProtocol(CASE_PROTOCOLS[name] ?? name);
  if (!protocol) throw new Error(`no protocol ${name}`);
  return protocol;
}

export const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

/** Views on the bytes between the cuts (any numbers; they are put in order and in range). */
export function splitAt(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length];
  return places.slice(1).map((end, i) => bytes.subarray(places[i], end));
}

export const splitEvery = (bytes: Uint8Array, size: number): Uint8Array[] =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size));

/** Pieces of the given sizes; the rest in one. */
export function splitBy(bytes: Uint8Array, sizes: readonly number[]): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  let at = 0;
  for (const size of sizes) {
    pieces.push(bytes.subarray(at, at + size));
    at += size;
  }
  return at < bytes.length ? [...pieces, bytes.subarray(at)] : pieces;
}

export function assemble(protocol: Protocol | Protocol[], chunks: Iterable<Uint8Array>): AccumulatedMessage {
  const accumulator = new StreamAccumulator({ protocol });
  for (const chunk of chunks) accumulator.push(chunk);
  return accumulator.finish();
}

/** Runs a body through the decoder of its protocol and throws when an event breaks a rule of the canonical stream. */
export function validate(protocol: Protocol, chunks: Iterable<Uint8Array>): number {
  const reader = new EventReader({ protocol });
  const validator = new StreamValidator();
  let count = 0;
  const check = (events: Iterable<Parameters<StreamValidator['push']>[0]>) => {
    for (const event of events) {
      validator.push(event);
      count++;
    }
  };
  for (const chunk of chunks) check(reader.push(chunk));
  check(reader.end());
  validator.end();
  return count;
}
