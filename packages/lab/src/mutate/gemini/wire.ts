/** The chunks of Gemini as mutations see them: candidates, parts and calls. */

import type { WireStream } from '../mutation.ts';
import { edit, isObject, type Json, objects, within, withinEach } from '../payloads.ts';

/** Changes every candidate of every chunk. */
export const editCandidates = (stream: WireStream, change: (candidate: Json, chunk: Json, at: number) => Json): WireStream =>
  edit(stream, (chunk, at) => withinEach(chunk, 'candidates', (candidate) => change(candidate, chunk, at)));

/** Changes every part, to one or several. */
export const editParts = (stream: WireStream, change: (part: Json, candidate: Json) => Json | Json[]): WireStream =>
  editCandidates(stream, (candidate) =>
    within(candidate, 'content', (content) => withinEach(content, 'parts', (part) => change(part, candidate))),
  );

/** Changes every whole call. */
export const editCalls = (stream: WireStream, change: (call: Json, part: Json) => Json): WireStream =>
  editParts(stream, (part) => (isWholeCall(part) ? within(part, 'functionCall', (call) => change(call, part)) : part));

/** Whether a part is a call that is not streamed in pieces. */
export const isWholeCall = (part: Json): boolean => {
  const { functionCall: call } = part;
  return isObject(call) && typeof call['name'] === 'string' && !('partialArgs' in call) && !('willContinue' in call);
};

/** The parts of a candidate. */
export const readParts = (candidate: Json): Json[] => objects((candidate['content'] as Json | undefined)?.['parts']);

/** A part that is nothing but text or a thought. */
export const isPlainText = (part: Json): boolean =>
  typeof part['text'] === 'string' &&
  part['text'] !== '' &&
  Object.keys(part).every((key) => key === 'text' || key === 'thought');

/** The chunk with other parts in its only candidate, without a finish reason. */
export function chunkLike(chunk: Json, parts: readonly Json[]): Json {
  const [candidate = {}] = objects(chunk['candidates']);
  const content = { ...(isObject(candidate['content']) ? candidate['content'] : { role: 'model' }), parts };
  const { index } = candidate;
  const { candidates, usageMetadata, promptFeedback, ...rest } = chunk;
  return { candidates: [{ content, ...(index !== undefined && { index }) }], ...rest };
}
