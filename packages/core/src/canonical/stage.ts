/** The one shape of everything that streams: synchronous, no I/O, `end()` is idempotent. */
export interface Stage<In, Out> {
  push(input: In): Iterable<Out>;
  end(): Iterable<Out>;
}

/** Returned by a stage without output: the hot path allocates no empty arrays. */
export const NOTHING: readonly never[] = /* @__PURE__ */ Object.freeze([]);

/** Connects two stages. */
export function pipe<A, B, C>(first: Stage<A, B>, second: Stage<B, C>): Stage<A, C> {
  const feed = (middle: Iterable<B>): C[] => {
    const out: C[] = [];
    for (const value of middle) for (const result of second.push(value)) out.push(result);
    return out;
  };
  return {
    push: (input) => feed(first.push(input)),
    end: () => {
      const out = feed(first.end());
      for (const result of second.end()) out.push(result);
      return out;
    },
  };
}
