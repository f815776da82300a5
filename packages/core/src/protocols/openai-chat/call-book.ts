/** The calls of a conversation that no result has answered yet. */
export class CallBook {
  readonly #open = new Map<string, { name: string; position: number }>();
  /** Ids in the order of their calls. A list, since a Map that loses its first keys one by one walks over all of them again. */
  readonly #asked: string[] = [];
  #oldest = 0;
  /** Ids by name, latest last; answered ones are skipped when they are met. */
  readonly #byName = new Map<string, string[]>();
  #legacy = 0;

  ask(id: string, name: string): void {
    this.#open.set(id, { name, position: this.#asked.length });
    this.#asked.push(id);
    const ids = this.#byName.get(name);
    if (ids) ids.push(id);
    else this.#byName.set(name, [id]);
  }

  /** The name of the call that this result answers. */
  answer(id: string): string | undefined {
    const call = this.#open.get(id);
    this.#open.delete(id);
    return call?.name;
  }

  /** A result without an id answers the oldest open call. */
  takeOldest(): string | undefined {
    for (; this.#oldest < this.#asked.length; this.#oldest++) {
      const id = this.#asked[this.#oldest] ?? '';
      // An id may be used again: it counts where it was used last.
      if (this.#open.get(id)?.position === this.#oldest) return id;
    }
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
