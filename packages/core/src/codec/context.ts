import type { Note } from '../canonical/notes.ts';
import type { Report } from '../rules/index.ts';
import type { ProviderProfile } from './profile.ts';

/** What a decoder needs from its caller. Reporting is an argument, so decoders are pure. */
export interface Context {
  /** Reports that the source violates the standard. */
  report: Report;
  /** Notes a loss or a repair. */
  note(note: Note): void;
  /** What is known about the server whose response is read; absent: nothing. */
  profile?: Partial<ProviderProfile> | undefined;
}
