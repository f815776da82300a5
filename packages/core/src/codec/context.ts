import type { Note } from '../canonical/notes.ts';
import type { Report } from '../rules/index.ts';
import type { ProviderProfile } from './profile.ts';

/** What a codec may ask of its caller. Everything impure is an argument. */
export interface Context {
  /** Names a departure from the standard that was met in the source. */
  report: Report;
  /** Tells of a loss or a repair. */
  note(note: Note): void;
  /** What is known of the server whose response is read; absent: nothing. */
  profile?: Partial<ProviderProfile> | undefined;
}
