import type { CanonicalError } from '../canonical/errors.ts';
import type { Note } from '../canonical/notes.ts';
import { incompatible, isStrict, type Policy } from '../protocols/shared/codec.ts';

/** The notes of a conversion, each said once: a stream that loses the same thing in every chunk has one note about it. */
export class NoteList {
  readonly list: Note[] = [];
  #said: Set<string> | undefined;

  readonly add = (note: Note): void => {
    const key = `${note.code} ${note.path} ${note.feature} ${note.message}`;
    this.#said ??= new Set();
    if (this.#said.has(key)) return;
    this.#said.add(key);
    this.list.push(note);
  };
}

/**
 * Tells of a loss in an answer, or refuses it. The codecs of answers are not strict by themselves: a stream that has begun can only end in an
 * error of the client's protocol, which the encoder writes when this throws, and the caller has to learn of it, too (`onRefusal`).
 */
export function answerNotes(notes: NoteList, policy: Policy, onRefusal: (error: CanonicalError) => void): (note: Note) => void {
  return (note) => {
    if (note.code === 'DROPPED' && isStrict({ policy }, note.feature)) {
      const refusal = incompatible(note);
      onRefusal(refusal.error);
      throw refusal;
    }
    notes.add(note);
  };
}
