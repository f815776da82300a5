import { CodecError, type Note } from '../../src/canonical/notes.ts';
import type { CodecContext } from '../../src/codec/protocol.ts';
import { DEFAULT_CHAT_PROFILE } from '../../src/protocols/openai-chat/profiles.ts';

/** A context that collects notes; nothing in it depends on the time or on chance. */
export function bareContext(over: Partial<CodecContext> = {}): CodecContext & { notes: Note[] } {
  const notes: Note[] = [];
  return {
    now: () => 1_700_000_000,
    newId: (prefix) => `${prefix}1`,
    note: (note) => notes.push(note),
    report: () => {},
    profile: DEFAULT_CHAT_PROFILE,
    policy: {},
    ...over,
    notes,
  };
}

/** The param of the CodecError that `run` throws; undefined when it throws none. Any other error is thrown on. */
export function paramOf(run: () => unknown): string | null | undefined {
  try {
    run();
  } catch (error) {
    if (error instanceof CodecError) return error.error.param ?? error.error.code;
    throw error;
  }
  return undefined;
}
