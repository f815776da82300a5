export type NoteCode = 'DROPPED' | 'APPROXIMATED' | 'REPAIRED' | 'CLAMPED' | 'RENAMED';

/** A loss or a repair, told to the caller. Nothing is lost silently. */
export interface Note {
  code: NoteCode;
  /** JSON pointer in the *source* document. */
  path: string;
  /** Stable key, e.g. `parameters.top_k`. */
  feature: string;
  message: string;
}
