/** Two ways to name a thing: as the wire's list has it, and as it was seen before. Equal names make a pair; undefined never does. */
export interface Naming<Wire, Seen> {
  wire(entry: Wire, at: number): string | undefined;
  seen(entry: Seen): string | undefined;
}

/**
 * Finds for each entry of a whole list the thing that the stream showed of it. The surest naming comes first; what is left over goes to the
 * next one. Linear, whatever a stranger sends.
 */
export function pairUp<Wire, Seen>(
  wire: readonly Wire[],
  seen: readonly Seen[],
  namings: readonly Naming<Wire, Seen>[],
): (Seen | undefined)[] {
  const pairs: (Seen | undefined)[] = wire.map(() => undefined);
  const taken = new Set<Seen>();
  for (const naming of namings) {
    if (taken.size === seen.length) break;
    const free = new Map<string, Seen[]>();
    // Backwards, so that pop() gives the first.
    for (const entry of seen.toReversed()) {
      const name = taken.has(entry) ? undefined : naming.seen(entry);
      if (name === undefined) continue;
      const list = free.get(name);
      if (list) list.push(entry);
      else free.set(name, [entry]);
    }
    for (const [at, entry] of wire.entries()) {
      if (pairs[at] !== undefined) continue;
      const name = naming.wire(entry, at);
      const match = name === undefined ? undefined : free.get(name)?.pop();
      if (match === undefined) continue;
      pairs[at] = match;
      taken.add(match);
    }
  }
  return pairs;
}
