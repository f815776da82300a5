import type { Assembled, Note, ProtocolId } from '@sluice/core';
import { attempt, differences, type Failure } from './failure.ts';
import { coreOf, normalOf } from './normal.ts';
import { assemble, bodyOf, checkGrammar, convert, framesOf, type OnNote } from './wire.ts';

/** Media that a protocol cannot carry stand as words in its text: then a note says so. */
const isWorded = ({ feature }: Note): boolean => /^content\.(image|audio|file)\b/.test(feature);

/** What every protocol can say, but for what the notes tell of. */
function said(result: Assembled, before: Assembled, notes: readonly Note[]): Record<string, unknown> {
  const { text, ...core } = coreOf(result);
  // Why Anthropic refused stands beside its message, and is the text of the refusal to OpenAI's clients.
  const isExplained = before.message.stop_details?.explanation !== undefined;
  return isExplained || notes.some(isWorded) ? core : { text, ...core };
}

/**
 * There and back: what every protocol can say is the same afterwards. To the same protocol: everything is. What is written on the way keeps
 * the grammar of its protocol.
 */
export function checkPair(
  from: ProtocolId,
  to: ProtocolId,
  chunks: readonly Uint8Array[],
  onNote: OnNote = () => undefined,
): Failure | undefined {
  return attempt(
    { property: 'pair', id: `pair/${from}/${to}`, protocol: from },
    () => bodyOf(chunks),
    () => {
      const notes: Note[] = [];
      const keep = (note: Note): void => {
        notes.push(note);
        onNote(note);
      };
      const before = assemble(from, chunks);
      const there = convert(from, to, chunks, keep);
      checkGrammar(to, there.flatMap(framesOf));
      const after = assemble(to, there);
      if (from === to) return differences(normalOf(before), normalOf(after));
      const again = convert(to, from, there, keep);
      checkGrammar(from, again.flatMap(framesOf));
      const core = (result: Assembled) => said(result, before, notes);
      return differences(core(before), core(after)) ?? differences(core(before), core(assemble(from, again)));
    },
  );
}
