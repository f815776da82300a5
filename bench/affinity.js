#!/usr/bin/env node
/**
 * How much of the prompts that conversations repeat is in the cache of the target that gets them: 200 sessions of 30 turns on 3 targets,
 * one of which fails for a third of the time and returns. Without a network, by the router and the breakers of the
 * gateway. Run `npm run build` first.
 */

import { Router } from '../packages/gateway/out/routing/router.js';
import { Breakers } from '../packages/gateway/out/upstream/breaker.js';

const SESSIONS = 200;
const TURNS = 30;
const TURN_MS = 20_000;
/** The turns in which the first target fails. */
const DOWN = { from: 10, to: 20 };

/** Numbers from 0 to 1 that are the same in every run (mulberry32). */
function createRandom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const TARGETS = [0, 1, 2].map((i) => ({
  key: `provider/model${i}`,
  provider: { id: 'provider' },
  model: `model${i}`,
  tier: 0,
  weight: 1,
  isShared: true,
  endpointId: undefined,
}));

/** Runs all turns and returns counts of each phase. */
function simulate({ sharing, affinityMs }) {
  let now = 1;
  const random = createRandom(7);
  const breakers = new Breakers(() => now, { random });
  const router = new Router({ breakers, now: () => now, random });
  const targets = TARGETS.map((target) => ({ ...target, sharing }));
  /** What each target has in its cache. */
  const caches = new Map(targets.map(({ key }) => [key, new Map()]));
  const phases = { before: newPhase(), down: newPhase(), after: newPhase() };
  for (let turn = 0; turn < TURNS; turn++) {
    const phase = turn < DOWN.from ? phases.before : turn < DOWN.to ? phases.down : phases.after;
    for (let session = 0; session < SESSIONS; session++) {
      now += TURN_MS / SESSIONS;
      send(`session ${session}`, turn, phase);
    }
  }
  return phases;

  function send(conversation, turn, phase) {
    const prices = { find: () => ({ source: 'free', periods: [] }) };
    const plan = router.plan(targets, { kind: 'stream', affinityMs, nameConversation: () => conversation, prices });
    phase.requests++;
    for (const target of plan.candidates) {
      const admission = breakers.admit(target.key);
      if (admission === 'resting') continue;
      phase.attempts++;
      const isUp = target !== targets[0] || turn < DOWN.from || turn >= DOWN.to;
      if (isUp) breakers.succeeded(target.key);
      else breakers.failed(target.key, 'down');
      if (admission === 'probe') breakers.endProbe(target.key);
      if (!isUp) continue;
      router.responded(plan, target, 'stream', 100);
      const cache = caches.get(target.key);
      const { length = 0, at = -Infinity } = cache.get(conversation) ?? {};
      phase.length += turn;
      phase.cached += now - at < 300_000 ? length : 0;
      cache.set(conversation, { length: turn + 1, at: now });
      return;
    }
    phase.errors++;
  }
}

/** `length`: turns that prompts repeat. `cached`: those of them that their target had in its cache. */
const newPhase = () => ({ requests: 0, attempts: 0, length: 0, cached: 0, errors: 0 });

const percent = (part, whole) => `${((100 * part) / whole).toFixed(1)} %`;

console.log(`${SESSIONS} sessions, ${TURNS} turns each, 3 targets; one fails from turn ${DOWN.from} to ${DOWN.to}\n`);
console.log('strategy     affinity  phase   from cache  attempts/request  errors');
for (const sharing of ['weighted', 'least_busy', 'fastest', 'cheapest'])
  for (const affinityMs of [300_000, null])
    for (const [name, { requests, attempts, length, cached, errors }] of Object.entries(simulate({ sharing, affinityMs })))
      console.log(
        `${sharing.padEnd(12)} ${(affinityMs ? '5m' : 'off').padEnd(9)} ${name.padEnd(7)} ${percent(cached, length).padStart(10)}  ${(attempts / requests).toFixed(3).padStart(16)}  ${String(errors).padStart(6)}`,
      );
