import { type CanonicalResponse, type CanonicalStreamEvent, replay } from '@sluice/core';

/** Words keep the space before them, as models send them. A pattern that begins with spaces is quadratic in a run of them. */
const WORD_END = /(?<=\S)(?=\s)/;
const ARGUMENT_PIECE = 12;

/** The events of an answer, word by word. */
export function* inPieces(response: CanonicalResponse): Iterable<CanonicalStreamEvent> {
  for (const event of replay(response)) {
    if (event.type !== 'content_block_delta') yield event;
    else for (const delta of cut(event.delta)) yield { ...event, delta };
  }
}

type Delta = Extract<CanonicalStreamEvent, { type: 'content_block_delta' }>['delta'];

function cut(delta: Delta): Delta[] {
  if (delta.type === 'text_delta') return delta.text.split(WORD_END).map((text) => ({ ...delta, text }));
  if (delta.type === 'thinking_delta') return delta.thinking.split(WORD_END).map((thinking) => ({ ...delta, thinking }));
  if (delta.type !== 'input_json_delta') return [delta];
  const pieces: Delta[] = [];
  for (let at = 0; at < delta.partial_json.length; at += ARGUMENT_PIECE)
    pieces.push({ ...delta, partial_json: delta.partial_json.slice(at, at + ARGUMENT_PIECE) });
  return pieces;
}
