/** Chooses the shapes: every fact about the recordings must be seen in one of them, and the smallest are preferred. */

/**
 * @template {{name: string, size: number, facts: Set<string>}} Candidate
 * @param {Candidate[]} candidates
 * @param {{always: ReadonlySet<string>, count: number}} limits `always` names candidates that tests mention; `count` is how many to choose.
 * @returns {Candidate[]}
 */
export function select(candidates, { always, count }) {
  const chosen = new Set(candidates.filter(({ name }) => always.has(name)));
  const covered = new Set([...chosen].flatMap(({ facts }) => [...facts]));
  const take = (candidate) => {
    chosen.add(candidate);
    for (const fact of candidate.facts) covered.add(fact);
  };
  for (;;) {
    const best = findBest(candidates, chosen, covered);
    if (best === undefined) break;
    take(best);
  }
  // All facts are covered: small streams of every protocol and provider fill the rest.
  for (const candidate of spread(candidates.filter((one) => one.stream && !chosen.has(one)))) {
    if (chosen.size >= count) break;
    take(candidate);
  }
  return candidates.filter((candidate) => chosen.has(candidate));
}

/** The candidate with the most new facts for its size. */
function findBest(candidates, chosen, covered) {
  let best;
  let bestGain = 0;
  for (const candidate of candidates) {
    if (chosen.has(candidate)) continue;
    const fresh = [...candidate.facts].filter((fact) => !covered.has(fact)).length;
    // A stream shows more than a whole body with the same facts.
    const gain = (fresh * (candidate.stream ? 2 : 1)) / (candidate.size + 500);
    if (gain > bestGain) [best, bestGain] = [candidate, gain];
  }
  return best;
}

/** The smallest first, in turn from each protocol and provider. */
function spread(candidates) {
  const groups = new Map();
  for (const candidate of candidates.toSorted((a, b) => a.size - b.size)) {
    const key = `${candidate.protocol} ${candidate.provider}`;
    groups.set(key, [...(groups.get(key) ?? []), candidate]);
  }
  const rounds = [...groups.values()].flatMap((group) => group.map((candidate, round) => ({ candidate, round })));
  return rounds.toSorted((a, b) => a.round - b.round).map(({ candidate }) => candidate);
}
