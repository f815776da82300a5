import { MessageAccumulator, type StreamResult } from '../../src/accumulate/message.ts';
import type { CanonicalStreamEvent } from '../../src/canonical/events.ts';
import type { ContentBlock } from '../../src/canonical/message.ts';
import type { Note } from '../../src/canonical/notes.ts';
import { pipe } from '../../src/canonical/stage.ts';
import { StreamValidator } from '../../src/canonical/validator.ts';
import { gemini } from '../../src/protocols/gemini/index.ts';
import { Diagnostics } from '../../src/rules/diagnostics.ts';
import { createSseDecoder } from '../../src/sse/index.ts';

export interface Run extends StreamResult {
  events: CanonicalStreamEvent[];
  rules: string[];
  notes: Note[];
  text: string;
  reasoning: string;
  calls: { id: string; name: string; arguments: string }[];
}

/** A body through framing, decoder and validator into a message. */
export function run(body: string | Uint8Array, size = Number.MAX_SAFE_INTEGER): Run {
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const diagnostics = new Diagnostics();
  const notes: Note[] = [];
  const context = { report: diagnostics.report, note: (note: Note) => notes.push(note) };
  const stage = pipe(
    pipe(createSseDecoder({ report: diagnostics.report }), gemini.streamDecoder(context)),
    new StreamValidator(),
  );
  const events: CanonicalStreamEvent[] = [];
  for (let at = 0; at < bytes.length; at += size) events.push(...stage.push(bytes.subarray(at, at + size)));
  events.push(...stage.end());
  const accumulator = new MessageAccumulator();
  for (const event of events) accumulator.push(event);
  const result = accumulator.finish();
  const { content } = result.message;
  return {
    ...result,
    events,
    notes,
    rules: diagnostics.list().map(({ rule }) => rule),
    text: join(content, (block) => (block.type === 'text' ? block.text : '')),
    reasoning: join(content, (block) => (block.type === 'thinking' ? block.thinking : '')),
    calls: content.flatMap((block) =>
      block.type === 'tool_use' && block.kind !== 'server'
        ? [{ id: block.id, name: block.name, arguments: block.input_raw ?? '' }]
        : [],
    ),
  };
}

const join = (content: ContentBlock[], read: (block: ContentBlock) => string): string => content.map(read).join('');

export const sse = (...payloads: unknown[]): string =>
  payloads.map((payload) => `data: ${JSON.stringify(payload)}\r\n\r\n`).join('');

/** A fragment of candidate 0; `more` are fields of the candidate. */
export const chunk = (parts: unknown[], more: object = {}): object => ({
  candidates: [{ content: { role: 'model', parts }, index: 0, ...more }],
  modelVersion: 'gemini-x',
  responseId: 'r1',
});

export const STOP = { finishReason: 'STOP' };
