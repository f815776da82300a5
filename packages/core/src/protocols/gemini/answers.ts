import type { ToolUseBlock } from '../../canonical/blocks.ts';

export interface Call {
  /** Of its block, once that has started. */
  index: number | undefined;
  block: ToolUseBlock;
  signature?: string;
  /** The arguments, once they are whole. */
  text?: string;
  isStopped: boolean;
  isAnswered: boolean;
}

/** Finds the call that a functionResponse answers: by id (with the name, since ids repeat), else the first of that name without an answer. */
export class Answers {
  readonly #calls: Call[] = [];
  readonly #byId = new Map<string, Call>();
  readonly #byName = new Map<string, { calls: Call[]; next: number }>();

  get size(): number {
    return this.#calls.length;
  }

  get open(): Call[] {
    return this.#calls.filter(({ isAnswered }) => !isAnswered);
  }

  add(call: Call): void {
    this.#calls.push(call);
    this.#byId.set(call.block.id, call).set(keyOf(call.block.id, call.block.name), call);
    const queue = this.#byName.get(call.block.name);
    if (queue) queue.calls.push(call);
    else this.#byName.set(call.block.name, { calls: [call], next: 0 });
  }

  take(id: string, name: string): Call | undefined {
    const byId = this.#byId.get(keyOf(id, name)) ?? this.#byId.get(id);
    const call = byId && !byId.isAnswered ? byId : this.#firstNamed(name);
    if (call) call.isAnswered = true;
    return call;
  }

  #firstNamed(name: string): Call | undefined {
    const queue = this.#byName.get(name);
    if (!queue) return undefined;
    while (queue.calls[queue.next]?.isAnswered) queue.next++;
    return queue.calls[queue.next];
  }
}

const keyOf = (id: string, name: string): string => `${id}\0${name}`;
