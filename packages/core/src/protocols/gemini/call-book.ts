import type { ToolUseBlock } from '../../canonical/blocks.ts';
import { Answers } from './answers.ts';

/** The calls of a conversation, for results that need not name them: by id, else the first of that name in the last turn without an answer. */
export class CallBook {
  readonly #byId = new Map<string, ToolUseBlock>();
  #turn = new Answers();

  /** The model begins to speak: what it did not get an answer to before stays without. */
  beginTurn(): void {
    this.#turn = new Answers();
  }

  ask(block: ToolUseBlock): void {
    this.#byId.set(block.id, block);
    this.#turn.add({ index: this.#turn.size, block, isStopped: true, isAnswered: false });
  }

  answer(id: string, name: string): ToolUseBlock | undefined {
    return this.serve(id, name) ?? this.#byId.get(id);
  }

  /** The call that Google answered itself, in the same turn. */
  serve(id: string, name: string): ToolUseBlock | undefined {
    return this.#turn.take(id, name)?.block;
  }
}
