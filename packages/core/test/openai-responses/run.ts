import { MessageAccumulator, type StreamResult } from '../../src/accumulate/message.ts';
import type { CanonicalStreamEvent } from '../../src/canonical/events.ts';
import type { Note } from '../../src/canonical/notes.ts';
import { pipe } from '../../src/canonical/stage.ts';
import { StreamValidator } from '../../src/canonical/validator.ts';
import { openaiResponses } from '../../src/protocols/openai-responses/index.ts';
import { Diagnostics } from '../../src/rules/diagnostics.ts';
import type { Diagnostic } from '../../src/rules/index.ts';
import type { SseFrame } from '../../src/sse/encode.ts';
import { createSseDecoder } from '../../src/sse/index.ts';

export interface Run extends StreamResult {
  events: CanonicalStreamEvent[];
  diagnostics: Diagnostic[];
  notes: Note[];
}

export function run<In>(feed: (push: (input: In) => void) => void, source: 'bytes' | 'frames'): Run {
  const diagnostics = new Diagnostics();
  const notes: Note[] = [];
  const decoder = openaiResponses.streamDecoder({ report: diagnostics.report, note: (note) => notes.push(note) });
  const bytes = pipe(createSseDecoder({ report: diagnostics.report }), decoder);
  const accumulator = new MessageAccumulator();
  const validator = new StreamValidator();
  const events: CanonicalStreamEvent[] = [];
  const take = (batch: Iterable<CanonicalStreamEvent>): void => {
    for (const event of batch) {
      validator.push(event);
      events.push(structuredClone(event));
      accumulator.push(event);
    }
  };
  feed((input) => take(source === 'bytes' ? bytes.push(input as Uint8Array) : decoder.push(input as SseFrame)));
  take(source === 'bytes' ? bytes.end() : decoder.end());
  take(source === 'bytes' ? bytes.end() : decoder.end());
  validator.end();
  return { ...accumulator.finish(), events, diagnostics: diagnostics.list(), notes };
}

/** A whole body, in pieces of `size` bytes. */
export function runBytes(body: string | Uint8Array, size = Number.POSITIVE_INFINITY): Run {
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  return run<Uint8Array>((push) => {
    for (let at = 0; at < bytes.length; at += Math.min(size, bytes.length)) push(bytes.subarray(at, at + size));
  }, 'bytes');
}

export type Payload = Record<string, unknown>;

/** Payloads framed as the API does it, numbered where they are not. */
export function runPayloads(payloads: readonly Payload[]): Run {
  return run<SseFrame>((push) => {
    for (const [at, payload] of payloads.entries()) {
      const type = payload['type'];
      push({ data: JSON.stringify({ sequence_number: at, ...payload }), ...(typeof type === 'string' && { event: type }) });
    }
  }, 'frames');
}

export const rulesOf = ({ diagnostics }: Run): string[] => diagnostics.map(({ rule }) => rule).toSorted();
