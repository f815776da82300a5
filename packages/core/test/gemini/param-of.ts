import { CodecError } from '../../src/canonical/notes.ts';

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
