import type { JsonObject } from '../../accumulate/overlay.ts';
import type { SystemBlock } from '../../canonical/request.ts';
import { objectOf } from '../shared/read.ts';
import { encodeInputText } from './content-encode.ts';
import { replayableId } from './ids.ts';
import { fieldsOf } from './kept.ts';

export interface Instructions {
  instructions: string | undefined;
  items: JsonObject[];
}

/**
 * What comes first and is plain text are the `instructions`. A block that has a message of its own, a developer's, or a mark for the cache is
 * an item of the input, and so is all that follows it: the order is kept. `isInput`: everything is an item.
 */
export function encodeSystem(system: readonly SystemBlock[], isInput: boolean): Instructions {
  const first = isInput ? 0 : system.findIndex((block) => !isInstruction(block));
  const plain = first < 0 ? system : system.slice(0, first);
  return {
    instructions: plain.length > 0 ? plain.map(({ text }) => text).join('\n\n') : undefined,
    items: first < 0 ? [] : encodeItems(system.slice(first)),
  };
}

function isInstruction(block: SystemBlock): boolean {
  const { instructions, message } = fieldsOf(block);
  if (instructions === true) return true;
  return message === undefined && block.role !== 'developer' && !block.cache_control;
}

/** A block that names a role begins a message; the others continue it. */
function encodeItems(blocks: readonly SystemBlock[]): JsonObject[] {
  const runs: SystemBlock[][] = [];
  for (const block of blocks) {
    const run = runs.at(-1);
    if (run && block.role === undefined) run.push(block);
    else runs.push([block]);
  }
  return runs.map((run) => {
    const [first] = run;
    const { id: named, ...fields } = objectOf(first && fieldsOf(first)['message']);
    const id = replayableId(named, 'msg');
    return {
      ...fields,
      type: 'message',
      ...(id !== undefined && { id }),
      role: first?.role ?? 'developer',
      content: run.map(encodeInputText),
    };
  });
}
