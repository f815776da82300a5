/** The calls of a conversation that no result has answered yet. */
export class CallBook {
  /** Names by id, oldest first. */
  readonly #open = new Map<string, string>();
  /** Ids by name, latest last; answered ones are skipped when they are met. */
  readonly #byName = new Map<string, string[]>();
  #legacy = 0;

  ask(id: string, name: string): void {
    this.#open.delete(id);
    this.#open.set(id, name);
    const ids = this.#byName.get(name);
    if (ids) ids.push(id);
    else this.#byName.set(name, [id]);
  }

  /** The name of the call that this result answers. */
  answer(id: string): string | undefined {
    const name = this.#open.get(id);
    this.#open.delete(id);
    return name;
  }

  /** A result without an id answers the oldest open call. */
  takeOldest(): string | undefined {
    for (const id of this.#open.keys()) return id;
    return undefined;
  }

  /** A deprecated `function` message answers the last open call of its name. */
  takeNamed(name: string): string | undefined {
    const ids = this.#byName.get(name) ?? [];
    for (let id = ids.pop(); id !== undefined; id = ids.pop()) if (this.#open.has(id)) return id;
    return undefined;
  }

  /** A deprecated `function_call` has no id: its position among its kind is one. */
  nextLegacy(): string {
    return `fc_${this.#legacy++}`;
  }
}
